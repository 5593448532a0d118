// Command bootstrap is the delivery receipt function as Lambda runs it: wiring only.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/receipt"
	"mobilegateway/shared/assembly"
)

func main() { assembly.Run(lambda.Start, assemble) }

func assemble(parts *assembly.Parts) (assembly.Handler, error) {
	inbox := &receipt.Inbox{Callbacks: parts.Callbacks(), Book: parts.Book(parts.Ledger()), Now: parts.Now}
	return parts.Gateway("receipt", "", inbox.Route())
}
