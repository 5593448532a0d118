// Command bootstrap runs the delivery receipt function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/receipt"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, receipt.New) }
