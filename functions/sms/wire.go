package sms

import (
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// New builds the SMS function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	store := parts.LedgerStore()
	operation := &Operation{
		Pipeline:        parts.Pipeline(store),
		Messages:        store,
		CallbackKeys:    parts.CallbackKeys(),
		CallbackBaseURL: parts.CallbackBaseURL(),
		OutgoingPolicy:  parts.OutgoingPolicy(),
		ApplicationID:   parts.Env.Required(settings.ApplicationID),
		ContactID:       parts.Env.Required(settings.ContactID),
		Retention:       parts.Env.Duration(settings.SMSRetention),
	}
	return parts.APIHandler("sms", parts.BaseURL(), operation.Route())
}
