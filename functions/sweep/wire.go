package sweep

import (
	"context"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// New builds the scheduled function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	store := parts.LedgerStore()
	handler := &Sweep{
		Queue:     store,
		Book:      parts.Book(store),
		Messages:  store,
		Confirmer: parts.Confirmer(),
		Courier:   parts.Courier(),
		Circuits:  parts.Circuits(),
		ReadCircuits: func(ctx context.Context) {
			_ = parts.ReadCircuits(ctx, operator.AccountPay) // the others are read beside their lookups
		},
		StackName:         parts.StackName(),
		PollSchedule:      parts.Env.Durations(settings.PollSchedule),
		PaymentLifetime:   parts.Env.Duration(settings.PaymentLifetime),
		UnresponsiveRetry: parts.Env.Duration(settings.OverduePaymentRecheck),
		SweepInterval:     parts.Env.Duration(settings.SweepInterval),
		Start:             parts.Start,
		Sleep:             parts.Sleep,
		Now:               parts.Now,
		Log:               parts.Log,
	}
	return handler, parts.ValidateAndWarm()
}
