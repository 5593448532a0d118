// Command bootstrap runs the charge function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/charge"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, charge.New) }
