// Command bootstrap runs the stream function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/relay"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, relay.New) }
