package notif

import (
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// New builds the payment callback function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	handler := &CallbackHandler{
		Verifier:             parts.CallbackKeys(),
		Book:                 parts.Book(parts.LedgerStore()),
		Confirmer:            parts.Confirmer(),
		ClaimRecheckInterval: parts.Env.Duration(settings.ClaimRecheckInterval),
		Now:                  parts.Now,
	}
	return parts.APIHandler("notif", "", handler.Routes()...)
}
