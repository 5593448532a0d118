// Command bootstrap runs the payment callback function on Lambda. It only wires dependencies.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"mobilegateway/functions/notif"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

func main() { wiring.Run(lambda.Start, newHandler) }

func newHandler(parts *wiring.Dependencies) (wiring.Handler, error) {
	handler := &notif.CallbackHandler{
		Verifier:             parts.CallbackKeys(),
		Book:                 parts.Book(parts.LedgerStore()),
		Reconciler:           parts.Reconciler(),
		DailyAmounts:         parts.DailyAmounts(),
		ClaimRecheckInterval: parts.Env.Duration(settings.ClaimRecheckInterval),
		Now:                  parts.Now,
	}
	return parts.APIHandler("notif", "", handler.Route())
}
