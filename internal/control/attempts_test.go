package control

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// replayedOnce is a payment that was told at the second attempt, two seconds after noon, and replayed an hour later.
func (d *desk) replayedOnce() *ledger.Entry {
	e := d.payment(d.shop(), 1, d.now)
	e.Told[0].Attempt = 2
	e.Attempts = []ledger.Attempt{{Status: ledger.Successful, Number: 1, At: d.now.Add(time.Second), Code: 503, Why: "server"}}
	d.ledger.Put(e)
	d.now = d.now.Add(time.Hour)
	d.do("deliveries replay --id "+e.ID+yes, nil)
	return d.entry(e.Key)
}

// fails notes that the first attempt after the replay failed.
func fails(e *ledger.Entry, at time.Time) {
	e.FailedAttempt(e.Head().ID, ledger.Attempt{Number: 1, At: at, Code: 500, Why: "server"}, at.Add(time.Minute))
}

// While a replayed notification waits, both histories still tell when it was delivered first, and that it was replayed.
func TestAReplayHidesNothing(t *testing.T) {
	d := newDesk(t)
	e := d.replayedOnce()
	fails(e, d.now.Add(time.Second))
	d.ledger.Put(e)
	var shown deliveryHistory
	d.do("deliveries show "+e.ID, &shown)
	first := d.now.Add(2*time.Second - time.Hour)
	if n := shown.Notifications; len(n) != 1 || n[0].Standing != "waiting" || !n[0].FirstToldAt.Equal(first) || !n[0].ToldAt.IsZero() {
		t.Errorf("notifications: %+v", n)
	}
	if a := shown.Attempts; len(a) != 3 || a[1].Result != "delivered" || a[1].Number != 2 || !a[1].At.Equal(first) || a[2].Code != 500 {
		t.Errorf("attempts: %+v", a)
	}
	if r := shown.Replays; len(r) != 1 || !r[0].At.Equal(d.now) || r[0].Webhook != e.Outbox[0].ID || r[0].Attempts != 2 || !r[0].ToldAt.Equal(first) {
		t.Errorf("replays: %+v", r)
	}
	_, out, _ := d.run("deliveries show " + e.ID)
	inOrder(t, out, "waiting", "2026-03-01T12:00:02Z", // standing, and first told
		"2026-03-01T12:00:01Z", "server 503", "2026-03-01T12:00:02Z", "delivered", "2026-03-01T13:00:00Z", "replayed", "2026-03-01T13:00:01Z", "server 500")
	_, out, _ = d.run("payment show " + e.ID)
	inOrder(t, out, "attempt 1: server 503", "2026-03-01T12:00:02Z  told", "attempt 2", "2026-03-01T13:00:00Z  replayed", "after 2 attempts", "attempt 1: server 500")
	if !strings.Contains(out, "told before, first at 2026-03-01T12:00:02Z") {
		t.Errorf("what waits was told before: %s", out)
	}
	var view history
	if d.do("payment show "+e.ID, &view); len(view.Events) == 0 {
		t.Error("no events")
	}
}

// Once it is delivered again, both deliveries are told.
func TestBothDeliveriesOfAReplay(t *testing.T) {
	d := newDesk(t)
	e := d.replayedOnce()
	e.Delivered(e.Head().ID, d.now.Add(3*time.Second))
	d.ledger.Put(e)
	var shown deliveryHistory
	d.do("deliveries show "+e.ID, &shown)
	if n := shown.Notifications; len(n) != 1 || n[0].Standing != "told" || !n[0].ToldAt.Equal(d.now.Add(3*time.Second)) || n[0].FirstToldAt.Equal(n[0].ToldAt) {
		t.Errorf("notifications: %+v", n)
	}
	_, out, _ := d.run("deliveries show " + e.ID)
	inOrder(t, out, "12:00:01Z", "server 503", "12:00:02Z", "delivered", "13:00:00Z", "replayed", "13:00:03Z", "delivered")
	_, out, _ = d.run("payment show " + e.ID)
	inOrder(t, out, "12:00:02Z  told", "13:00:00Z  replayed", "13:00:03Z  told")
}

// What was given up and replayed tells why it had been.
func TestAReplayOfWhatWasGivenUp(t *testing.T) {
	d := newDesk(t)
	e := d.payment(d.shop(), 1, d.now)
	e.Outbox, e.Told = e.Told, nil
	e.Outbox[0].ToldAt, e.Outbox[0].Attempt, e.Outbox[0].Dead = time.Time{}, 10, "attempts"
	d.ledger.Put(e)
	d.now = d.now.Add(time.Hour)
	d.do("deliveries replay --id "+e.ID+yes, nil)
	for _, command := range []string{"deliveries show ", "payment show "} {
		_, out, _ := d.run(command + e.ID)
		if !strings.Contains(out, "given up before: attempts") || strings.Contains(out, "delivered") || strings.Contains(out, "told before") {
			t.Errorf("%s: %s", command, out)
		}
	}
	var shown deliveryHistory
	d.do("deliveries show "+e.ID, &shown)
	if r := shown.Replays; len(r) != 1 || r[0].GivenUp != "attempts" || r[0].Attempts != 10 || !r[0].ToldAt.IsZero() || !shown.Notifications[0].FirstToldAt.IsZero() {
		t.Errorf("%+v", shown)
	}
}

// inOrder fails unless the parts stand in a text one after the other.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, behind, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("%q is not there, or not in its place: %s", part, text)
		}
		rest = behind
	}
}
