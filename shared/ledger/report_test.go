package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/shared/ledger"
)

// final is a lookup's report of a final status, with all values.
func final(s ledger.Status) ledger.StatusReport {
	return ledger.StatusReport{
		Status: s, Source: "getStatus", HasAmount: true, AmountMinor: 500, Currency: "XOF",
		OperatorReference: "op-final", MSISDN: "0711111111", UserSMS: true,
	}
}

var finals = []ledger.Status{ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired}

func TestApplyFinalStatusApplies(t *testing.T) {
	now := start.Add(time.Minute)
	for _, s := range finals {
		e := pendingPayment()
		e.OperatorReference = ""
		want := e.Clone()
		want.Status, want.FinalAt, want.Poll.At, want.DueAt = s, now, time.Time{}, now.Add(ledger.FastLease)
		want.OperatorReference, want.Payer = "op-final", "0711111111"
		want.Outbox.Waiting = []ledger.Notification{{ID: id(e, s), Status: s, At: now,
			NextAttemptAt: now.Add(ledger.FastLease)}}
		if s == ledger.Successful {
			want.UserSMS.State, want.UserSMS.At = ledger.UserSMSDue, now.Add(ledger.FastLease)
		}
		if got := e.ApplyFinalStatus(final(s), now); got != ledger.Applied || !e.Outbox.WakesRelay() {
			t.Errorf("%s: effect %v, wakes the relay: %v", s, got, e.Outbox.WakesRelay())
		}
		e.Reschedule()
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s, diff)
		}
	}
}

// decision "pay-failure-reason".
func TestFailureReason(t *testing.T) {
	report := func(s ledger.Status, reason ledger.FailureReason) func(*ledger.Entry) {
		return func(e *ledger.Entry) {
			e.ApplyFinalStatus(ledger.StatusReport{Status: s, Source: "getStatus", FailureReason: reason}, start)
		}
	}
	noFunds := refused
	noFunds.FailureReason = ledger.NotEnoughFunds
	for name, c := range map[string]struct {
		before       func(*ledger.Entry)
		stored, want ledger.FailureReason
	}{
		"pending":    {nil, "", ""},
		"successful": {report(ledger.Successful, ledger.LimitReached), "", ""},
		"cancelled":  {report(ledger.Cancelled, ledger.LimitReached), "", ledger.RefusedByPayer},
		"expired":    {report(ledger.Expired, ""), "", ledger.TimedOut},
		"failed":     {report(ledger.Failed, ""), "", ledger.OperatorError},
		"failed, with a reason": {
			report(ledger.Failed, ledger.LimitReached), ledger.LimitReached, ledger.LimitReached,
		},
		"refused at once": {outcome(noFunds), ledger.NotEnoughFunds, ledger.NotEnoughFunds},
		"a later report with another reason": {
			steps(outcome(noFunds), report(ledger.Failed, ledger.TimedOut)),
			ledger.NotEnoughFunds, ledger.NotEnoughFunds,
		},
		"a refusal after the report": {
			steps(report(ledger.Failed, ledger.TimedOut), outcome(noFunds)),
			ledger.TimedOut, ledger.TimedOut,
		},
		"a refusal after a success": {steps(report(ledger.Successful, ""), outcome(noFunds)), "", ""},
	} {
		e := entryAfter(ledger.Payment, c.before)
		if got := e.WhyNotPaid(e.Status); e.FailureReason != c.stored || got != c.want {
			t.Errorf("%s: stored %q, shown %q, want %q and %q", name, e.FailureReason, got, c.stored, c.want)
		}
	}
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.SMS} {
		e := reserved(kind)
		if e.ApplyOutcome("owner", noFunds, start); e.FailureReason != "" {
			t.Errorf("a %s has the failure reason %q", kind, e.FailureReason)
		}
	}
}

func TestApplyFinalStatusInEveryState(t *testing.T) {
	successful, failed := ledger.Successful, ledger.Failed
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		status ledger.Status
		want   ledger.Effect
		state  ledger.State
	}{
		{"while the owner is at work", func(*ledger.Entry) {}, failed, ledger.Applied, ledger.Reserved},
		{"a lapsed reservation", func(e *ledger.Entry) { e.LeaseUntil = start }, failed, ledger.Applied, ledger.Done},
		{"unknown", outcome(unknown), failed, ledger.Applied, ledger.Done},
		{"a late success after a release", outcome(released), successful, ledger.Applied, ledger.Done},
		{"a late failure after a release", outcome(released), failed, ledger.Unchanged, ledger.Released},
		{"a success after a refusal", outcome(refused), successful, ledger.Conflicting, ledger.Refused},
		{"a failure after a refusal", outcome(refused), failed, ledger.Unchanged, ledger.Refused},
		{"a status of an SMS", func(*ledger.Entry) {}, ledger.DeliveredToTerminal, ledger.Unchanged, ledger.Reserved},
		{"pending is not final", func(*ledger.Entry) {}, ledger.Pending, ledger.Unchanged, ledger.Reserved},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := entryAfter(ledger.Payment, c.before)
			if got := e.ApplyFinalStatus(final(c.status), start); got != c.want || e.State != c.state {
				t.Fatalf("effect %v, want %v; state %s, want %s", got, c.want, e.State, c.state)
			}
		})
	}
	if got := reserved(ledger.SMS).ApplyFinalStatus(final(successful), start); got != ledger.Unchanged {
		t.Errorf("an SMS: %v", got)
	}
}

func TestApplyFinalStatusNeverChangesAFinalStatus(t *testing.T) {
	for _, first := range finals {
		for _, second := range finals {
			e := pendingPayment()
			e.ApplyFinalStatus(final(first), start)
			before := e.Clone()
			want := ledger.Conflicting
			if first == second {
				want = ledger.Unchanged
			}
			if got := e.ApplyFinalStatus(final(second), start.Add(time.Hour)); got != want {
				t.Errorf("%s then %s: %v, want %v", first, second, got, want)
			}
			if got := e.ApplyFinalStatus(final(second), start.Add(time.Hour)); got != ledger.Unchanged {
				t.Errorf("%s then %s again: %v", first, second, got)
			}
			e.Conflicts = nil
			if diff := cmp.Diff(before, e); diff != "" {
				t.Errorf("%s then %s changed more than the conflicts:\n%s", first, second, diff)
			}
		}
	}
}

func TestApplyFinalStatusMismatch(t *testing.T) {
	amount, currency, silent := final(ledger.Successful), final(ledger.Successful), final(ledger.Successful)
	amount.AmountMinor, currency.Currency = 501, "XAF"
	for reason, r := range map[string]ledger.StatusReport{"amount": amount, "currency": currency} {
		e := pendingPayment()
		if !r.Contradicts(e) {
			t.Errorf("%s: no contradiction", reason)
		}
		if got := e.ApplyFinalStatus(r, start); got != ledger.Conflicting {
			t.Errorf("%s: %v", reason, got)
		}
		assertSummary(t, reason, e, "done pending 201:done conflict:successful/"+reason+" due:1m0s")
		if got := e.ApplyFinalStatus(r, start); got != ledger.Unchanged {
			t.Errorf("%s again: %v", reason, got)
		}
	}
	silent.HasAmount, silent.AmountMinor, silent.Currency = false, 0, ""
	if e := pendingPayment(); silent.Contradicts(e) || e.ApplyFinalStatus(silent, start) != ledger.Applied {
		t.Error("a report without an amount was not applied")
	}
}

func TestConflictsAreBounded(t *testing.T) {
	e := pendingPayment()
	for i := range 2 * ledger.MaxConflicts {
		r := final(ledger.Successful)
		r.AmountMinor, r.Source = 1, string(rune('a'+i))
		e.ApplyFinalStatus(r, start)
	}
	if len(e.Conflicts) != ledger.MaxConflicts {
		t.Errorf("%d conflicts, want %d", len(e.Conflicts), ledger.MaxConflicts)
	}
}

func TestPayerSMSNeedsANumber(t *testing.T) {
	for _, c := range []struct {
		name, sent, reported string
		owed                 bool
		want                 ledger.UserSMSState
	}{
		{"no number", "", "", true, ""},
		{"the operator's number", "", "0711111111", true, ledger.UserSMSDue},
		{"the operator sends it itself", "0700000000", "0711111111", false, ""},
	} {
		e, r := pendingPayment(), final(ledger.Successful)
		e.Request.MSISDN, r.MSISDN, r.UserSMS = c.sent, c.reported, c.owed
		e.ApplyFinalStatus(r, start)
		if e.UserSMS.State != c.want {
			t.Errorf("%s: the payer's SMS is %q, want %q", c.name, e.UserSMS.State, c.want)
		}
		if c.want == ledger.UserSMSDue && e.PayerMSISDN() != c.reported {
			t.Errorf("%s: to %q", c.name, e.PayerMSISDN())
		}
	}
}

func TestNoNotificationWithoutAnAddress(t *testing.T) {
	e := pendingPayment()
	e.Outbox.URL = ""
	e.ApplyFinalStatus(final(ledger.Successful), start)
	assertSummary(t, "without a URL", e, "done successful 201:done user-sms:due due:1m0s")
}

func TestAddClaim(t *testing.T) {
	successful, failed := ledger.Successful, ledger.Failed
	none := func(*ledger.Entry) {}
	isReleased := func(e *ledger.Entry) { e.State = ledger.Released }
	for _, c := range []struct {
		name      string
		before    func(*ledger.Entry)
		status    ledger.Status
		want      ledger.Effect
		open      ledger.Status
		conflicts int
	}{
		{"the first", none, successful, ledger.Applied, successful, 0},
		{"the same again", claimed(successful), successful, ledger.Unchanged, successful, 0},
		{"a success replaces a failure", claimed(failed), successful, ledger.Applied, successful, 1},
		{"a failure replaces no success", claimed(successful), failed, ledger.Conflicting, successful, 1},
		{"that failure again", steps(claimed(successful), claimed(failed)), failed, ledger.Unchanged, successful, 1},
		{"a status of an SMS", none, ledger.DeliveryImpossible, ledger.Unchanged, "", 0},
		{"pending", none, ledger.Pending, ledger.Unchanged, "", 0},
		{"after the same final status", finalStatus(successful), successful, ledger.Unchanged, "", 0},
		{"after another final status", finalStatus(successful), failed, ledger.Conflicting, "", 1},
		{"a failure after a release", isReleased, failed, ledger.Unchanged, "", 0},
		{"a success after a release", isReleased, successful, ledger.Applied, successful, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := entryAfter(ledger.Payment, outcome(done), c.before)
			got := e.AddClaim(claimOf(c.status), start)
			if got != c.want || e.Claim.Status != c.open || len(e.Conflicts) != c.conflicts {
				t.Fatalf("effect %v, want %v: %s", got, c.want, summary(e))
			}
		})
	}
	e := entryAfter(ledger.Payment, outcome(done), claimed(successful))
	if !dueAt(e).Equal(start.Add(5*time.Second)) || e.LookupDue(start) || !e.LookupDue(dueAt(e)) {
		t.Errorf("the claim's lookup is due at %s", dueAt(e))
	}
	e.OperatorReference = ""
	finalStatus(successful)(e)
	if e.OperatorReference != "op-claim" || e.Payer != "0722222222" {
		t.Errorf("the claim's values are lost: %q, %q", e.OperatorReference, e.Payer)
	}
	if e.Claim != (ledger.Claim{}) || len(e.Conflicts) != 0 {
		t.Errorf("after the confirmation: %s", summary(e))
	}
}

func TestAnotherConfirmationKeepsTheClaimAsAConflict(t *testing.T) {
	e := entryAfter(ledger.Payment, outcome(done), claimed(ledger.Successful), finalStatus(ledger.Failed))
	assertSummary(t, "confirmed as failed", e,
		"done failed 201:done conflict:successful/unconfirmed notify:failed due:1m0s")
}

// decisions "released" and "pay-claims": the lookups end.
func TestARejectedClaimAfterAReleaseIsClosed(t *testing.T) {
	e := entryAfter(ledger.Payment, outcome(released), claimed(ledger.Successful))
	e.ReschedulePoll(start.Add(time.Minute))
	if dueAt(e).IsZero() {
		t.Fatal("the claim is not due")
	}
	if got := e.ApplyFinalStatus(final(ledger.Failed), start); got != ledger.Conflicting {
		t.Errorf("a denied claim: %v", got)
	}
	assertSummary(t, "denied", e, "released pending conflict:successful/unconfirmed")
	if got := e.ApplyFinalStatus(final(ledger.Failed), start); got != ledger.Unchanged {
		t.Errorf("again: %v", got)
	}
}

func TestReschedulePoll(t *testing.T) {
	minutes := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	e := pendingPayment()
	e.ReschedulePoll(minutes(2))
	if e.Poll.Attempts != 1 || !dueAt(e).Equal(minutes(2)) {
		t.Errorf("%d attempts, %s", e.Poll.Attempts, summary(e))
	}
	claimed(ledger.Failed)(e)
	e.ReschedulePoll(minutes(5))
	if e.Poll.Attempts != 1 || !dueAt(e).Equal(minutes(5)) || e.LookupDue(minutes(4)) {
		t.Errorf("with a claim: %d attempts, %s", e.Poll.Attempts, summary(e))
	}
	finalStatus(ledger.Successful)(e)
	before := e.Clone()
	e.ReschedulePoll(minutes(60))
	if diff := cmp.Diff(before, e); diff != "" {
		t.Errorf("a final payment was changed:\n%s", diff)
	}
	charge := entryAfter(ledger.Charge, outcome(unknown))
	charge.ReschedulePoll(minutes(120))
	assertSummary(t, "an unknown charge", charge, "unknown ever-unknown due:2h0m0s")
}

func TestExpire(t *testing.T) {
	const lifetime = 24 * time.Hour
	end := start.Add(lifetime)
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		now    time.Time
		want   ledger.Effect
	}{
		{"too early", func(*ledger.Entry) {}, end.Add(-time.Millisecond), ledger.Unchanged},
		{"at its end", func(*ledger.Entry) {}, end, ledger.Applied},
		{"with a claim of success", claimed(ledger.Successful), end, ledger.Unchanged},
		{"with a claim of failure", claimed(ledger.Failed), end, ledger.Applied},
		{"when final", finalStatus(ledger.Successful), end, ledger.Unchanged},
		{"when released", func(e *ledger.Entry) { e.State = ledger.Released }, end, ledger.Unchanged},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := entryAfter(ledger.Payment, outcome(done), c.before)
			before := e.Clone()
			got := e.Expire(lifetime, c.now)
			if got != c.want || (e.Status == ledger.Expired) != (c.want == ledger.Applied) {
				t.Fatalf("effect %v, want %v; status %s", got, c.want, e.Status)
			}
			if got != ledger.Applied {
				return
			}
			if err := ledgertest.CheckWrite(before, e, ledger.ExpirePayment); err != nil {
				t.Error(err)
			}
		})
	}
}
