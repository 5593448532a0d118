// Command bootstrap wires the charge function for Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/charge"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, charge.New) }
