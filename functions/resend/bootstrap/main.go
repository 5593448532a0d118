// Command bootstrap runs the resend function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/resend"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, resend.New) }
