package upstream

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/logsafe"
)

// Observer observes the exchanges of one operator call, token exchanges included (decision "circuit-breaker").
type Observer interface {
	// ExchangeBegins is called before a request is sent, ExchangeEnds with what came back. end is nil unless the
	// request is a transaction. It ends an exchange whose request may have been sent: as our own time-out, with the
	// same outcome. It has no effect before that, and after the end.
	ExchangeBegins(end func())
	ExchangeEnds(evidence circuit.Evidence)
}

// errEndedEarly is the cause of an exchange that its observer ended. It counts as a time-out everywhere.
var errEndedEarly = logsafe.Errorf("ended early, because the circuit is open: %w", context.DeadlineExceeded)

type observerKey struct{}

// WithObserver returns a context whose exchanges are observed.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

// codePaths are where platforms, and the gateways in front of them, write the code of an error.
var codePaths = []string{
	"code", "error.code", "error.error.code", "error", "errorCode", "fault.code", "failureReason.failureCode",
	"requestError.serviceException.messageId", "requestError.policyException.messageId",
}

// policyRefusal begins the codes of a platform of the specification's protocol that refuses a payer.
const policyRefusal = "POL"

// evidence returns what an exchange shows about the account. A 5xx with a readable code is a response of the platform's
// application. A rate limit and refused credentials show nothing: a gateway before the platform may send them.
func (x *Exchange) evidence() circuit.Evidence {
	switch {
	case errors.Is(x.Err, context.DeadlineExceeded):
		return circuit.TimedOut
	case errors.Is(x.Err, context.Canceled):
		return circuit.None
	case x.Err != nil && !errors.Is(x.Err, errResponseTooLong):
		return circuit.Failed
	case x.Status >= http.StatusInternalServerError && x.ErrorCode(codePaths...) == "":
		return circuit.Failed
	case x.Status == http.StatusTooManyRequests,
		x.IsRefused() && !strings.HasPrefix(x.ErrorCode(codePaths...), policyRefusal):
		return circuit.None
	}
	return circuit.Responded
}
