// Command bootstrap is the stream function as Lambda runs it: wiring only.
package main

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/relay"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/ledger/dynamo"
)

func main() { assembly.Run(lambda.Start, assemble) }

func assemble(parts *assembly.Parts) (assembly.Handler, error) {
	courier := parts.Courier()
	courier.SMSTimeout = min(courier.SMSTimeout, relay.Patience)
	handler := &relay.Relay{
		Book:    parts.Book(parts.Ledger()),
		Courier: courier,
		Decode:  dynamo.DecodeImage,
		Now:     parts.Now,
		Log:     os.Stdout,
	}
	return handler, parts.Ready()
}
