package ledger_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

const refusalStatus = 400

// judged is a word as gatewayctl brings it.
func judged(said string) ledger.Judgement {
	return ledger.Judgement{
		Word: ledger.Word{Said: said, Who: "ama", Why: "their books"}, AnswerStatus: refusalStatus, AnswerBody: []byte("SVC0270"),
		UserSMS: true, Lifetime: 24 * time.Hour,
	}
}

// decision "unknown-by-hand".
func TestJudge(t *testing.T) {
	unknownNow := func(e *ledger.Entry) { e.Settle("owner", unknown, start) }
	lapsed := func(e *ledger.Entry) { e.LeaseUntil = start.Add(time.Second) }
	accepted := func(e *ledger.Entry) { e.Settle("owner", done, start) }
	failed := func(e *ledger.Entry) { e.Resolve(ledger.Resolution{Status: ledger.Failed}, start) }
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
			return e.State == ledger.Done && e.AnswerStatus == 0 && e.Due.IsZero()
		}},
		{"a charge that was not is refused", ledger.Charge, unknownNow, "not-applied", soon, nil, func(e *ledger.Entry) bool {
			return e.State == ledger.Refused && e.AnswerStatus == refusalStatus && string(e.AnswerBody) == "SVC0270" && e.Due.IsZero()
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
			e.NoteClaim(ledger.Claim{Status: ledger.Successful}, start)
		}, "failed", soon, nil, func(e *ledger.Entry) bool { return notified(e, ledger.Failed) && len(e.Conflicts) == 1 }},

		{"one that is being worked on", ledger.Charge, nil, "applied", time.Second, ledger.ErrUnderWay, nil},
		{"a charge that is done", ledger.Charge, accepted, "not-applied", soon, ledger.ErrKnown, nil},
		{"a message that was received", ledger.SMS, func(e *ledger.Entry) { e.Receipt(ledger.DeliveredToTerminal, start); accepted(e) }, "not-applied", soon, ledger.ErrKnown, nil},
		{"a payment that is final", ledger.Payment, failed, "successful", late, ledger.ErrKnown, nil},
		{"a payment that may still end", ledger.Payment, accepted, "failed", soon, ledger.ErrPending, nil},
		{"a payment that was released", ledger.Payment, func(e *ledger.Entry) { e.Settle("owner", released, start) }, "failed", late, ledger.ErrKnown, nil},
		{"no word", ledger.SMS, unknownNow, "", soon, ledger.ErrWord, nil},
		{"another kind's word", ledger.Charge, unknownNow, "successful", soon, ledger.ErrWord, nil},
		{"a person lets nothing expire", ledger.Payment, unknownNow, "expired", late, ledger.ErrWord, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := held(c.kind)
			if c.before != nil {
				c.before(e)
			}
			before := e.Clone()
			now := start.Add(c.after)
			if err := e.Judge(judged(c.said), now); !errors.Is(err, c.err) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if c.err != nil {
				if !reflect.DeepEqual(before, e) {
					t.Errorf("changed all the same: %+v", e)
				}
				return
			}
			if !c.want(e) || e.Word != (ledger.Word{Said: c.said, Who: "ama", Why: "their books", At: now}) {
				t.Errorf("%+v", e)
			}
		})
	}
	t.Run("without the answer that repeats get, no charge is refused", func(t *testing.T) {
		e := held(ledger.Charge)
		unknownNow(e)
		if err := e.Judge(ledger.Judgement{Word: ledger.Word{Said: "not-applied"}}, start); !errors.Is(err, ledger.ErrWord) {
			t.Error(err)
		}
	})
	t.Run("a success that comes after a person's refusal is kept as a conflict", func(t *testing.T) {
		e := held(ledger.Charge)
		unknownNow(e)
		if err := e.Judge(judged("not-applied"), start); err != nil || !e.Settle("owner", done, start) || e.State != ledger.Refused || len(e.Conflicts) != 1 {
			t.Errorf("%v, %+v", err, e)
		}
	})
}
