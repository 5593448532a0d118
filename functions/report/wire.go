package report

import (
	"mobilegateway/shared/wiring"
)

// New builds the report function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	entries, err := parts.BatchReader()
	if err != nil {
		return nil, err
	}
	handler := &Handler{
		Merchants: parts.Authenticator(), RateLimiter: parts.RateLimiter(), Days: parts.LedgerReader(),
		Entries: entries, Accounts: parts.OperatorAccounts(), Circuits: parts.CircuitStore(), Now: parts.Now,
	}
	return parts.APIHandler("report", "", handler.Routes()...)
}
