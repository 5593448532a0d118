package receipt

import (
	"mobilegateway/shared/wiring"
)

// New builds the delivery receipt function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	handler := &ReceiptHandler{
		Verifier: parts.CallbackKeys(), Book: parts.Book(parts.LedgerStore()), Now: parts.Now,
	}
	return parts.APIHandler("receipt", "", handler.Route())
}
