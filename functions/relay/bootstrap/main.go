// Command bootstrap is the stream function as Lambda runs it: wiring only.
package main

import (
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/relay"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/ledger/dynamo"
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
	courier := parts.Courier()
	courier.SMSTimeout = min(courier.SMSTimeout, relay.Patience)
	handler := &relay.Relay{
		Book:    parts.Book(parts.Ledger()),
		Courier: courier,
		Decode:  dynamo.DecodeImage,
		Now:     parts.Now,
		Log:     os.Stdout,
	}
	if err := parts.Ready(); err != nil {
		return err
	}
	lambda.Start(handler)
	return nil
}
