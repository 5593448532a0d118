package ledger_test

import (
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// decision "pay-claims": an open claim of success is flagged 48 hours after the callback, and never expires by time.
func TestClaimFlagged(t *testing.T) {
	const patience = 48 * time.Hour
	for name, c := range map[string]struct {
		before func(*ledger.Entry)
		age    time.Duration
		want   bool
	}{
		"a moment too early":   {claimed(ledger.Successful), patience - time.Millisecond, false},
		"after 48 hours":       {claimed(ledger.Successful), patience, true},
		"a year later":         {claimed(ledger.Successful), 365 * 24 * time.Hour, true},
		"a claim of failure":   {claimed(ledger.Failed), patience, false},
		"no claim":             {func(*ledger.Entry) {}, patience, false},
		"the payment is final": {steps(claimed(ledger.Successful), finalStatus(ledger.Successful)), patience, false},
		"the release was confirmed": {
			steps(outcome(released), claimed(ledger.Successful), finalStatus(ledger.Failed)), patience, false,
		},
		"a released payment": {steps(outcome(released), claimed(ledger.Successful)), patience, true},
		"the claim again": {
			steps(claimed(ledger.Successful), claimedLater(ledger.Successful)), patience, true,
		},
		"a claim of failure after it": {steps(claimed(ledger.Successful), claimedLater(ledger.Failed)), patience, true},
		"a claim of success after a claim of failure, from then": {
			steps(claimed(ledger.Failed), claimedLater(ledger.Successful)), patience, false,
		},
	} {
		e := entryAfter(ledger.Payment, c.before)
		now := start.Add(c.age)
		if got := e.ClaimFlagged(now); got != c.want {
			t.Errorf("%s: flagged %v, want %v", name, got, c.want)
		}
		wasClaimed := e.Claim.Status == ledger.Successful
		if effect := e.Expire(24*time.Hour, now); wasClaimed && effect != ledger.Unchanged {
			t.Errorf("%s: expired by time: %s", name, summary(e))
		}
	}
}

// claimedLater claims a status an hour after start.
func claimedLater(s ledger.Status) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.AddClaim(claimOf(s), start.Add(time.Hour)) }
}

// A person ends a flagged claim in every state that it may be in, both ways (decision "unknown-by-hand").
func TestAPersonEndsAClaim(t *testing.T) {
	for name, c := range map[string]struct {
		before       func(*ledger.Entry)
		paid, failed string
	}{
		"accepted": {
			outcome(done), "done successful 201:done notify:successful user-sms:due due:48h1m0s",
			"done failed 201:done conflict:successful/unconfirmed notify:failed due:48h1m0s",
		},
		"unknown": {
			outcome(unknown), "done successful ever-unknown notify:successful user-sms:due due:48h1m0s",
			"done failed ever-unknown conflict:successful/unconfirmed notify:failed due:48h1m0s",
		},
		"released": {
			outcome(released), "done successful notify:successful user-sms:due due:48h1m0s",
			"released pending conflict:successful/unconfirmed",
		},
		"lapsed, and no sweep has marked it": {
			func(*ledger.Entry) {}, "done successful notify:successful user-sms:due due:48h1m0s",
			"done failed conflict:successful/unconfirmed notify:failed due:48h1m0s",
		},
	} {
		for manually, want := range map[string]string{"successful": c.paid, "failed": c.failed} {
			e := entryAfter(ledger.Payment, c.before, claimed(ledger.Successful))
			now := start.Add(ledger.ClaimFlagAfter)
			if !e.ClaimFlagged(now) || !e.OutcomeUncertain(now) {
				t.Errorf("%s: not listed for a person", name)
			}
			if err := e.ResolveManually(manuallyResolved(manually), now); err != nil {
				t.Errorf("%s as %s: %v", name, manually, err)
			}
			assertSummary(t, name+" as "+manually, e, want)
			if kept := e.Manual; kept.Outcome != manually || kept.Who != "ama" || !kept.At.Equal(now) {
				t.Errorf("%s as %s: kept resolution %+v", name, manually, kept)
			}
			if e.ClaimFlagged(now) || e.OutcomeUncertain(now) || e.LookupDue(now.Add(time.Hour)) {
				t.Errorf("%s as %s: still waits for a person or a lookup", name, manually)
			}
		}
	}
}

// A new request under the key of a release keeps the claim: only a final lookup or a person ends it.
func TestATakeoverKeepsTheClaim(t *testing.T) {
	for name, release := range map[string]ledger.CallOutcome{"the same body": released, "another body": unbound} {
		e := entryAfter(ledger.Payment, outcome(release), claimed(ledger.Successful))
		next := e.TakeOver(reserved(ledger.Payment), "later", start.Add(time.Hour))
		if want := e.Claim; next.Claim != want {
			t.Errorf("%s: the claim is %+v, want %+v", name, next.Claim, want)
		}
	}
}
