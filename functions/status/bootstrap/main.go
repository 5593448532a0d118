// Command bootstrap wires the lookup function for Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/status"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, newHandler) }

func newHandler(parts *wiring.Dependencies) (wiring.Handler, error) {
	handler := &status.StatusHandler{
		Merchants: parts.Authenticator(), RateLimiter: parts.RateLimiter(), Reader: parts.LedgerStore(), Now: parts.Now,
	}
	return parts.APIHandler("status", parts.BaseURL(), handler.Routes()...)
}
