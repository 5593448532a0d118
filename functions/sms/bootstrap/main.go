// Command bootstrap wires the SMS function for Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/sms"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, newHandler) }

func newHandler(parts *wiring.Dependencies) (wiring.Handler, error) {
	operation := &sms.Operation{
		Pipeline:        parts.Pipeline(parts.LedgerStore()),
		CallbackKeys:    parts.CallbackKeys(),
		CallbackBaseURL: parts.CallbackBaseURL(),
		OutgoingPolicy:  parts.OutgoingPolicy(),
		ApplicationID:   parts.Env.Required(settings.ApplicationID),
		ContactID:       parts.Env.Required(settings.ContactID),
		Retention:       parts.Env.Duration(settings.SMSRetention),
	}
	return parts.APIHandler("sms", parts.BaseURL(), operation.Route())
}
