package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ledger"
)

// A notification that waits for a later attempt goes now, from its first attempt. One that goes within a minute anyway,
// or may be on its way, stays as it is.
func TestSendNow(t *testing.T) {
	now := start.Add(time.Hour)
	fail := func(e *ledger.Entry, wait time.Duration) {
		e.Outbox.RecordFailedAttempt(*e.Outbox.HeadClaim(), failedAttempt(0, 503, "server"), now.Add(wait))
	}
	claim := func(e *ledger.Entry, claims int, at time.Time) {
		for i := range claims {
			e.Outbox.Head().NextAttemptAt = at.Add(time.Duration(i-claims+1) * time.Hour)
			e.Outbox.ClaimDelivery(e.Outbox.Head().NextAttemptAt)
		}
	}
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		want   bool
	}{
		{"waits for half an hour", func(e *ledger.Entry) { fail(e, 30*time.Minute) }, true},
		{"parked", func(e *ledger.Entry) { e.Outbox.Park(start) }, true},
		{"parked after an attempt", func(e *ledger.Entry) { fail(e, 0); e.Outbox.Park(start) }, true},
		{"due in a minute", func(e *ledger.Entry) { fail(e, time.Minute) }, false},
		{"due", func(e *ledger.Entry) { fail(e, -time.Hour) }, false},
		{"in the fast lease", func(e *ledger.Entry) {
			e.Outbox.Head().NextAttemptAt = now.Add(ledger.FastLease)
		}, false},
		{"being attempted", func(e *ledger.Entry) { claim(e, 1, now) }, false},
		{"being attempted, after four claims without an outcome", func(e *ledger.Entry) { claim(e, 5, now) }, false},
		{"claimed a minute ago, as the fifth time", func(e *ledger.Entry) { claim(e, 5, now.Add(-time.Minute)) }, true},
		{"a dead letter", func(e *ledger.Entry) { e.Outbox.DeadLetter(id(e, waiting), "attempts", start) }, false},
		{"delivered", func(e *ledger.Entry) { e.Outbox.MarkDelivered(id(e, waiting), start) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := message(waiting)
			c.before(e)
			before := e.Clone()
			if got := e.Outbox.SendNow(now); got != c.want || before.Outbox.Waits(now) != c.want {
				t.Fatalf("sent: %v, waits: %v, want %v", got, before.Outbox.Waits(now), c.want)
			}
			if !c.want {
				if diff := cmp.Diff(before, e); diff != "" {
					t.Errorf("it was not sent, and changed:\n%s", diff)
				}
				return
			}
			head := e.Outbox.Head()
			if !e.Outbox.WakesRelay() || head.Attempts != 0 || head.Parked ||
				!dueAt(e).Equal(now.Add(ledger.FastLease)) {
				t.Errorf("%+v, due at %s, want the first attempt by the relay", head, dueAt(e))
			}
			if len(e.Outbox.Replays) != 1 || e.Outbox.Replays[0].Attempts != before.Outbox.Head().Attempts {
				t.Errorf("replays %+v, want one with the attempts before", e.Outbox.Replays)
			}
			if e.Outbox.SendNow(now) {
				t.Error("sent twice")
			}
		})
	}
}

// The outcome of an attempt from before does not count for the one that a person sent.
func TestSendNowIsFenced(t *testing.T) {
	e := message(waiting)
	before := *e.Outbox.HeadClaim()
	e.Outbox.Head().NextAttemptAt = start.Add(time.Hour)
	e.Outbox.UnrecordedAttempts = 7 // a claim from long ago
	if !e.Outbox.SendNow(start.Add(40 * time.Minute)) {
		t.Fatal("not sent")
	}
	before.UnrecordedAttempts = 7
	if e.Outbox.RecordFailedAttempt(before, failedAttempt(1, 500, ""), start) {
		t.Error("a failure of the attempt before was recorded")
	}
	if !e.Outbox.MarkDelivered(before.ID, start) {
		t.Error("a late success of the attempt before is lost")
	}
}

// decision "notification-address": only an address that was the profile's can be changed.
func TestSelectAddress(t *testing.T) {
	for _, from := range []ledger.AddressSource{
		ledger.AddressOfRequest, ledger.AddressOfProfile, ledger.AddressFormer,
	} {
		e := &ledger.Entry{Outbox: ledger.Outbox{From: from}}
		former, profile := ledger.AddressFormer, ledger.AddressOfProfile
		if from == ledger.AddressOfRequest {
			former, profile = from, from
		}
		if e.Outbox.SelectAddress(true); e.Outbox.From != former {
			t.Errorf("%q became %q, want the former one", from, e.Outbox.From)
		}
		if e.Outbox.SelectAddress(false); e.Outbox.From != profile {
			t.Errorf("%q became %q, want the profile's", from, e.Outbox.From)
		}
	}
}
