// Command bootstrap runs the lookup function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/status"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, status.New) }
