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
	e := held(ledger.SMS)
	e.Settle("owner", done, start)
	for _, s := range statuses {
		e.Receipt(s, start)
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
	if claimed == nil || claimed.Attempt != 1 || !e.Due.Equal(next) || e.Fast() {
		t.Fatalf("claimed %+v, due %s", claimed, e.Due)
	}
	if e.ClaimDelivery(lease, next) != nil {
		t.Error("claimed twice")
	}
	if again := e.ClaimDelivery(next, next.Add(time.Minute)); again == nil || again.Attempt != 2 || again.ID != claimed.ID {
		t.Errorf("the next attempt: %+v", again)
	}
	empty := message()
	if empty.ClaimDelivery(lease, next) != nil {
		t.Error("claimed nothing")
	}
}

func TestDelivered(t *testing.T) {
	e := message(ledger.MessageWaiting, ledger.DeliveredToNetwork)
	now := start.Add(time.Second)
	if e.Delivered(id(e, ledger.DeliveredToNetwork), now) {
		t.Error("the second before the first")
	}
	if !e.Delivered(id(e, ledger.MessageWaiting), now) || e.Head().Status != ledger.DeliveredToNetwork ||
		!e.Due.Equal(now.Add(ledger.FastLease)) || !e.Fast() {
		t.Errorf("%+v", e)
	}
	if e.Delivered(id(e, ledger.MessageWaiting), now) {
		t.Error("the first twice")
	}
	if told := e.Told[0]; told.Status != ledger.MessageWaiting || told.Attempt != 1 || !told.ToldAt.Equal(now) || !told.Next.IsZero() {
		t.Errorf("told %+v", told)
	}
}

func TestToldIsBounded(t *testing.T) {
	e := message(ledger.MessageWaiting)
	for range 2 * ledger.MaxTold {
		e.Outbox = []ledger.Notification{{ID: "n"}}
		e.Delivered("n", start)
	}
	if len(e.Told) != ledger.MaxTold {
		t.Errorf("%d remembered", len(e.Told))
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
	if !e.Postpone(head, due, next) || e.Head().Attempt != 0 || !e.Due.Equal(next) {
		t.Errorf("%+v", e)
	}
	e.Park()
	if e.Postpone(head, next.Add(time.Hour), next.Add(2*time.Hour)) {
		t.Error("postponed what is parked")
	}
}

func TestFailedAttempt(t *testing.T) {
	next := start.Add(time.Hour)
	e := message(ledger.MessageWaiting)
	head := id(e, ledger.MessageWaiting)
	if !e.FailedAttempt(head, ledger.Attempt{Number: 1, At: start, Code: 503, Why: strings.Repeat("y", 500)}, next) {
		t.Fatal("the relay's own failure was not noted")
	}
	if n := e.Head(); n.Attempt != 1 || n.LastCode != 503 || len(n.LastWhy) > 255 || !e.Due.Equal(next) || e.Fast() {
		t.Errorf("%+v", n)
	}
	e.ClaimDelivery(next, next.Add(time.Minute))
	if e.FailedAttempt(head, ledger.Attempt{Number: 1, At: start, Code: 500, Why: "late"}, start) {
		t.Error("an older attempt's failure was noted while a later one is under way")
	}
	if !e.FailedAttempt(head, ledger.Attempt{Number: 2, At: start, Code: 0, Why: "timeout"}, next.Add(time.Hour)) || e.Head().Attempt != 2 {
		t.Errorf("%+v", e.Head())
	}
	if len(e.Attempts) != 2 || e.Attempts[0].Status != ledger.MessageWaiting || e.Attempts[0].Code != 503 || !e.Attempts[1].At.Equal(start) {
		t.Errorf("remembered: %+v", e.Attempts)
	}
	for i := range 2 * ledger.MaxAttempts {
		e.FailedAttempt(head, ledger.Attempt{Number: 3 + i, At: start}, next)
	}
	if len(e.Attempts) != ledger.MaxAttempts || e.Attempts[0].Number != 3+ledger.MaxAttempts {
		t.Errorf("%d remembered, from %+v", len(e.Attempts), e.Attempts[0])
	}
	if e.FailedAttempt("another", ledger.Attempt{Number: 3, At: start, Code: 500, Why: ""}, next) {
		t.Error("another notification's failure was noted")
	}
}

func TestDeadLetter(t *testing.T) {
	e := message(ledger.MessageWaiting, ledger.DeliveredToNetwork)
	head := id(e, ledger.MessageWaiting)
	if e.DeadLetter(head, "") || !e.DeadLetter(head, "attempts") || e.DeadLetter(head, "again") {
		t.Error("want a reason, once")
	}
	if e.Head().Dead != "attempts" || !e.Due.IsZero() || e.Fast() || e.ClaimDelivery(start.Add(time.Hour), start) != nil ||
		e.FailedAttempt(head, ledger.Attempt{Number: 9, At: start, Code: 500, Why: ""}, start) || e.Park() || e.Unpark(start) {
		t.Errorf("%+v", e)
	}
	if !e.Delivered(head, start) || e.Told[0].Dead != "" || !e.Fast() {
		t.Error("a late 2xx counts all the same")
	}
}

func TestParkStopsTheClock(t *testing.T) {
	e := message(ledger.MessageWaiting)
	if !e.Park() || e.Park() || e.Fast() || !e.Due.IsZero() || e.ClaimDelivery(start.Add(time.Hour), start) != nil {
		t.Errorf("parked: %+v", e)
	}
	now := start.Add(48 * time.Hour)
	if !e.Unpark(now) || e.Unpark(now) || !e.Fast() || !e.Due.Equal(now.Add(ledger.FastLease)) {
		t.Errorf("unparked at attempt 0: %+v", e)
	}
	e.FailedAttempt(e.Head().ID, ledger.Attempt{Number: 1, At: start, Code: 410, Why: "gone"}, now)
	e.Park()
	if !e.Unpark(now) || e.Fast() || !e.Due.Equal(now) || e.Head().Attempt != 1 {
		t.Errorf("unparked at attempt 1: %+v", e)
	}
	if empty := message(); empty.Park() || empty.Unpark(now) {
		t.Error("parked nothing")
	}
}

func TestReplay(t *testing.T) {
	waiting, network, terminal := ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal
	now := start.Add(time.Hour)
	deliver := func(e *ledger.Entry, statuses ...ledger.Status) {
		for _, s := range statuses {
			e.Delivered(id(e, s), start)
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
			e.FailedAttempt(id(e, waiting), ledger.Attempt{Number: 3, At: start, Code: 500, Why: ""}, now)
		}, waiting, true, []ledger.Status{waiting, network, terminal}, nil, true},
		{"one behind one that is being tried", func(e *ledger.Entry) {
			e.FailedAttempt(id(e, waiting), ledger.Attempt{Number: 3, At: start, Code: 500, Why: ""}, now)
		}, network, true, []ledger.Status{waiting, network, terminal}, nil, false},
		{"the last delivered", func(e *ledger.Entry) { deliver(e, waiting, network, terminal) }, terminal, true, []ledger.Status{terminal}, []ledger.Status{waiting, network}, true},
		{"an earlier delivered takes the later along", func(e *ledger.Entry) { deliver(e, waiting, network) }, waiting, true, []ledger.Status{waiting, network, terminal}, nil, true},
		{"no such one", func(*ledger.Entry) {}, ledger.DeliveryImpossible, false, []ledger.Status{waiting, network, terminal}, nil, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := message(waiting, network, terminal)
			c.before(e)
			if found := e.Replay(id(e, c.replay), now); found != c.found {
				t.Fatalf("found = %v", found)
			}
			if got := statusesOf(e.Outbox); !equal(got, c.outbox) {
				t.Errorf("outbox %v", got)
			}
			if got := statusesOf(e.Told); !equal(got, c.told) {
				t.Errorf("told %v", got)
			}
			if e.Fast() != c.fast || e.Due.IsZero() {
				t.Errorf("fast %v, due %s", e.Fast(), e.Due)
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

func TestMarkUserSMS(t *testing.T) {
	owed := func() *ledger.Entry {
		e := pendingPayment()
		e.Resolve(successful, start)
		e.Delivered(e.Head().ID, start)
		return e
	}
	if e := owed(); !e.Due.Equal(start.Add(ledger.FastLease)) {
		t.Errorf("due %s", e.Due)
	}
	for _, end := range []ledger.UserSMSState{ledger.UserSMSSent, ledger.UserSMSFailed, ledger.UserSMSUnknown} {
		e := owed()
		if !e.MarkUserSMS(end, time.Time{}) || e.UserSMS != end || !e.Due.IsZero() || e.UserSMSTry != 0 {
			t.Errorf("%s: %+v", end, e)
		}
		if e.MarkUserSMS(ledger.UserSMSDue, start) {
			t.Errorf("%s: due again", end)
		}
	}
	e := owed()
	if !e.MarkUserSMS(ledger.UserSMSDue, start.Add(time.Hour)) || !e.Due.Equal(start.Add(time.Hour)) || e.UserSMSTry != 0 {
		t.Errorf("again: %+v", e)
	}
	at := start.Add(time.Hour)
	if e.ClaimUserSMS(at.Add(-time.Millisecond), at.Add(time.Minute)) {
		t.Error("claimed before it was due")
	}
	if !e.ClaimUserSMS(at, at.Add(time.Minute)) || e.UserSMSTry != 1 || !e.Due.Equal(at.Add(time.Minute)) {
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
	held, _, err := b.Hold(context.Background(), request, anHour)
	if err != nil {
		t.Fatal(err)
	}
	receipt := func(s ledger.Status) *ledger.Entry {
		e, err := b.Change(context.Background(), held.Key, func(e *ledger.Entry) error { e.Receipt(s, b.Now()); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := receipt(ledger.DeliveredToNetwork); !e.Fast() {
		t.Error("the first status does not wake the relay")
	}
	e := receipt(ledger.DeliveredToTerminal)
	if e.Fast() || len(e.Outbox) != 2 {
		t.Errorf("the second status wakes the relay for the first: %+v", e.Outbox)
	}
	e, err = b.Apply(context.Background(), e, func(e *ledger.Entry) error { e.Delivered(e.Head().ID, b.Now()); return nil })
	if err != nil || !e.Fast() || e.Head().Status != ledger.DeliveredToTerminal {
		t.Errorf("the second status does not wake the relay: %+v, %v", e, err)
	}
}
