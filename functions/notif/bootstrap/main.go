// Command bootstrap is the payment callback function as Lambda runs it: wiring only.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/notif"
	"mobilegateway/shared/assembly"
	"mobilegateway/shared/settings"
)

func main() { assembly.Run(lambda.Start, assemble) }

func assemble(parts *assembly.Parts) (assembly.Handler, error) {
	inbox := &notif.Inbox{
		Callbacks:  parts.Callbacks(),
		Book:       parts.Book(parts.Ledger()),
		Settlement: parts.Settlement(),
		Recheck:    parts.Env.Duration(settings.ClaimRecheck),
		Now:        parts.Now,
	}
	return parts.Gateway("notif", "", inbox.Route())
}
