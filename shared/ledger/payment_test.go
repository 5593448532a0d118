package ledger_test

import (
	"reflect"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// pendingPayment is an accepted payment that is polled a minute after its start.
func pendingPayment() *ledger.Entry {
	e := reserved(ledger.Payment)
	e.ApplyOutcome("owner", done, start)
	return e
}

var successful = ledger.StatusReport{
	Status: ledger.Successful, Source: "getStatus", HasAmount: true, AmountMinor: 500, Currency: "XOF",
	OperatorReference: "op-final", MSISDN: "0711111111", UserSMS: true,
}

func with(change func(*ledger.StatusReport)) ledger.StatusReport {
	r := successful
	change(&r)
	return r
}

func TestApplyFinalStatusApplies(t *testing.T) {
	now := start.Add(time.Minute)
	for _, s := range []ledger.Status{ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired} {
		e := pendingPayment()
		e.OperatorReference = ""
		if got := e.ApplyFinalStatus(with(func(r *ledger.StatusReport) { r.Status = s }), now); got != ledger.Applied {
			t.Fatalf("%s: %v", s, got)
		}
		want := ledger.Notification{ID: ledger.NotificationID(e.Key, s), Status: s, At: now, NextAttemptAt: now.Add(ledger.FastLease)}
		if e.Status != s || !e.FinalAt.Equal(now) || len(e.Outbox) != 1 || e.Outbox[0] != want || !e.WakesRelay() ||
			e.OperatorReference != "op-final" || e.MSISDNReported != "0711111111" || !e.PollAt.IsZero() || !e.DueAt.Equal(now.Add(ledger.FastLease)) {
			t.Errorf("%s: %+v", s, e)
		}
		if owed := e.UserSMS == ledger.UserSMSDue; owed != (s == ledger.Successful) {
			t.Errorf("%s: purchaser's SMS %q", s, e.UserSMS)
		}
	}
}

func TestApplyFinalStatusInEveryState(t *testing.T) {
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		status ledger.Status
		want   ledger.Effect
		state  ledger.State
	}{
		{"while the owner is at work", func(*ledger.Entry) {}, ledger.Failed, ledger.Applied, ledger.Reserved},
		{"a lapsed reservation", func(e *ledger.Entry) { e.LeaseUntil = start }, ledger.Failed, ledger.Applied, ledger.Done},
		{"unknown", func(e *ledger.Entry) { e.ApplyOutcome("owner", unknown, start) }, ledger.Failed, ledger.Applied, ledger.Done},
		{"a late success after a release", func(e *ledger.Entry) { e.ApplyOutcome("owner", released, start) }, ledger.Successful, ledger.Applied, ledger.Done},
		{"a late failure after a release", func(e *ledger.Entry) { e.ApplyOutcome("owner", released, start) }, ledger.Failed, ledger.Unchanged, ledger.Released},
		{"a success after a refusal", func(e *ledger.Entry) { e.ApplyOutcome("owner", refused, start) }, ledger.Successful, ledger.Conflicting, ledger.Refused},
		{"a failure after a refusal", func(e *ledger.Entry) { e.ApplyOutcome("owner", refused, start) }, ledger.Failed, ledger.Unchanged, ledger.Refused},
		{"an SMS's status is none of a payment's", func(*ledger.Entry) {}, ledger.DeliveredToTerminal, ledger.Unchanged, ledger.Reserved},
		{"pending is no news", func(*ledger.Entry) {}, ledger.Pending, ledger.Unchanged, ledger.Reserved},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := reserved(ledger.Payment)
			c.before(e)
			if got := e.ApplyFinalStatus(with(func(r *ledger.StatusReport) { r.Status = c.status }), start); got != c.want || e.State != c.state {
				t.Fatalf("%v, state %s", got, e.State)
			}
		})
	}
	sms := reserved(ledger.SMS)
	if got := sms.ApplyFinalStatus(successful, start); got != ledger.Unchanged {
		t.Errorf("an SMS: %v", got)
	}
}

func TestApplyFinalStatusNeverChangesAFinalStatus(t *testing.T) {
	finals := []ledger.Status{ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired}
	for _, first := range finals {
		for _, second := range finals {
			e := pendingPayment()
			e.ApplyFinalStatus(with(func(r *ledger.StatusReport) { r.Status = first }), start)
			before := e.Clone()
			r := with(func(r *ledger.StatusReport) { r.Status = second })
			want := ledger.Conflicting
			if first == second {
				want = ledger.Unchanged
			}
			if got := e.ApplyFinalStatus(r, start.Add(time.Hour)); got != want {
				t.Errorf("%s then %s: %v", first, second, got)
			}
			if got := e.ApplyFinalStatus(r, start.Add(time.Hour)); got != ledger.Unchanged {
				t.Errorf("%s then %s again: %v", first, second, got)
			}
			e.Conflicts = nil
			if !reflect.DeepEqual(before, e) {
				t.Errorf("%s then %s changed it", first, second)
			}
		}
	}
}

func TestApplyFinalStatusMismatch(t *testing.T) {
	cases := map[string]ledger.StatusReport{
		"amount":   with(func(r *ledger.StatusReport) { r.AmountMinor = 501 }),
		"currency": with(func(r *ledger.StatusReport) { r.Currency = "XAF" }),
	}
	for reason, r := range cases {
		e := pendingPayment()
		if !r.Contradicts(e) {
			t.Errorf("%s: not seen", reason)
		}
		if got := e.ApplyFinalStatus(r, start); got != ledger.Conflicting || e.Status != ledger.Pending || len(e.Outbox) != 0 ||
			len(e.Conflicts) != 1 || e.Conflicts[0].Reason != reason || !e.DueAt.Equal(start.Add(time.Minute)) {
			t.Errorf("%s: %v, %+v", reason, got, e)
		}
		if got := e.ApplyFinalStatus(r, start); got != ledger.Unchanged {
			t.Errorf("%s again: %v", reason, got)
		}
	}
	silent := with(func(r *ledger.StatusReport) { r.HasAmount, r.AmountMinor, r.Currency = false, 0, "" })
	if e := pendingPayment(); silent.Contradicts(e) || e.ApplyFinalStatus(silent, start) != ledger.Applied {
		t.Error("an operator that tells no amount")
	}
}

func TestConflictsAreBounded(t *testing.T) {
	e := pendingPayment()
	for i := range 2 * ledger.MaxConflicts {
		r := with(func(r *ledger.StatusReport) { r.AmountMinor, r.Source = 1, string(rune('a'+i)) })
		e.ApplyFinalStatus(r, start)
	}
	if len(e.Conflicts) != ledger.MaxConflicts {
		t.Errorf("%d conflicts", len(e.Conflicts))
	}
}

func TestPurchaserSMSNeedsANumber(t *testing.T) {
	e := pendingPayment()
	e.MSISDN = ""
	e.ApplyFinalStatus(with(func(r *ledger.StatusReport) { r.MSISDN = "" }), start)
	if e.UserSMS != "" {
		t.Errorf("UserSMS = %q", e.UserSMS)
	}
	e = pendingPayment()
	e.MSISDN = ""
	e.ApplyFinalStatus(successful, start)
	if e.UserSMS != ledger.UserSMSDue || e.PurchaserMSISDN() != "0711111111" {
		t.Errorf("UserSMS = %q for %q", e.UserSMS, e.PurchaserMSISDN())
	}
	e = pendingPayment()
	e.ApplyFinalStatus(with(func(r *ledger.StatusReport) { r.UserSMS = false }), start)
	if e.UserSMS != "" {
		t.Errorf("the operator sends it itself: %q", e.UserSMS)
	}
}

func TestNoNotificationWithoutAnAddress(t *testing.T) {
	e := pendingPayment()
	e.NotifyURL = ""
	if e.ApplyFinalStatus(successful, start) != ledger.Applied || len(e.Outbox) != 0 || !e.DueAt.Equal(start.Add(ledger.FastLease)) {
		t.Errorf("%+v", e)
	}
}

func claimOf(s ledger.Status) ledger.Claim {
	return ledger.Claim{Status: s, OperatorReference: "op-claim", MSISDN: "0722222222", CheckAt: start.Add(5 * time.Second)}
}

func TestAddClaim(t *testing.T) {
	note := func(statuses ...ledger.Status) func(*ledger.Entry) {
		return func(e *ledger.Entry) {
			for _, s := range statuses {
				e.AddClaim(claimOf(s), start)
			}
		}
	}
	cases := []struct {
		name      string
		before    func(*ledger.Entry)
		status    ledger.Status
		want      ledger.Effect
		open      ledger.Status
		conflicts int
	}{
		{"the first", note(), ledger.Successful, ledger.Applied, ledger.Successful, 0},
		{"the same again", note(ledger.Successful), ledger.Successful, ledger.Unchanged, ledger.Successful, 0},
		{"a success displaces a failure", note(ledger.Failed), ledger.Successful, ledger.Applied, ledger.Successful, 1},
		{"a failure displaces no success", note(ledger.Successful), ledger.Failed, ledger.Conflicting, ledger.Successful, 1},
		{"that failure again", note(ledger.Successful, ledger.Failed), ledger.Failed, ledger.Unchanged, ledger.Successful, 1},
		{"an SMS's status is no claim", note(), ledger.DeliveryImpossible, ledger.Unchanged, "", 0},
		{"pending is no claim", note(), ledger.Pending, ledger.Unchanged, "", 0},
		{"after the same final status", func(e *ledger.Entry) { e.ApplyFinalStatus(successful, start) }, ledger.Successful, ledger.Unchanged, "", 0},
		{"after another final status", func(e *ledger.Entry) { e.ApplyFinalStatus(successful, start) }, ledger.Failed, ledger.Conflicting, "", 1},
		{"a failure after a release", func(e *ledger.Entry) { e.State = ledger.Released }, ledger.Failed, ledger.Unchanged, "", 0},
		{"a success after a release", func(e *ledger.Entry) { e.State = ledger.Released }, ledger.Successful, ledger.Applied, ledger.Successful, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := pendingPayment()
			c.before(e)
			if got := e.AddClaim(claimOf(c.status), start); got != c.want || e.Claim.Status != c.open || len(e.Conflicts) != c.conflicts {
				t.Fatalf("%v, open %q, conflicts %+v", got, e.Claim.Status, e.Conflicts)
			}
		})
	}
	e := pendingPayment()
	e.AddClaim(claimOf(ledger.Successful), start)
	if !e.DueAt.Equal(start.Add(5*time.Second)) || e.LookupDue(start) || !e.LookupDue(e.DueAt) {
		t.Errorf("due %s", e.DueAt)
	}
	e.OperatorReference = ""
	e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Successful, Source: "getStatus"}, start)
	if e.OperatorReference != "op-claim" || e.MSISDNReported != "0722222222" || e.Claim != (ledger.Claim{}) || len(e.Conflicts) != 0 {
		t.Errorf("confirmed: %+v", e)
	}
}

func TestAnotherConfirmationKeepsTheClaimAsAConflict(t *testing.T) {
	e := pendingPayment()
	e.AddClaim(claimOf(ledger.Successful), start)
	if e.ApplyFinalStatus(with(func(r *ledger.StatusReport) { r.Status = ledger.Failed }), start) != ledger.Applied ||
		len(e.Conflicts) != 1 || e.Conflicts[0].Reason != "unconfirmed" || e.Conflicts[0].Status != ledger.Successful {
		t.Errorf("%+v", e)
	}
}

// decisions "released" and "pay-claims": nothing is asked for ever.
func TestARejectedClaimAfterAReleaseIsClosed(t *testing.T) {
	e := reserved(ledger.Payment)
	e.ApplyOutcome("owner", released, start)
	e.AddClaim(claimOf(ledger.Successful), start)
	e.ReschedulePoll(start.Add(time.Minute))
	if e.DueAt.IsZero() {
		t.Fatal("the claim is not due")
	}
	denied := with(func(r *ledger.StatusReport) { r.Status = ledger.Failed })
	if got := e.ApplyFinalStatus(denied, start); got != ledger.Conflicting || e.State != ledger.Released || !e.DueAt.IsZero() ||
		e.Claim.Status != "" || len(e.Conflicts) != 1 || e.Conflicts[0].Reason != "unconfirmed" {
		t.Errorf("%v, %+v", got, e)
	}
	if got := e.ApplyFinalStatus(denied, start); got != ledger.Unchanged {
		t.Errorf("again: %v", got)
	}
}

func TestReschedulePoll(t *testing.T) {
	e := pendingPayment()
	e.ReschedulePoll(start.Add(2 * time.Minute))
	if e.PollAttempts != 1 || !e.DueAt.Equal(start.Add(2*time.Minute)) {
		t.Errorf("%+v", e)
	}
	e.AddClaim(claimOf(ledger.Failed), start)
	e.ReschedulePoll(start.Add(5 * time.Minute))
	if e.PollAttempts != 1 || !e.DueAt.Equal(start.Add(5*time.Minute)) || e.LookupDue(start.Add(4*time.Minute)) {
		t.Errorf("with a claim: %+v", e)
	}
	e.ApplyFinalStatus(successful, start)
	before := e.Clone()
	if e.ReschedulePoll(start.Add(time.Hour)); !reflect.DeepEqual(before, e) {
		t.Errorf("after the end: %+v", e)
	}
	charge := reserved(ledger.Charge)
	charge.ApplyOutcome("owner", unknown, start)
	charge.ReschedulePoll(start.Add(2 * time.Hour))
	if !charge.DueAt.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("an unknown charge: %+v", charge)
	}
}

func TestExpire(t *testing.T) {
	const lifetime = 24 * time.Hour
	end := start.Add(lifetime)
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		now    time.Time
		want   ledger.Effect
	}{
		{"too early", func(*ledger.Entry) {}, end.Add(-time.Millisecond), ledger.Unchanged},
		{"at its end", func(*ledger.Entry) {}, end, ledger.Applied},
		{"with a claim of success", func(e *ledger.Entry) { e.AddClaim(claimOf(ledger.Successful), start) }, end, ledger.Unchanged},
		{"with a claim of failure", func(e *ledger.Entry) { e.AddClaim(claimOf(ledger.Failed), start) }, end, ledger.Applied},
		{"when final", func(e *ledger.Entry) { e.ApplyFinalStatus(successful, start) }, end, ledger.Unchanged},
		{"when released", func(e *ledger.Entry) { e.State = ledger.Released }, end, ledger.Unchanged},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := pendingPayment()
			c.before(e)
			if got := e.Expire(lifetime, c.now); got != c.want || (e.Status == ledger.Expired) != (c.want == ledger.Applied) {
				t.Fatalf("%v, %s", got, e.Status)
			}
		})
	}
}
