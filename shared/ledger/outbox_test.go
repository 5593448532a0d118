package ledger_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// message is an SMS with as many notifications in its outbox as statuses given, all noted at start.
func message(statuses ...ledger.Status) *ledger.Entry {
	e := reserved(ledger.SMS)
	e.ApplyOutcome("owner", done, start)
	for _, s := range statuses {
		e.ApplyReceipt(s, start)
	}
	return e
}

func id(e *ledger.Entry, s ledger.Status) string { return ledger.NotificationID(e.Key, s) }

func TestClaimDelivery(t *testing.T) {
	e := message(ledger.MessageWaiting)
	lease := start.Add(ledger.FastLease)
	if e.ClaimDelivery(lease.Add(-time.Millisecond), lease) != nil {
		t.Error("claimed during the relay's lease")
	}
	next := lease.Add(time.Minute)
	claimed := e.ClaimDelivery(lease, next)
	if claimed == nil || claimed.Attempts != 1 || !e.DueAt.Equal(next) || e.WakesRelay() {
		t.Fatalf("claimed %+v, due %s", claimed, e.DueAt)
	}
	if e.ClaimDelivery(lease, next) != nil {
		t.Error("claimed twice")
	}
	if again := e.ClaimDelivery(next, next.Add(time.Minute)); again == nil || again.Attempts != 2 || again.ID != claimed.ID {
		t.Errorf("the next attempt: %+v", again)
	}
	empty := message()
	if empty.ClaimDelivery(lease, next) != nil {
		t.Error("claimed nothing")
	}
}

func TestMarkDelivered(t *testing.T) {
	e := message(ledger.MessageWaiting, ledger.DeliveredToNetwork)
	now := start.Add(time.Second)
	if e.MarkDelivered(id(e, ledger.DeliveredToNetwork), now) {
		t.Error("the second before the first")
	}
	if !e.MarkDelivered(id(e, ledger.MessageWaiting), now) || e.OutboxHead().Status != ledger.DeliveredToNetwork ||
		!e.DueAt.Equal(now.Add(ledger.FastLease)) || !e.WakesRelay() {
		t.Errorf("%+v", e)
	}
	if e.MarkDelivered(id(e, ledger.MessageWaiting), now) {
		t.Error("the first twice")
	}
	if delivered := e.Delivered[0]; delivered.Status != ledger.MessageWaiting || delivered.Attempts != 1 || !delivered.DeliveredAt.Equal(now) || !delivered.NextAttemptAt.IsZero() {
		t.Errorf("told %+v", delivered)
	}
}

func TestDeliveredIsBounded(t *testing.T) {
	e := message(ledger.MessageWaiting)
	for range 2 * ledger.MaxDelivered {
		e.Outbox = []ledger.Notification{{ID: "n"}}
		e.MarkDelivered("n", start)
	}
	if len(e.Delivered) != ledger.MaxDelivered {
		t.Errorf("%d remembered", len(e.Delivered))
	}
}

func TestPostpone(t *testing.T) {
	e := message(ledger.MessageWaiting)
	head := id(e, ledger.MessageWaiting)
	due := start.Add(ledger.FastLease)
	next := due.Add(5 * time.Minute)
	if e.Postpone(head, due.Add(-time.Millisecond), next) || e.Postpone("another", due, next) {
		t.Error("postponed what is not due, or not the head")
	}
	if !e.Postpone(head, due, next) || e.OutboxHead().Attempts != 0 || !e.DueAt.Equal(next) {
		t.Errorf("%+v", e)
	}
	e.Park()
	if e.Postpone(head, next.Add(time.Hour), next.Add(2*time.Hour)) {
		t.Error("postponed what is parked")
	}
}

func TestRecordFailedAttempt(t *testing.T) {
	next := start.Add(time.Hour)
	e := message(ledger.MessageWaiting)
	head := id(e, ledger.MessageWaiting)
	if !e.RecordFailedAttempt(head, ledger.FailedAttempt{Number: 1, At: start, HTTPStatus: 503, Reason: strings.Repeat("y", 500)}, next) {
		t.Fatal("the relay's own failure was not noted")
	}
	if n := e.OutboxHead(); n.Attempts != 1 || n.LastStatus != 503 || len(n.LastReason) > 255 || !e.DueAt.Equal(next) || e.WakesRelay() {
		t.Errorf("%+v", n)
	}
	e.ClaimDelivery(next, next.Add(time.Minute))
	if e.RecordFailedAttempt(head, ledger.FailedAttempt{Number: 1, At: start, HTTPStatus: 500, Reason: "late"}, start) {
		t.Error("an older attempt's failure was noted while a later one is under way")
	}
	if !e.RecordFailedAttempt(head, ledger.FailedAttempt{Number: 2, At: start, HTTPStatus: 0, Reason: "timeout"}, next.Add(time.Hour)) || e.OutboxHead().Attempts != 2 {
		t.Errorf("%+v", e.OutboxHead())
	}
	if len(e.FailedAttempts) != 2 || e.FailedAttempts[0].Status != ledger.MessageWaiting || e.FailedAttempts[0].HTTPStatus != 503 || !e.FailedAttempts[1].At.Equal(start) {
		t.Errorf("remembered: %+v", e.FailedAttempts)
	}
	for i := range 2 * ledger.MaxAttempts {
		e.RecordFailedAttempt(head, ledger.FailedAttempt{Number: 3 + i, At: start}, next)
	}
	if len(e.FailedAttempts) != ledger.MaxAttempts || e.FailedAttempts[0].Number != 3+ledger.MaxAttempts {
		t.Errorf("%d remembered, from %+v", len(e.FailedAttempts), e.FailedAttempts[0])
	}
	if e.RecordFailedAttempt("another", ledger.FailedAttempt{Number: 3, At: start, HTTPStatus: 500, Reason: ""}, next) {
		t.Error("another notification's failure was noted")
	}
}

func TestDeadLetter(t *testing.T) {
	e := message(ledger.MessageWaiting, ledger.DeliveredToNetwork)
	head := id(e, ledger.MessageWaiting)
	if e.DeadLetter(head, "") || !e.DeadLetter(head, "attempts") || e.DeadLetter(head, "again") {
		t.Error("want a reason, once")
	}
	if e.OutboxHead().DeadReason != "attempts" || !e.DueAt.IsZero() || e.WakesRelay() || e.ClaimDelivery(start.Add(time.Hour), start) != nil ||
		e.RecordFailedAttempt(head, ledger.FailedAttempt{Number: 9, At: start, HTTPStatus: 500, Reason: ""}, start) || e.Park() || e.Unpark(start) {
		t.Errorf("%+v", e)
	}
	if !e.MarkDelivered(head, start) || e.Delivered[0].DeadReason != "" || !e.WakesRelay() {
		t.Error("a late 2xx counts all the same")
	}
}

func TestParkStopsTheClock(t *testing.T) {
	e := message(ledger.MessageWaiting)
	if !e.Park() || e.Park() || e.WakesRelay() || !e.DueAt.IsZero() || e.ClaimDelivery(start.Add(time.Hour), start) != nil {
		t.Errorf("parked: %+v", e)
	}
	now := start.Add(48 * time.Hour)
	if !e.Unpark(now) || e.Unpark(now) || !e.WakesRelay() || !e.DueAt.Equal(now.Add(ledger.FastLease)) {
		t.Errorf("unparked at attempt 0: %+v", e)
	}
	e.RecordFailedAttempt(e.OutboxHead().ID, ledger.FailedAttempt{Number: 1, At: start, HTTPStatus: 410, Reason: "gone"}, now)
	e.Park()
	if !e.Unpark(now) || e.WakesRelay() || !e.DueAt.Equal(now) || e.OutboxHead().Attempts != 1 {
		t.Errorf("unparked at attempt 1: %+v", e)
	}
	if empty := message(); empty.Park() || empty.Unpark(now) {
		t.Error("parked nothing")
	}
}

func TestReplayNotification(t *testing.T) {
	waiting, network, terminal := ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal
	now := start.Add(time.Hour)
	deliver := func(e *ledger.Entry, statuses ...ledger.Status) {
		for _, s := range statuses {
			e.MarkDelivered(id(e, s), start)
		}
	}
	cases := []struct {
		name   string
		before func(*ledger.Entry)
		replay ledger.Status
		found  bool
		outbox []ledger.Status
		told   []ledger.Status
		fast   bool
	}{
		{"a dead one", func(e *ledger.Entry) { e.DeadLetter(id(e, waiting), "attempts") }, waiting, true, []ledger.Status{waiting, network, terminal}, nil, true},
		{"one behind a dead one", func(e *ledger.Entry) { e.DeadLetter(id(e, waiting), "attempts") }, terminal, true, []ledger.Status{waiting, network, terminal}, nil, true},
		{"a parked one", func(e *ledger.Entry) { e.Park() }, waiting, true, []ledger.Status{waiting, network, terminal}, nil, true},
		{"one that is being tried", func(e *ledger.Entry) {
			e.RecordFailedAttempt(id(e, waiting), ledger.FailedAttempt{Number: 3, At: start, HTTPStatus: 500, Reason: ""}, now)
		}, waiting, true, []ledger.Status{waiting, network, terminal}, nil, true},
		{"one behind one that is being tried", func(e *ledger.Entry) {
			e.RecordFailedAttempt(id(e, waiting), ledger.FailedAttempt{Number: 3, At: start, HTTPStatus: 500, Reason: ""}, now)
		}, network, true, []ledger.Status{waiting, network, terminal}, nil, false},
		{"the last delivered", func(e *ledger.Entry) { deliver(e, waiting, network, terminal) }, terminal, true, []ledger.Status{terminal}, []ledger.Status{waiting, network}, true},
		{"an earlier delivered takes the later along", func(e *ledger.Entry) { deliver(e, waiting, network) }, waiting, true, []ledger.Status{waiting, network, terminal}, nil, true},
		{"no such one", func(*ledger.Entry) {}, ledger.DeliveryImpossible, false, []ledger.Status{waiting, network, terminal}, nil, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := message(waiting, network, terminal)
			c.before(e)
			if found := e.ReplayNotification(id(e, c.replay), now); found != c.found {
				t.Fatalf("found = %v", found)
			}
			if got := statusesOf(e.Outbox); !equal(got, c.outbox) {
				t.Errorf("outbox %v", got)
			}
			if got := statusesOf(e.Delivered); !equal(got, c.told) {
				t.Errorf("told %v", got)
			}
			if e.WakesRelay() != c.fast || e.DueAt.IsZero() {
				t.Errorf("fast %v, due %s", e.WakesRelay(), e.DueAt)
			}
		})
	}
}

func statusesOf(list []ledger.Notification) []ledger.Status {
	var statuses []ledger.Status
	for _, n := range list {
		statuses = append(statuses, n.Status)
	}
	return statuses
}

func equal(a, b []ledger.Status) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestRecordUserSMS(t *testing.T) {
	owed := func() *ledger.Entry {
		e := pendingPayment()
		e.ApplyFinalStatus(successful, start)
		e.MarkDelivered(e.OutboxHead().ID, start)
		return e
	}
	if e := owed(); !e.DueAt.Equal(start.Add(ledger.FastLease)) {
		t.Errorf("due %s", e.DueAt)
	}
	for _, end := range []ledger.UserSMSState{ledger.UserSMSSent, ledger.UserSMSFailed, ledger.UserSMSUnknown} {
		e := owed()
		if !e.RecordUserSMS(end, time.Time{}) || e.UserSMS != end || !e.DueAt.IsZero() || e.UserSMSAttempts != 0 {
			t.Errorf("%s: %+v", end, e)
		}
		if e.RecordUserSMS(ledger.UserSMSDue, start) {
			t.Errorf("%s: due again", end)
		}
	}
	e := owed()
	if !e.RecordUserSMS(ledger.UserSMSDue, start.Add(time.Hour)) || !e.DueAt.Equal(start.Add(time.Hour)) || e.UserSMSAttempts != 0 {
		t.Errorf("again: %+v", e)
	}
	at := start.Add(time.Hour)
	if e.ClaimUserSMS(at.Add(-time.Millisecond), at.Add(time.Minute)) {
		t.Error("claimed before it was due")
	}
	if !e.ClaimUserSMS(at, at.Add(time.Minute)) || e.UserSMSAttempts != 1 || !e.DueAt.Equal(at.Add(time.Minute)) {
		t.Errorf("claimed: %+v", e)
	}
	if e.ClaimUserSMS(at, at.Add(time.Minute)) {
		t.Error("claimed twice")
	}
}

// decision "notification-order": one image wakes the relay for a notification. A write that comes between, such as the
// status behind or a conflict, does not wake it again, or the first status could be posted after the second.
func TestTheRelayIsWokenOnce(t *testing.T) {
	b := newBench()
	request := b.request(ledger.SMS, "f")
	request.NotifyURL = "https://shop.example.com/"
	reservation, _, err := b.Reserve(context.Background(), request, anHour)
	if err != nil {
		t.Fatal(err)
	}
	receipt := func(s ledger.Status) *ledger.Entry {
		e, err := b.Change(context.Background(), reservation.Key, func(e *ledger.Entry) error { e.ApplyReceipt(s, b.Now()); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := receipt(ledger.DeliveredToNetwork); !e.WakesRelay() {
		t.Error("the first status does not wake the relay")
	}
	e := receipt(ledger.DeliveredToTerminal)
	if e.WakesRelay() || len(e.Outbox) != 2 {
		t.Errorf("the second status wakes the relay for the first: %+v", e.Outbox)
	}
	e, err = b.ChangeKnown(context.Background(), e, func(e *ledger.Entry) error { e.MarkDelivered(e.OutboxHead().ID, b.Now()); return nil })
	if err != nil || !e.WakesRelay() || e.OutboxHead().Status != ledger.DeliveredToTerminal {
		t.Errorf("the second status does not wake the relay: %+v, %v", e, err)
	}
}
