// Command bootstrap is the token function as Lambda runs it: wiring only.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/token"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, newHandler) }

func newHandler(parts *wiring.Dependencies) (wiring.Handler, error) {
	operation := &token.Operation{
		Store:         parts.MerchantStore(),
		Keys:          keyring.NewRefreshingRing(parts.TokenKeySecret(), parts.Env.Duration(settings.SecretCacheTTL), parts.Now),
		TokenLifetime: parts.Env.Duration(settings.AccessTokenLifetime),
		Now:           parts.Now,
	}
	return parts.APIHandler("token", "", operation.Route())
}
