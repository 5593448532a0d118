// Command bootstrap runs the stream function on Lambda. It only wires dependencies.
package main

import (
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/relay"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, newHandler) }

func newHandler(parts *wiring.Dependencies) (wiring.Handler, error) {
	courier := parts.Courier()
	courier.SMSTimeout = min(courier.SMSTimeout, relay.MaxBatchWait)
	handler := &relay.Relay{
		Book:         parts.Book(parts.LedgerStore()),
		Courier:      courier,
		DecodeImage:  dynamo.DecodeImage,
		StackName:    parts.StackName(),
		MaxBatchWait: relay.MaxBatchWait + time.Second/2, // time to store the result of an SMS that took the longest
		Now:          parts.Now,
		Log:          os.Stdout,
	}
	return handler, parts.ValidateAndWarm()
}
