// Command bootstrap is the delivery receipt function as Lambda runs it: wiring only.
package main

import (
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/receipt"
	"mobilegateway/shared/assembly"
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
	inbox := &receipt.Inbox{Callbacks: parts.Callbacks(), Book: parts.Book(parts.Ledger()), Now: parts.Now}
	handler, err := parts.Gateway("receipt", "", inbox.Route())
	if err != nil {
		return err
	}
	lambda.Start(handler)
	return nil
}
