package receipt

import (
	"mobilegateway/shared/wiring"
)

// New builds the delivery receipt function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	store := parts.LedgerStore()
	handler := &ReceiptHandler{
		Verifier: parts.CallbackKeys(), Book: parts.Book(store), Now: parts.Now,
		Operators: parts.OperatorDirectory(), Messages: store,
	}
	return parts.APIHandler("receipt", "", handler.Routes()...)
}
