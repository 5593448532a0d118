package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ledger"
)

const waiting, network, terminal = ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal

func TestReplayNotification(t *testing.T) {
	now := start.Add(time.Hour)
	deliver := func(statuses ...ledger.Status) func(*ledger.Entry) {
		return func(e *ledger.Entry) {
			for _, s := range statuses {
				e.Outbox.MarkDelivered(id(e, s), start)
			}
		}
	}
	dead := func(e *ledger.Entry) { e.Outbox.DeadLetter(id(e, waiting), "attempts", start) }
	attempted := func(e *ledger.Entry) {
		e.Outbox.RecordFailedAttempt(claimOfAttempt(e, 1), failedAttempt(1, 500, ""), now)
	}
	const allQueued = " notify:MessageWaiting notify:DeliveredToNetwork notify:DeliveredToTerminal"
	for _, c := range []struct {
		name       string
		before     func(*ledger.Entry)
		replay     ledger.Status
		found      bool
		want       string // the queues and DueAt of the summary
		wakesRelay bool
	}{
		{"a dead one", dead, waiting, true, allQueued + " due:1h1m0s", true},
		{"one behind a dead one", dead, terminal, true,
			" dead:MessageWaiting notify:DeliveredToNetwork notify:DeliveredToTerminal due:1m0s", true},
		{"a dead one before a delivered one", func(e *ledger.Entry) {
			dead(e)
			deliver(network)(e)
		}, waiting, true, allQueued + " due:1h1m0s", true},
		{"a delivered one behind a dead one", func(e *ledger.Entry) {
			dead(e)
			deliver(network, terminal)(e)
		}, network, true, " dead:MessageWaiting notify:DeliveredToNetwork notify:DeliveredToTerminal due:1h1m0s", true},
		{"a parked one", func(e *ledger.Entry) { e.Outbox.Park(start) }, waiting, true, allQueued + " due:1h1m0s",
			true},
		{"one that is being attempted", attempted, waiting, true, allQueued + " due:1h1m0s", true},
		{"one behind one that is being attempted", attempted, network, true, allQueued + " due:1h0m0s", false},
		{"the last delivered", deliver(waiting, network, terminal), terminal, true,
			" notify:DeliveredToTerminal delivered:MessageWaiting delivered:DeliveredToNetwork due:1h1m0s", true},
		{"an earlier delivered takes the later along", deliver(waiting, network), waiting, true,
			allQueued + " due:1h1m0s", true},
		{"no such one", func(*ledger.Entry) {}, ledger.DeliveryImpossible, false, allQueued + " due:1m0s", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := message(waiting, network, terminal)
			c.before(e)
			if found := e.Outbox.ReplayNotification(id(e, c.replay), now); found != c.found {
				t.Fatalf("found = %v, want %v", found, c.found)
			}
			assertSummary(t, "replay of "+string(c.replay), e, "done DeliveredToTerminal 201:done"+c.want)
			if e.Outbox.WakesRelay() != c.wakesRelay {
				t.Errorf("wakes the relay: %v, want %v", e.Outbox.WakesRelay(), c.wakesRelay)
			}
		})
	}
}

// A replay starts the notification again, but the entry remembers its values from before.
func TestReplayRemembersWhatWasBefore(t *testing.T) {
	delivered, at := start.Add(time.Minute), start.Add(time.Hour)
	record := func(s ledger.Status, attempts int, deliveredAt time.Time, deadReason string) ledger.ReplayRecord {
		return ledger.ReplayRecord{Status: s, At: at, Attempts: attempts, DeliveredAt: deliveredAt,
			DeadReason: deadReason}
	}
	never := time.Time{}
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		replay ledger.Status
		want   []ledger.ReplayRecord
	}{
		{"delivered at the second attempt", func(e *ledger.Entry) {
			e.Outbox.RecordFailedAttempt(claimOfAttempt(e, 1), failedAttempt(1, 503, "status"), start)
			e.Outbox.ClaimDelivery(start)
			e.Outbox.MarkDelivered(id(e, waiting), delivered)
		}, waiting, []ledger.ReplayRecord{record(waiting, 2, delivered, "")}},
		{"two delivered", func(e *ledger.Entry) {
			e.Outbox.MarkDelivered(id(e, waiting), delivered)
			e.Outbox.MarkDelivered(id(e, network), delivered.Add(time.Second))
		}, waiting, []ledger.ReplayRecord{
			record(waiting, 1, delivered, ""), record(network, 1, delivered.Add(time.Second), ""),
		}},
		{"a dead letter", func(e *ledger.Entry) {
			makeAttempts(e, 10)
			e.Outbox.DeadLetter(id(e, waiting), "attempts", start)
		}, waiting, []ledger.ReplayRecord{record(waiting, 10, never, "attempts")}},
		{"behind a dead letter", func(e *ledger.Entry) { e.Outbox.DeadLetter(id(e, waiting), "attempts", start) },
			network,
			[]ledger.ReplayRecord{record(network, 0, never, "")}},
		{"never attempted", func(*ledger.Entry) {}, waiting, []ledger.ReplayRecord{record(waiting, 0, never, "")}},
		{"no such one", func(*ledger.Entry) {}, ledger.DeliveryImpossible, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := message(waiting, network)
			c.before(e)
			e.Outbox.ReplayNotification(id(e, c.replay), at)
			e.Clone().Outbox.ReplayNotification(id(e, c.replay), at) // a clone shares nothing
			if diff := cmp.Diff(c.want, e.Outbox.Replays); diff != "" {
				t.Errorf("remembered replays (-want +got):\n%s", diff)
			}
		})
	}
}

// The remembered replays are bounded, and the first delivery of each status is never forgotten.
func TestReplaysAreBounded(t *testing.T) {
	e := message(waiting, network)
	var last time.Time
	for i := range 2 * ledger.MaxReplays {
		last = start.Add(time.Duration(i) * time.Hour)
		e.Outbox.MarkDelivered(id(e, waiting), last)
		e.Outbox.MarkDelivered(id(e, network), last)
		if !e.Outbox.ReplayNotification(id(e, waiting), last) {
			t.Fatal("not replayed")
		}
	}
	if len(e.Outbox.Replays) != ledger.MaxReplays {
		t.Fatalf("%d remembered, want %d", len(e.Outbox.Replays), ledger.MaxReplays)
	}
	for i, status := range []ledger.Status{waiting, network} {
		if r := e.Outbox.Replays[i]; r.Status != status || !r.DeliveredAt.Equal(start) {
			t.Errorf("the first delivery of %s is forgotten: %+v", status, r)
		}
	}
	if r := e.Outbox.Replays[ledger.MaxReplays-1]; !r.At.Equal(last) || r.Status != network {
		t.Errorf("the last replay is forgotten: %+v", r)
	}
}

// decision "resend": a resend is a replay of a delivered notification or a dead letter, while no other notification
// waits.
func TestResendNotification(t *testing.T) {
	now := start.Add(time.Hour)
	const all = "done DeliveredToTerminal 201:done"
	const last = " notify:DeliveredToTerminal delivered:MessageWaiting delivered:DeliveredToNetwork due:1h1m0s"
	for _, c := range []struct {
		name   string
		before func(*ledger.Entry)
		resend ledger.Status
		want   ledger.ResendRefusal
		after  string // of the summary, if it is queued
	}{
		{"the last delivered one", func(e *ledger.Entry) {
			for _, s := range []ledger.Status{waiting, network, terminal} {
				e.Outbox.MarkDelivered(id(e, s), start)
			}
		}, terminal, "", last},
		{"a dead letter after delivered ones", func(e *ledger.Entry) {
			e.Outbox.MarkDelivered(id(e, waiting), start)
			e.Outbox.MarkDelivered(id(e, network), start)
			e.Outbox.DeadLetter(id(e, terminal), "attempts", start)
		}, terminal, "", last},
		{"one before a delivered one", func(e *ledger.Entry) {
			for _, s := range []ledger.Status{waiting, network, terminal} {
				e.Outbox.MarkDelivered(id(e, s), start)
			}
		}, network, ledger.ResendLaterStatus, ""},
		{"one waits", func(e *ledger.Entry) { e.Outbox.MarkDelivered(id(e, waiting), start) }, waiting,
			ledger.ResendOutstanding, ""},
		{"one is parked", func(e *ledger.Entry) { e.Outbox.Park(start) }, waiting, ledger.ResendOutstanding, ""},
		{"no such one", func(*ledger.Entry) {}, ledger.DeliveryImpossible, ledger.ResendNoNotification, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := message(waiting, network, terminal)
			c.before(e)
			before := e.Clone()
			if got := e.Outbox.ResendNotification(id(e, c.resend), now); got != c.want {
				t.Fatalf("refused as %q, want %q", got, c.want)
			}
			if c.want != "" {
				if diff := cmp.Diff(before, e); diff != "" {
					t.Errorf("a refusal changed the entry (-before +after):\n%s", diff)
				}
				return
			}
			assertSummary(t, "resend of "+string(c.resend), e, all+c.after)
			if again := e.Outbox.ResendNotification(id(e, c.resend), now); again != ledger.ResendOutstanding {
				t.Errorf("twice: %q, want outstanding", again)
			}
		})
	}
}
