// Command bootstrap is the charge function as Lambda runs it: wiring only.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/charge"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/settings"
)

func main() { assembly.Run(lambda.Start, assemble) }

func assemble(parts *assembly.Parts) (assembly.Handler, error) {
	store := parts.Ledger()
	operation := &charge.Operation{
		Desk:       parts.Desk(store),
		References: store,
		ServiceID:  parts.Env.Required(settings.ServiceID),
		Retention:  parts.Env.Duration(settings.RecordRetention),
	}
	return parts.Gateway("charge", parts.BaseURL(), operation.Route())
}
