package resend

import (
	"mobilegateway/shared/wiring"
)

// New builds the resend function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	store := parts.LedgerStore()
	handler := &Handler{
		Merchants: parts.Authenticator(), RateLimiter: parts.RateLimiter(), Book: parts.Book(store), Days: store,
		Now: parts.Now,
	}
	return parts.APIHandler("resend", "", handler.Route())
}
