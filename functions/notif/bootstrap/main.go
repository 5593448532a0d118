// Command bootstrap runs the payment callback function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/notif"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, notif.New) }
