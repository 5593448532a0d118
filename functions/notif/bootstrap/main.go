// Command bootstrap is the payment callback function as Lambda runs it: wiring only.
package main

import (
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/notif"
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
	inbox := &notif.Inbox{
		Callbacks:  parts.Callbacks(),
		Book:       parts.Book(parts.Ledger()),
		Settlement: parts.Settlement(),
		Recheck:    parts.Env.Duration(settings.ClaimRecheck),
		Now:        parts.Now,
	}
	handler, err := parts.Gateway("notif", "", inbox.Route())
	if err != nil {
		return err
	}
	lambda.Start(handler)
	return nil
}
