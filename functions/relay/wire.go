package relay

import (
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/wiring"
)

// New builds the stream function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	courier, limits := parts.Courier(), ShippedLimits()
	courier.HealthTimeout = limits.Store
	handler := &Relay{
		Book:        parts.Book(parts.LedgerStore()),
		Courier:     courier,
		DecodeImage: dynamo.DecodeImage,
		StackName:   parts.StackName(),
		Limits:      limits,
		Start:       parts.Start,
		Now:         parts.Now,
		Log:         parts.Log,
	}
	return handler, parts.ValidateAndWarm()
}
