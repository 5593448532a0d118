// Command bootstrap runs the mobile money function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/pay"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, pay.New) }
