// Command bootstrap is the charge function as Lambda runs it: wiring only.
package main

import (
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/charge"
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
	store := parts.Ledger()
	operation := &charge.Operation{
		Desk:       parts.Desk(store),
		References: store,
		ServiceID:  parts.Env.Required(settings.ServiceID),
		Retention:  parts.Env.Duration(settings.RecordRetention),
	}
	handler, err := parts.Gateway("charge", parts.BaseURL(), operation.Route())
	if err != nil {
		return err
	}
	lambda.Start(handler)
	return nil
}
