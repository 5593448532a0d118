// Command bootstrap is the mobile money function as Lambda runs it: wiring only.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/pay"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/settings"
)

func main() { assembly.Run(lambda.Start, assemble) }

func assemble(parts *assembly.Parts) (assembly.Handler, error) {
	operation := &pay.Operation{
		Desk:         parts.Desk(parts.Ledger()),
		Callbacks:    parts.Callbacks(),
		CallbackBase: parts.CallbackBaseURL(),
		Outgoing:     parts.Outgoing(),
		FirstPoll:    parts.Env.Durations(settings.PollSchedule)[0],
		Retention:    parts.Env.Duration(settings.RecordRetention),
	}
	return parts.Gateway("pay", parts.BaseURL(), operation.Route())
}
