package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

func dueUserSMS() *ledger.Entry {
	e := pendingPayment()
	e.ApplyFinalStatus(final(ledger.Successful), start)
	e.Outbox.MarkDelivered(e.Outbox.Head().ID, start)
	return e
}

func TestRecordUserSMS(t *testing.T) {
	if e := dueUserSMS(); !dueAt(e).Equal(start.Add(ledger.FastLease)) || e.UserSMS.GivenUp() {
		t.Errorf("due %s, given up: %v", dueAt(e), e.UserSMS.GivenUp())
	}
	for end, givenUp := range map[ledger.UserSMSState]bool{
		ledger.UserSMSSent: false, ledger.UserSMSFailed: true, ledger.UserSMSUnknown: true,
	} {
		e := dueUserSMS()
		outcome := ledger.UserSMSOutcome{State: end}
		recorded := e.UserSMS.Record(e.UserSMSClaim(), outcome)
		if !recorded || e.UserSMS.State != end || !dueAt(e).IsZero() || e.UserSMS.Attempts != 1 ||
			e.UserSMS.GivenUp() != givenUp {
			t.Errorf("%s: %s, given up: %v", end, summary(e), e.UserSMS.GivenUp())
		}
		if e.UserSMS.Record(e.UserSMSClaim(), ledger.UserSMSOutcome{State: ledger.UserSMSDue, NextAttemptAt: start}) {
			t.Errorf("%s: due again", end)
		}
	}
	e, at := dueUserSMS(), start.Add(time.Hour)
	again := ledger.UserSMSOutcome{State: ledger.UserSMSDue, NextAttemptAt: at}
	if !e.UserSMS.Record(e.UserSMSClaim(), again) || !dueAt(e).Equal(at) || e.UserSMS.Attempts != 1 {
		t.Errorf("due again: %s", summary(e))
	}
	if claim, changed := claimUserSMS(e, at.Add(-time.Millisecond)); claim != nil || changed {
		t.Error("claimed before it was due")
	}
	claim, _ := claimUserSMS(e, at)
	if claim == nil || claim.MayHaveBeenSent || !dueAt(e).Equal(at.Add(time.Minute)) {
		t.Errorf("claim %+v, %s", claim, summary(e))
	}
	if twice, _ := claimUserSMS(e, at); twice != nil {
		t.Error("claimed twice")
	}
	if next := at.Add(3 * time.Minute); !e.UserSMS.Postpone(at.Add(time.Minute), next) || !dueAt(e).Equal(next) {
		t.Errorf("postponed: %s", summary(e))
	}
	second, _ := claimUserSMS(e, dueAt(e))
	if second == nil || !second.MayHaveBeenSent || e.UserSMS.Record(*claim, again) {
		t.Errorf("a second claim: %+v; the first one's failure must not count", second)
	}
	if !e.UserSMS.Record(*claim, ledger.UserSMSOutcome{State: ledger.UserSMSSent}) ||
		e.UserSMS.State != ledger.UserSMSSent {
		t.Error("the first one's success does not count")
	}
}

// decision "user-sms": claims without an outcome cost no attempt; after many the SMS is unknown.
func TestUserSMSClaimsWithoutOutcome(t *testing.T) {
	e := dueUserSMS()
	for claims := 0; e.UserSMS.State == ledger.UserSMSDue; claims++ {
		claim, changed := claimUserSMS(e, e.UserSMS.At)
		if !changed || (claim == nil) != (claims == ledger.MaxUnrecordedAttempts) {
			t.Fatalf("claim %d: %+v, changed: %v", claims, claim, changed)
		}
	}
	if e.UserSMS.State != ledger.UserSMSUnknown || e.UserSMS.Attempts != 0 || !dueAt(e).IsZero() {
		t.Errorf("%d attempts, %s; want it unknown", e.UserSMS.Attempts, summary(e))
	}
}

// An earlier attempt may have reached the operator: one without an outcome, one without proof, or the relay's own.
func TestUserSMSMayHaveBeenSent(t *testing.T) {
	noProof := ledger.UserSMSOutcome{State: ledger.UserSMSDue, NextAttemptAt: start, MaybeSent: true}
	notApplied := ledger.UserSMSOutcome{State: ledger.UserSMSDue, NextAttemptAt: start}
	record := func(outcome ledger.UserSMSOutcome) func(*ledger.Entry) {
		return func(e *ledger.Entry) { e.UserSMS.Record(e.UserSMSClaim(), outcome) }
	}
	claim := func(e *ledger.Entry) { e.ClaimUserSMS(e.UserSMS.At) }
	withoutURL := func(e *ledger.Entry) { e.Outbox.URL = "" }
	for name, c := range map[string]struct {
		before func(*ledger.Entry)
		want   bool
	}{
		"the relay's first":                         {nil, false},
		"the sweep's, which may follow the relay's": {claim, true},
		"the sweep's, without a relay":              {steps(withoutURL, claim), false},
		"after a claim without an outcome":          {steps(withoutURL, claim, claim), true},
		"after an attempt without proof":            {steps(record(noProof), claim), true},
		"after one that was not applied":            {steps(record(notApplied), claim), false},
		"after both": {
			steps(record(noProof), claim, record(notApplied), claim), true,
		},
	} {
		e := dueUserSMS()
		steps(c.before)(e)
		if got := e.UserSMSClaim().MayHaveBeenSent; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		wantUnleased := e.UserSMS.UnrecordedAttempts == 0 && e.Outbox.URL != ""
		if got := e.UserSMSClaim().Unleased; got != wantUnleased || got != (c.before == nil) {
			t.Errorf("%s: unleased %v, want it of the relay's only", name, got)
		}
	}
}
