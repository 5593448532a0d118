// Command bootstrap runs the token function on Lambda. It only wires dependencies.
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
	cacheLifetime := parts.Env.Duration(settings.SecretCacheTTL)
	operation := &token.Operation{
		Store:         parts.MerchantStore(),
		Keys:          keyring.NewRefreshingRing(parts.TokenKeySecret(), cacheLifetime, parts.Now),
		TokenLifetime: parts.Env.Duration(settings.AccessTokenLifetime),
		Now:           parts.Now,
	}
	return parts.APIHandler("token", "", operation.Route())
}
