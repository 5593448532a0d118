// Command bootstrap is the mobile money function as Lambda runs it: wiring only.
package main

import (
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/pay"
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
	operation := &pay.Operation{
		Desk:      parts.Desk(parts.Ledger()),
		Callbacks: parts.Callbacks(),
		Outgoing:  parts.Outgoing(),
		FirstPoll: parts.Env.Durations(settings.PollSchedule)[0],
		Retention: parts.Env.Duration(settings.RecordRetention),
	}
	handler, err := parts.Gateway("pay", parts.BaseURL(), operation.Route())
	if err != nil {
		return err
	}
	lambda.Start(handler)
	return nil
}
