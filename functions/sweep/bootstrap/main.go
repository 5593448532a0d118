// Command bootstrap runs the scheduled function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/sweep"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, sweep.New) }
