package status

import (
	"mobilegateway/shared/wiring"
)

// New builds the lookup function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	store := parts.LedgerReader()
	handler := &StatusHandler{
		Merchants: parts.Authenticator(), RateLimiter: parts.RateLimiter(), Reader: store, References: store,
		Now: parts.Now,
	}
	return parts.APIHandler("status", parts.BaseURL(), handler.Routes()...)
}
