// Command bootstrap is the lookup function as Lambda runs it: wiring only.
package main

import (
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/status"
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
	lookup := &status.Lookup{Merchants: parts.Authenticator(), Ledger: parts.Ledger(), Now: parts.Now}
	handler, err := parts.Gateway("status", parts.BaseURL(), lookup.Routes()...)
	if err != nil {
		return err
	}
	lambda.Start(handler)
	return nil
}
