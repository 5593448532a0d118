// Command bootstrap runs the SMS function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/sms"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, sms.New) }
