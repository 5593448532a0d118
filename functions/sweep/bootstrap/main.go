// Command bootstrap runs the scheduled function on Lambda. It only wires dependencies.
package main

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/sweep"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, newHandler) }

func newHandler(parts *wiring.Dependencies) (wiring.Handler, error) {
	store := parts.LedgerStore()
	handler := &sweep.Sweep{
		Queue:             store,
		Book:              parts.Book(store),
		Reconciler:        parts.Reconciler(),
		DailyAmounts:      parts.DailyAmounts(),
		Courier:           parts.Courier(),
		StackName:         parts.StackName(),
		PollSchedule:      parts.Env.Durations(settings.PollSchedule),
		PaymentLifetime:   parts.Env.Duration(settings.PaymentLifetime),
		UnresponsiveRetry: parts.Env.Duration(settings.OverduePaymentRecheck),
		SweepInterval:     parts.Env.Duration(settings.SweepInterval),
		Now:               parts.Now,
		Log:               os.Stdout,
	}
	return handler, parts.ValidateAndWarm()
}
