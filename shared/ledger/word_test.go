package ledger_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

const refusalStatus = 400

// manuallyResolved is a word as gatewayctl brings it.
func manuallyResolved(said string) ledger.ManualOutcome {
	return ledger.ManualOutcome{
		ManualResolution: ledger.ManualResolution{Outcome: said, Who: "ama", Reason: "their books"}, ResponseStatus: refusalStatus, ResponseBody: []byte("SVC0270"),
		UserSMS: true, Lifetime: 24 * time.Hour,
	}
}

// decision "unknown-by-hand".
func TestResolveManually(t *testing.T) {
	unknownNow := func(e *ledger.Entry) { e.ApplyOutcome("owner", unknown, start) }
	lapsed := func(e *ledger.Entry) { e.LeaseUntil = start.Add(time.Second) }
	accepted := func(e *ledger.Entry) { e.ApplyOutcome("owner", done, start) }
	failed := func(e *ledger.Entry) { e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Failed}, start) }
	notified := func(e *ledger.Entry, status ledger.Status) bool {
		return e.State == ledger.Done && e.Status == status && len(e.Outbox) == 1 && e.Outbox[0].Status == status
	}
	const soon, late = time.Hour, 25 * time.Hour
	cases := []struct {
		name   string
		kind   ledger.Kind
		before func(*ledger.Entry)
		said   string
		after  time.Duration
		err    error
		want   func(e *ledger.Entry) bool
	}{
		{"a charge that was applied has no answer yet", ledger.Charge, unknownNow, "applied", soon, nil, func(e *ledger.Entry) bool {
			return e.State == ledger.Done && e.ResponseStatus == 0 && e.DueAt.IsZero()
		}},
		{"a charge that was not is refused", ledger.Charge, unknownNow, "not-applied", soon, nil, func(e *ledger.Entry) bool {
			return e.State == ledger.Refused && e.ResponseStatus == refusalStatus && string(e.ResponseBody) == "SVC0270" && e.DueAt.IsZero()
		}},
		{"a lapsed one too", ledger.Charge, lapsed, "not-applied", soon, nil, func(e *ledger.Entry) bool { return e.State == ledger.Refused }},
		{"a message that was sent", ledger.SMS, unknownNow, "applied", soon, nil, func(e *ledger.Entry) bool {
			return e.State == ledger.Done && e.Status == ledger.MessageWaiting && len(e.Outbox) == 0
		}},
		{"a message that was not", ledger.SMS, unknownNow, "not-applied", soon, nil, func(e *ledger.Entry) bool {
			return notified(e, ledger.DeliveryImpossible)
		}},
		{"a payment that is unknown", ledger.Payment, unknownNow, "successful", soon, nil, func(e *ledger.Entry) bool {
			return notified(e, ledger.Successful) && e.UserSMS == ledger.UserSMSDue
		}},
		{"a payment that pends for ever", ledger.Payment, accepted, "cancelled", late, nil, func(e *ledger.Entry) bool { return notified(e, ledger.Cancelled) }},
		{"one with a claim: it is kept as a conflict", ledger.Payment, func(e *ledger.Entry) {
			accepted(e)
			e.AddClaim(ledger.Claim{Status: ledger.Successful}, start)
		}, "failed", soon, nil, func(e *ledger.Entry) bool { return notified(e, ledger.Failed) && len(e.Conflicts) == 1 }},

		{"one that is being worked on", ledger.Charge, nil, "applied", time.Second, ledger.ErrAttemptInFlight, nil},
		{"a charge that is done", ledger.Charge, accepted, "not-applied", soon, ledger.ErrOutcomeKnown, nil},
		{"a message that was received", ledger.SMS, func(e *ledger.Entry) { e.ApplyReceipt(ledger.DeliveredToTerminal, start); accepted(e) }, "not-applied", soon, ledger.ErrOutcomeKnown, nil},
		{"a payment that is final", ledger.Payment, failed, "successful", late, ledger.ErrOutcomeKnown, nil},
		{"a payment that may still end", ledger.Payment, accepted, "failed", soon, ledger.ErrStillPending, nil},
		{"a payment that was released", ledger.Payment, func(e *ledger.Entry) { e.ApplyOutcome("owner", released, start) }, "failed", late, ledger.ErrOutcomeKnown, nil},
		{"no word", ledger.SMS, unknownNow, "", soon, ledger.ErrInvalidResolution, nil},
		{"another kind's word", ledger.Charge, unknownNow, "successful", soon, ledger.ErrInvalidResolution, nil},
		{"a person lets nothing expire", ledger.Payment, unknownNow, "expired", late, ledger.ErrInvalidResolution, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := reserved(c.kind)
			if c.before != nil {
				c.before(e)
			}
			before := e.Clone()
			now := start.Add(c.after)
			if err := e.ResolveManually(manuallyResolved(c.said), now); !errors.Is(err, c.err) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if c.err != nil {
				if !reflect.DeepEqual(before, e) {
					t.Errorf("changed all the same: %+v", e)
				}
				return
			}
			if !c.want(e) || e.Manual != (ledger.ManualResolution{Outcome: c.said, Who: "ama", Reason: "their books", At: now}) {
				t.Errorf("%+v", e)
			}
		})
	}
	t.Run("without the answer that repeats get, no charge is refused", func(t *testing.T) {
		e := reserved(ledger.Charge)
		unknownNow(e)
		if err := e.ResolveManually(ledger.ManualOutcome{ManualResolution: ledger.ManualResolution{Outcome: "not-applied"}}, start); !errors.Is(err, ledger.ErrInvalidResolution) {
			t.Error(err)
		}
	})
	t.Run("a success that comes after a person's refusal is kept as a conflict", func(t *testing.T) {
		e := reserved(ledger.Charge)
		unknownNow(e)
		if err := e.ResolveManually(manuallyResolved("not-applied"), start); err != nil || !e.ApplyOutcome("owner", done, start) || e.State != ledger.Refused || len(e.Conflicts) != 1 {
			t.Errorf("%v, %+v", err, e)
		}
	})
}
