package pay

import (
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// New builds the mobile money function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	operation := &Operation{
		Pipeline:        parts.Pipeline(parts.LedgerStore()),
		CallbackKeys:    parts.CallbackKeys(),
		CallbackBaseURL: parts.CallbackBaseURL(),
		OutgoingPolicy:  parts.OutgoingPolicy(),
		FirstPollDelay:  parts.Env.Durations(settings.PollSchedule)[0],
		Retention:       parts.Env.Duration(settings.TransactionRetention),
	}
	return parts.APIHandler("pay", parts.BaseURL(), operation.Route())
}
