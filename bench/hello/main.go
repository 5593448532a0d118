// Command hello is the minimal Lambda function: it returns a constant from the runtime's loop. The benchmarks compare
// the deployed programs with it.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context) (string, error) { return "hello", nil })
}
