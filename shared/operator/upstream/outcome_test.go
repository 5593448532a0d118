package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

var errCause = errors.New("the cause")

// decision "pay-failure-reason": the reason that the driver found is stored, although it goes
// through the response for the merchant.
func TestRefusedReasonsMapBack(t *testing.T) {
	for reason, messageID := range map[ledger.FailureReason]string{
		ledger.RefusedByPayer: "POL0253", ledger.NotEnoughFunds: "POL1000", ledger.LimitReached: "POL0001",
		ledger.WalletUnknown: "POL0001", ledger.TimedOut: "POL0001", "": "POL0001",
	} {
		result := upstream.Refused(reason, http.StatusForbidden, errCause)
		if result.Outcome != operator.Refused || result.HTTPStatus != http.StatusForbidden ||
			result.Fault.Kind != fault.OperatorError || !errors.Is(result.Fault, errCause) {
			t.Errorf("%q: %+v", reason, result)
		}
		if got := result.Fault.OperatorException.MessageID; got != messageID {
			t.Errorf("%q: message %s, want %s", reason, got, messageID)
		}
		if got := operator.RefusalReason(result.Fault); got != reason {
			t.Errorf("%q is stored as %q", reason, got)
		}
	}
	generic := upstream.Refused(ledger.OperatorError, http.StatusForbidden, errCause)
	if got := operator.RefusalReason(generic.Fault); got != "" && got != ledger.OperatorError {
		t.Errorf("a generic refusal is stored as %q", got)
	}
}

func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		result    operator.Result
		outcome   operator.Outcome
		kind      fault.Kind
		duplicate bool
	}{
		"not applied": {upstream.NotApplied(fault.OperatorUnavailable, errCause), operator.NotApplied,
			fault.OperatorUnavailable, false},
		"unknown":   {upstream.Unknown(errCause), operator.Unknown, fault.OutcomeUnknown, false},
		"duplicate": {upstream.Duplicate(errCause), operator.Unknown, fault.OutcomeUnknown, true},
	} {
		got := c.result
		if got.Outcome != c.outcome || got.Fault.Kind != c.kind || got.DuplicateKey != c.duplicate ||
			!errors.Is(got.Fault, errCause) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Only if certainly no byte was written is a request without a response not applied.
func TestWithoutResponse(t *testing.T) {
	for name, c := range map[string]struct {
		exchange upstream.Exchange
		without  bool
		outcome  operator.Outcome
	}{
		"a response":       {upstream.Exchange{Status: 500, MayHaveSent: true}, false, operator.Unknown},
		"nothing was sent": {upstream.Exchange{Err: errCause}, true, operator.NotApplied},
		"no response":      {upstream.Exchange{Err: errCause, MayHaveSent: true}, true, operator.Unknown},
		"half a response":  {upstream.Exchange{Status: 200, Err: errCause, MayHaveSent: true}, true, operator.Unknown},
		"the deadline": {upstream.Exchange{Err: context.DeadlineExceeded, MayHaveSent: true}, true,
			operator.Unknown},
	} {
		result, without := c.exchange.WithoutResponse()
		if without != c.without || result.Outcome != c.outcome || without && !errors.Is(result.Fault, c.exchange.Err) {
			t.Errorf("%s: %+v, without a response %v", name, result, without)
		}
	}
}
