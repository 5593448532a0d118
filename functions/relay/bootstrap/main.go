// Command bootstrap is the stream function as Lambda runs it: wiring only.
package main

import (
	"os"
	"time"

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
		Book:     parts.Book(parts.Ledger()),
		Courier:  courier,
		Decode:   dynamo.DecodeImage,
		Stack:    parts.Stack(),
		Patience: relay.Patience + time.Second/2, // for the SMS that just misses it to be stored
		Now:      parts.Now,
		Log:      os.Stdout,
	}
	return handler, parts.Ready()
}
