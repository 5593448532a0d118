package ledger_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ledger"
)

func id(e *ledger.Entry, s ledger.Status) string { return ledger.NotificationID(e.Key, s) }

func TestClaimDelivery(t *testing.T) {
	e := message(ledger.MessageWaiting)
	now := start.Add(ledger.FastLease)
	if claim, changed := claimDelivery(e, now.Add(-time.Millisecond)); claim != nil || changed {
		t.Error("claimed during the relay's lease")
	}
	id := e.Outbox.Head().ID
	for i, lease := range []time.Duration{
		time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute,
		30 * time.Minute,
	} {
		claim, changed := claimDelivery(e, now)
		if claim == nil || !changed || claim.Attempts != 0 || claim.UnrecordedAttempts != i+1 || claim.ID != id {
			t.Fatalf("claim %d without an outcome: %+v", i+1, claim)
		}
		if wait := dueAt(e).Sub(now); wait != lease || e.Outbox.WakesRelay() {
			t.Errorf("claim %d: lease %s, want %s; wakes the relay: %v", i+1, wait, lease, e.Outbox.WakesRelay())
		}
		if again, _ := claimDelivery(e, now); again != nil {
			t.Error("claimed twice")
		}
		now = dueAt(e)
	}
	if claim, changed := claimDelivery(message(), now); claim != nil || changed {
		t.Error("claimed from an empty outbox")
	}
}

// The relay claims the first attempt once, and only during its lease. The sweep's claim counts it.
func TestClaimFastDelivery(t *testing.T) {
	end := start.Add(ledger.FastLease)
	for name, c := range map[string]struct {
		before func(*ledger.Entry)
		now    time.Time
		want   bool
	}{
		"new":                {func(*ledger.Entry) {}, start, true},
		"in the last moment": {func(*ledger.Entry) {}, end.Add(-time.Millisecond), true},
		"after the lease":    {func(*ledger.Entry) {}, end, false},
		"attempted":          {func(e *ledger.Entry) { makeAttempts(e, 1) }, start, false},
		"claimed":            {func(e *ledger.Entry) { e.Outbox.ClaimFastDelivery(start) }, start, false},
		"parked":             {func(e *ledger.Entry) { e.Outbox.Park(start) }, start, false},
		"delivered": {func(e *ledger.Entry) { e.Outbox.MarkDelivered(e.Outbox.Head().ID, start) }, start,
			false},
		"replayed after a claim": {func(e *ledger.Entry) {
			e.Outbox.ClaimFastDelivery(start)
			e.Outbox.ReplayNotification(e.Outbox.Head().ID, start)
		}, start, true},
	} {
		e := message(ledger.MessageWaiting)
		c.before(e)
		before := e.Clone()
		claim := e.Outbox.ClaimFastDelivery(c.now)
		if (claim != nil) != c.want {
			t.Errorf("%s: claim %+v, want one: %v", name, claim, c.want)
		}
		if claim == nil {
			if diff := cmp.Diff(before, e); diff != "" {
				t.Errorf("%s: changed without a claim:\n%s", name, diff)
			}
			continue
		}
		if claim.UnrecordedAttempts != 1 || e.Outbox.UnrecordedAttempts != 1 || e.Outbox.WakesRelay() ||
			!dueAt(e).Equal(end) {
			t.Errorf("%s: claim %+v, wakes the relay: %v, %s", name, claim, e.Outbox.WakesRelay(), summary(e))
		}
		if later, _ := claimDelivery(e, end); later == nil || later.UnrecordedAttempts != 2 {
			t.Errorf("%s: the sweep's claim %+v, want the second", name, later)
		}
	}
}

// decision "notifications": claims without an outcome cost no attempt, and end in a dead letter with its own reason.
func TestClaimsWithoutOutcome(t *testing.T) {
	e := message(ledger.MessageWaiting, ledger.DeliveredToNetwork)
	first, began := id(e, ledger.MessageWaiting), dueAt(e)
	now := began
	for claims := 0; ; claims++ {
		claim, changed := claimDelivery(e, now)
		if !changed {
			t.Fatalf("nothing to claim after %d claims", claims)
		}
		if claim == nil {
			if claims != ledger.MaxUnrecordedAttempts {
				t.Errorf("given up after %d claims, want %d", claims, ledger.MaxUnrecordedAttempts)
			}
			break
		}
		now = dueAt(e)
	}
	if dead := e.Outbox.Waiting[0]; dead.DeadReason != ledger.ReasonNoOutcome || dead.Attempts != 0 {
		t.Errorf("%+v, want a dead letter without an attempt", dead)
	}
	if age := now.Sub(began); age < 20*time.Hour || age > 26*time.Hour {
		t.Errorf("given up after %s, want about 23 hours", age)
	}
	if head := e.Outbox.Head(); head.Status != ledger.DeliveredToNetwork || e.Outbox.UnrecordedAttempts != 0 ||
		dueAt(e).IsZero() {
		t.Errorf("head %+v, %d unrecorded attempts, due %s: want the next status",
			head, e.Outbox.UnrecordedAttempts, dueAt(e))
	}
	if !e.Outbox.MarkDelivered(first, now) || e.Outbox.Head().Status != ledger.DeliveredToNetwork {
		t.Error("a late 2xx of the dead letter does not count")
	}
}

// Only the failure of the last claim counts; a success of any claim does.
func TestFailureOfAnEarlierClaim(t *testing.T) {
	e := message(ledger.MessageWaiting)
	first, _ := claimDelivery(e, dueAt(e))
	second, _ := claimDelivery(e, dueAt(e))
	if e.Outbox.RecordFailedAttempt(*first, failedAttempt(1, 500, "late"), start) {
		t.Error("the failure of a claim was recorded after another claim")
	}
	if !e.Outbox.RecordFailedAttempt(*second, failedAttempt(1, 500, ""), start) || e.Outbox.Head().Attempts != 1 {
		t.Error("the failure of the last claim was not recorded")
	}
	if e.Outbox.RecordFailedAttempt(*second, failedAttempt(1, 500, ""), start) {
		t.Error("a failure was recorded twice")
	}
	if !e.Outbox.MarkDelivered(first.ID, start) || e.Outbox.Delivered[0].Attempts != 2 {
		t.Error("the success of an earlier claim does not count")
	}
}

func TestMarkDelivered(t *testing.T) {
	e := message(ledger.MessageWaiting, ledger.DeliveredToNetwork)
	now := start.Add(time.Second)
	if e.Outbox.MarkDelivered(id(e, ledger.DeliveredToNetwork), now) {
		t.Error("the second was delivered before the first")
	}
	if !e.Outbox.MarkDelivered(id(e, ledger.MessageWaiting), now) || !e.Outbox.WakesRelay() {
		t.Error("the first was not delivered, or the second does not wake the relay")
	}
	assertSummary(t, "after the first", e,
		"done DeliveredToNetwork 201:done notify:DeliveredToNetwork delivered:MessageWaiting due:1m1s")
	if e.Outbox.MarkDelivered(id(e, ledger.MessageWaiting), now) {
		t.Error("the first was delivered twice")
	}
	want := ledger.Notification{
		ID: id(e, ledger.MessageWaiting), Status: ledger.MessageWaiting, At: start, Attempts: 1, DeliveredAt: now,
	}
	if diff := cmp.Diff(want, e.Outbox.Delivered[0]); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	e.Outbox.MarkDelivered(id(e, ledger.DeliveredToNetwork), now)
	if e.Outbox.Head() != nil || !dueAt(e).IsZero() || len(e.Outbox.Delivered) != 2 {
		t.Errorf("after all: %s", summary(e))
	}
}

func TestDeliveredIsBounded(t *testing.T) {
	e := message(ledger.MessageWaiting)
	for range 2 * ledger.MaxDelivered {
		e.Outbox.Waiting = []ledger.Notification{{ID: "n"}}
		e.Outbox.MarkDelivered("n", start)
	}
	if len(e.Outbox.Delivered) != ledger.MaxDelivered {
		t.Errorf("%d remembered, want %d", len(e.Outbox.Delivered), ledger.MaxDelivered)
	}
}

func TestPostponeDelivery(t *testing.T) {
	e := message(ledger.MessageWaiting)
	due := start.Add(ledger.FastLease)
	next := due.Add(5 * time.Minute)
	if e.Outbox.PostponeDelivery(due.Add(-time.Millisecond), next) {
		t.Error("postponed one that is not due")
	}
	if !e.Outbox.PostponeDelivery(due, next) || e.Outbox.Head().Attempts != 0 || !dueAt(e).Equal(next) {
		t.Errorf("%d attempts, %s", e.Outbox.Head().Attempts, summary(e))
	}
	e.Outbox.Park(start)
	if e.Outbox.PostponeDelivery(next.Add(time.Hour), next.Add(2*time.Hour)) {
		t.Error("postponed a parked one")
	}
}

// The wait of a postponed act grows with its age, between a minute and five.
func TestPostponement(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Minute, 0: time.Minute, 2 * time.Minute: time.Minute, 6 * time.Minute: 3 * time.Minute,
		10 * time.Minute: 5 * time.Minute, 24 * time.Hour: 5 * time.Minute,
	} {
		if got := ledger.Postponement(start, start.Add(age)); got != want {
			t.Errorf("at age %s: %s, want %s", age, got, want)
		}
	}
}

func TestRecordFailedAttempt(t *testing.T) {
	next := start.Add(time.Hour)
	e := message(ledger.MessageWaiting)
	head := id(e, ledger.MessageWaiting)
	if !e.Outbox.RecordFailedAttempt(*e.Outbox.HeadClaim(), failedAttempt(0, 503, strings.Repeat("y", 500)), next) {
		t.Fatal("the relay's own failure was not recorded")
	}
	if n := e.Outbox.Head(); n.Attempts != 1 || n.LastStatus != 503 || len(n.LastReason) > 255 {
		t.Errorf("%d attempts, status %d, %d bytes of a reason", n.Attempts, n.LastStatus, len(n.LastReason))
	}
	if !dueAt(e).Equal(next) || e.Outbox.WakesRelay() {
		t.Errorf("due %s, wakes the relay: %v", dueAt(e), e.Outbox.WakesRelay())
	}
	claim, _ := claimDelivery(e, next)
	if !e.Outbox.RecordFailedAttempt(*claim, failedAttempt(0, 0, "timeout"), next.Add(time.Hour)) ||
		e.Outbox.Head().Attempts != 2 {
		t.Errorf("the second failure was not recorded: %d attempts", e.Outbox.Head().Attempts)
	}
	first, second := failedAttempt(1, 503, strings.Repeat("y", 200)), failedAttempt(2, 0, "timeout")
	first.Status, second.Status = ledger.MessageWaiting, ledger.MessageWaiting
	if diff := cmp.Diff([]ledger.FailedAttempt{first, second}, e.Outbox.FailedAttempts); diff != "" {
		t.Errorf("remembered attempts (-want +got):\n%s", diff)
	}
	for range 2 * ledger.MaxAttempts {
		e.Outbox.RecordFailedAttempt(*e.Outbox.HeadClaim(), failedAttempt(0, 0, ""), next)
	}
	if len(e.Outbox.FailedAttempts) != ledger.MaxAttempts || e.Outbox.FailedAttempts[0].Number != 3+ledger.MaxAttempts {
		t.Errorf("%d remembered, from number %d", len(e.Outbox.FailedAttempts), e.Outbox.FailedAttempts[0].Number)
	}
	another := *e.Outbox.HeadClaim()
	another.ID = "another than " + head
	if e.Outbox.RecordFailedAttempt(another, failedAttempt(0, 500, ""), next) {
		t.Error("another notification's failure was recorded")
	}
}

// decision "notification-order": a dead letter does not block the later statuses.
func TestDeadLetter(t *testing.T) {
	e := message(ledger.MessageWaiting, ledger.DeliveredToNetwork)
	head, now := id(e, ledger.MessageWaiting), start.Add(time.Hour)
	before := *e.Outbox.HeadClaim()
	if e.Outbox.DeadLetter(head, "", now) || !e.Outbox.DeadLetter(head, "attempts", now) ||
		e.Outbox.DeadLetter(head, "again", now) {
		t.Error("a dead letter needs a reason, once")
	}
	assertSummary(t, "the next status is due", e,
		"done DeliveredToNetwork 201:done dead:MessageWaiting notify:DeliveredToNetwork due:1h1m0s")
	if e.Outbox.Waiting[0].DeadReason != "attempts" || !e.Outbox.WakesRelay() {
		t.Errorf("reason %q, wakes the relay: %v", e.Outbox.Waiting[0].DeadReason, e.Outbox.WakesRelay())
	}
	if e.Outbox.RecordFailedAttempt(before, failedAttempt(9, 500, ""), start) {
		t.Error("a dead letter was attempted")
	}
	if !e.Outbox.MarkDelivered(e.Outbox.Head().ID, now) || e.Outbox.Head() != nil || !dueAt(e).IsZero() {
		t.Errorf("after the last: %s", summary(e))
	}
	if e.Outbox.Park(start) || e.Outbox.Unpark(start) {
		t.Error("a dead letter was parked")
	}
	e.ApplyReceipt(ledger.DeliveredToTerminal, now)
	if next := e.Outbox.Head(); next == nil || next.Status != ledger.DeliveredToTerminal || !e.Outbox.WakesRelay() {
		t.Errorf("a status behind a dead letter is not due: %s", summary(e))
	}
	if !e.Outbox.MarkDelivered(head, start) || e.Outbox.Delivered[1].DeadReason != "" {
		t.Error("a late 2xx does not count")
	}
}

func TestParkStopsTheClock(t *testing.T) {
	e := message(ledger.MessageWaiting)
	if !e.Outbox.Park(start) || e.Outbox.Park(start) || e.Outbox.WakesRelay() {
		t.Errorf("parked: %s", summary(e))
	}
	if claim, changed := claimDelivery(e, start.Add(time.Hour)); claim != nil || changed {
		t.Error("a parked one was claimed")
	}
	now := start.Add(48 * time.Hour)
	if !e.Outbox.Unpark(now) || e.Outbox.Unpark(now) || !e.Outbox.WakesRelay() ||
		!dueAt(e).Equal(now.Add(ledger.FastLease)) {
		t.Errorf("unparked at attempt 0: %s", summary(e))
	}
	e.Outbox.RecordFailedAttempt(*e.Outbox.HeadClaim(), failedAttempt(1, 410, "gone"), now)
	e.Outbox.Park(now)
	if !e.Outbox.Unpark(now) || e.Outbox.WakesRelay() || !dueAt(e).Equal(now) || e.Outbox.Head().Attempts != 1 {
		t.Errorf("unparked at attempt 1: %s", summary(e))
	}
	if empty := message(); empty.Outbox.Park(now) || empty.Outbox.Unpark(now) {
		t.Error("an empty outbox was parked")
	}
}

// A parked notification is checked after a minute, then hourly, and later once a day.
func TestParkedCheck(t *testing.T) {
	e := message(ledger.MessageWaiting)
	e.Outbox.Park(start)
	now := start
	for _, want := range []time.Duration{
		time.Minute, time.Hour, time.Hour, time.Hour + 30*time.Second, 90*time.Minute + 45*time.Second,
	} {
		if wait := dueAt(e).Sub(now); wait != want {
			t.Fatalf("checked after %s, want %s", wait, want)
		}
		if now = dueAt(e); e.Outbox.PostponeParkedCheck(now.Add(-1)) || !e.Outbox.ParkedCheckDue(now) ||
			!e.Outbox.PostponeParkedCheck(now) {
			t.Fatal("the check is not due at its time only")
		}
	}
	now = start.Add(1000 * time.Hour)
	if e.Outbox.PostponeParkedCheck(now); dueAt(e).Sub(now) != 24*time.Hour {
		t.Errorf("after 1,000 hours checked after %s, want a day", dueAt(e).Sub(now))
	}
}

// decision "notification-order": one image wakes the relay for a notification. A write in between, such as the next
// status or a conflict, does not wake it again: the first status could be posted after the second.
func TestTheRelayIsWokenOnce(t *testing.T) {
	b, ctx := newBench(t), context.Background()
	request := b.request(ledger.SMS, "f")
	request.Outbox.URL = "https://shop.example.com/"
	reservation := b.reserveRequest(t, request, ledger.NewReservation)
	change := func(made ledger.Transition, apply func(*ledger.Entry)) *ledger.Entry {
		t.Helper()
		e, err := b.Change(ctx, reservation.Key, func(e *ledger.Entry) (ledger.Transition, error) {
			apply(e)
			return made, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := change(ledger.AddReceipt, receipt(ledger.DeliveredToNetwork)); !e.Outbox.WakesRelay() {
		t.Error("the first status does not wake the relay")
	}
	e := change(ledger.AddReceipt, receipt(ledger.DeliveredToTerminal))
	if e.Outbox.WakesRelay() || len(e.Outbox.Waiting) != 2 {
		t.Errorf("the second status wakes the relay for the first: %s", summary(e))
	}
	e = change(ledger.MarkDelivered, func(e *ledger.Entry) { e.Outbox.MarkDelivered(e.Outbox.Head().ID, b.Now()) })
	if !e.Outbox.WakesRelay() || e.Outbox.Head().Status != ledger.DeliveredToTerminal {
		t.Errorf("the second status does not wake the relay: %s", summary(e))
	}
}
