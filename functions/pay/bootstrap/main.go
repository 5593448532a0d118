// Command bootstrap wires the mobile money function for Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/pay"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, pay.New) }
