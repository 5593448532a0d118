package relay

import (
	"time"

	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/wiring"
)

// New builds the stream function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	courier := parts.Courier()
	courier.SMSTimeout = min(courier.SMSTimeout, MaxBatchWait)
	handler := &Relay{
		Book:         parts.Book(parts.LedgerStore()),
		Courier:      courier,
		DecodeImage:  dynamo.DecodeImage,
		StackName:    parts.StackName(),
		MaxBatchWait: MaxBatchWait + time.Second/2, // time to store the result of an SMS that took the longest
		Start:        parts.Start,
		Now:          parts.Now,
		Log:          parts.Log,
	}
	return handler, parts.ValidateAndWarm()
}
