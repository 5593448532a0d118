// Command bootstrap is the token function as Lambda runs it: wiring only.
package main

import (
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/token"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/settings"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	parts, err := assembly.FromEnvironment()
	if err != nil {
		return err
	}
	operation := &token.Operation{
		Store: parts.Merchants(),
		Keys:  keyring.New(parts.TokenKeys(), parts.Env.Duration(settings.SecretCache), parts.Now),
		Life:  parts.Env.Duration(settings.AccessTokenLife),
		Now:   parts.Now,
	}
	handler, err := parts.Gateway("token", "", operation.Route())
	if err != nil {
		return err
	}
	lambda.Start(handler)
	return nil
}
