// Command bootstrap runs the delivery receipt function on Lambda. It only wires dependencies.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/receipt"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, newHandler) }

func newHandler(parts *wiring.Dependencies) (wiring.Handler, error) {
	handler := &receipt.ReceiptHandler{
		Verifier: parts.CallbackKeys(), Book: parts.Book(parts.LedgerStore()), Now: parts.Now,
	}
	return parts.APIHandler("receipt", "", handler.Route())
}
