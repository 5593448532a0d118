// Command bootstrap is the token function as Lambda runs it: wiring only.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/token"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/settings"
)

func main() { assembly.Run(lambda.Start, assemble) }

func assemble(parts *assembly.Parts) (assembly.Handler, error) {
	operation := &token.Operation{
		Store: parts.Merchants(),
		Keys:  keyring.New(parts.TokenKeys(), parts.Env.Duration(settings.SecretCache), parts.Now),
		Life:  parts.Env.Duration(settings.AccessTokenLife),
		Now:   parts.Now,
	}
	return parts.Gateway("token", "", operation.Route())
}
