// Command bootstrap wires the charge function for Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/charge"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, newHandler) }

func newHandler(parts *wiring.Dependencies) (wiring.Handler, error) {
	store := parts.LedgerStore()
	operation := &charge.Operation{
		Pipeline:   parts.Pipeline(store),
		References: store,
		ServiceID:  parts.Env.Required(settings.ServiceID),
		Retention:  parts.Env.Duration(settings.TransactionRetention),
	}
	return parts.APIHandler("charge", parts.BaseURL(), operation.Route())
}
