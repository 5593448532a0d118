package charge

import (
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// New builds the charge function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	operation := &Operation{
		Pipeline:  parts.Pipeline(parts.LedgerStore()),
		ServiceID: parts.Env.Required(settings.ServiceID),
		Retention: parts.Env.Duration(settings.TransactionRetention),
	}
	return parts.APIHandler("charge", parts.BaseURL(), operation.Route())
}
