// Command bootstrap is the lookup function as Lambda runs it: wiring only.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/status"
	"mobilegateway/shared/assembly"
)

func main() { assembly.Run(lambda.Start, assemble) }

func assemble(parts *assembly.Parts) (assembly.Handler, error) {
	lookup := &status.Lookup{Merchants: parts.Authenticator(), Rate: parts.Rate(), Ledger: parts.Ledger(), Now: parts.Now}
	return parts.Gateway("status", parts.BaseURL(), lookup.Routes()...)
}
