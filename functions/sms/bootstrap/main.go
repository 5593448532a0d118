// Command bootstrap is the SMS function as Lambda runs it: wiring only.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/sms"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/settings"
)

func main() { assembly.Run(lambda.Start, assemble) }

func assemble(parts *assembly.Parts) (assembly.Handler, error) {
	operation := &sms.Operation{
		Desk:          parts.Desk(parts.Ledger()),
		Callbacks:     parts.Callbacks(),
		CallbackBase:  parts.CallbackBaseURL(),
		Outgoing:      parts.Outgoing(),
		ApplicationID: parts.Env.Required(settings.ApplicationID),
		ContactID:     parts.Env.Required(settings.ContactID),
		Retention:     parts.Env.Duration(settings.SMSRetention),
	}
	return parts.Gateway("sms", parts.BaseURL(), operation.Route())
}
