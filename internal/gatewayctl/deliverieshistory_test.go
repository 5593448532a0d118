package gatewayctl

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// addReplayedPayment is a payment that was told at the second attempt, two seconds after noon, and replayed an hour
// later.
func (d *testTool) addReplayedPayment() *ledger.Entry {
	e := d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	e.Delivered[0].Attempts = 2
	e.FailedAttempts = []ledger.FailedAttempt{{Status: ledger.Successful, Number: 1, At: d.now.Add(time.Second), HTTPStatus: 503, Reason: "server"}}
	d.ledger.Overwrite(e)
	d.now = d.now.Add(time.Hour)
	d.mustRun("deliveries replay "+e.ID+confirmFlags, nil)
	return d.mustReadEntry(e.Key)
}

// addFailedAttempt notes that the first attempt after the replay failed.
func addFailedAttempt(e *ledger.Entry, at time.Time) {
	e.RecordFailedAttempt(e.OutboxHead().ID, ledger.FailedAttempt{Number: 1, At: at, HTTPStatus: 500, Reason: "server"}, at.Add(time.Minute))
}

// While a replayed notification waits, both histories still tell when it was delivered first, and that it was replayed.
func TestReplayKeepsEarlierAttempts(t *testing.T) {
	d := newTestTool(t)
	e := d.addReplayedPayment()
	addFailedAttempt(e, d.now.Add(time.Second))
	d.ledger.Overwrite(e)
	var shown deliveryHistory
	d.mustRun("deliveries show "+e.ID, &shown)
	first := d.now.Add(2*time.Second - time.Hour)
	if n := shown.Notifications; len(n) != 1 || n[0].State != "waiting" || !n[0].FirstDeliveredAt.Equal(first) || !n[0].DeliveredAt.IsZero() {
		t.Errorf("notifications: %+v", n)
	}
	if a := shown.Attempts; len(a) != 3 || a[1].Result != "delivered" || a[1].Number != 2 || !a[1].At.Equal(first) || a[2].Code != 500 {
		t.Errorf("attempts: %+v", a)
	}
	if r := shown.Replays; len(r) != 1 || !r[0].At.Equal(d.now) || r[0].WebhookID != e.Outbox[0].ID || r[0].AttemptsBefore != 2 || !r[0].DeliveredBefore.Equal(first) {
		t.Errorf("replays: %+v", r)
	}
	_, out, _ := d.run("deliveries show " + e.ID)
	containsInOrder(t, out, "waiting", "2026-03-01T12:00:02Z", // standing, and first told
		"2026-03-01T12:00:01Z", "server 503", "2026-03-01T12:00:02Z", "delivered", "2026-03-01T13:00:00Z", "replayed", "2026-03-01T13:00:01Z", "server 500")
	_, out, _ = d.run("payment show " + e.ID)
	containsInOrder(t, out, "attempt 1: server 503", "2026-03-01T12:00:02Z  delivered", "attempt 2", "2026-03-01T13:00:00Z  replayed", "after 2 attempts", "attempt 1: server 500")
	if !strings.Contains(out, "first delivered at 2026-03-01T12:00:02Z") {
		t.Errorf("what waits was told before: %s", out)
	}
	var view entryHistory
	if d.mustRun("payment show "+e.ID, &view); len(view.Events) == 0 {
		t.Error("no events")
	}
}

// Once it is delivered again, both deliveries are told.
func TestReplayShowsBothDeliveries(t *testing.T) {
	d := newTestTool(t)
	e := d.addReplayedPayment()
	e.MarkDelivered(e.OutboxHead().ID, d.now.Add(3*time.Second))
	d.ledger.Overwrite(e)
	var shown deliveryHistory
	d.mustRun("deliveries show "+e.ID, &shown)
	if n := shown.Notifications; len(n) != 1 || n[0].State != "delivered" || !n[0].DeliveredAt.Equal(d.now.Add(3*time.Second)) || n[0].FirstDeliveredAt.Equal(n[0].DeliveredAt) {
		t.Errorf("notifications: %+v", n)
	}
	_, out, _ := d.run("deliveries show " + e.ID)
	containsInOrder(t, out, "12:00:01Z", "server 503", "12:00:02Z", "delivered", "13:00:00Z", "replayed", "13:00:03Z", "delivered")
	_, out, _ = d.run("payment show " + e.ID)
	containsInOrder(t, out, "12:00:02Z  delivered", "13:00:00Z  replayed", "13:00:03Z  delivered")
}

// What was given up and replayed tells why it had been.
func TestReplayOfDeadLetter(t *testing.T) {
	d := newTestTool(t)
	e := d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	e.Outbox, e.Delivered = e.Delivered, nil
	e.Outbox[0].DeliveredAt, e.Outbox[0].Attempts, e.Outbox[0].DeadReason = time.Time{}, 10, "attempts"
	d.ledger.Overwrite(e)
	d.now = d.now.Add(time.Hour)
	d.mustRun("deliveries replay "+e.ID+confirmFlags, nil)
	for _, command := range []string{"deliveries show ", "payment show "} {
		_, out, _ := d.run(command + e.ID)
		if !strings.Contains(out, "dead letter before: attempts") || strings.Contains(out, "delivered") {
			t.Errorf("%s: %s", command, out)
		}
	}
	var shown deliveryHistory
	d.mustRun("deliveries show "+e.ID, &shown)
	if r := shown.Replays; len(r) != 1 || r[0].DeadReasonBefore != "attempts" || r[0].AttemptsBefore != 10 || !r[0].DeliveredBefore.IsZero() || !shown.Notifications[0].FirstDeliveredAt.IsZero() {
		t.Errorf("%+v", shown)
	}
}

// containsInOrder fails unless the parts stand in a text one after the other.
func containsInOrder(t *testing.T, text string, parts ...string) {
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
