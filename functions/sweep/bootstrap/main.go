// Command bootstrap is the scheduled function as Lambda runs it: wiring only.
package main

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/sweep"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/settings"
)

func main() { assembly.Run(lambda.Start, assemble) }

func assemble(parts *assembly.Parts) (assembly.Handler, error) {
	store := parts.Ledger()
	handler := &sweep.Sweep{
		Queue:        store,
		Book:         parts.Book(store),
		Settlement:   parts.Settlement(),
		Courier:      parts.Courier(),
		Stack:        parts.Stack(),
		PollSchedule: parts.Env.Durations(settings.PollSchedule),
		Lifetime:     parts.Env.Duration(settings.PaymentLifetime),
		RetrySilent:  parts.Env.Duration(settings.SilentRecheck),
		Interval:     parts.Env.Duration(settings.SweepInterval),
		Now:          parts.Now,
		Log:          os.Stdout,
	}
	return handler, parts.Ready()
}
