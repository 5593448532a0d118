// Command bootstrap runs the report function on Lambda.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/report"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, report.New) }
