package charge

import (
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// New builds the charge function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	store := parts.LedgerStore()
	operation := &Operation{
		Pipeline:   parts.Pipeline(store),
		References: store,
		ServiceID:  parts.Env.Required(settings.ServiceID),
		Retention:  parts.Env.Duration(settings.TransactionRetention),
	}
	return parts.APIHandler("charge", parts.BaseURL(), operation.Route())
}
