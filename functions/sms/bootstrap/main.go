// Command bootstrap is the SMS function as Lambda runs it: wiring only.
package main

import (
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/sms"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/settings"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	parts, err := assembly.FromEnvironment()
	if err != nil {
		return err
	}
	operation := &sms.Operation{
		Desk:          parts.Desk(parts.Ledger()),
		Callbacks:     parts.Callbacks(),
		Outgoing:      parts.Outgoing(),
		ApplicationID: parts.Env.Required(settings.ApplicationID),
		ContactID:     parts.Env.Required(settings.ContactID),
		Retention:     parts.Env.Duration(settings.SMSRetention),
	}
	handler, err := parts.Gateway("sms", parts.BaseURL(), operation.Route())
	if err != nil {
		return err
	}
	lambda.Start(handler)
	return nil
}
