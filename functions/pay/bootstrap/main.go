// Command bootstrap wires the mobile money function for Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/pay"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, newHandler) }

func newHandler(parts *wiring.Dependencies) (wiring.Handler, error) {
	operation := &pay.Operation{
		Pipeline:        parts.Pipeline(parts.LedgerStore()),
		CallbackKeys:    parts.CallbackKeys(),
		CallbackBaseURL: parts.CallbackBaseURL(),
		OutgoingPolicy:  parts.OutgoingPolicy(),
		FirstPollDelay:  parts.Env.Durations(settings.PollSchedule)[0],
		Retention:       parts.Env.Duration(settings.TransactionRetention),
	}
	return parts.APIHandler("pay", parts.BaseURL(), operation.Route())
}
