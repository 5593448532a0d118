// Command hello is the smallest function that there can be: the runtime's loop around a constant. The benchmarks measure
// the gateway's functions beside it.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context) (string, error) { return "hello", nil })
}
