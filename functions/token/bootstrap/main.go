// Command bootstrap runs the token function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/token"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, token.New) }
