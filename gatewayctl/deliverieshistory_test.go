package gatewayctl

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
)

// addRetriedPayment stores a payment that was delivered at the second attempt, two seconds after its creation.
func (d *testTool) addRetriedPayment() *ledger.Entry {
	e := d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	e.Delivered[0].Attempts = 2
	e.FailedAttempts = []ledger.FailedAttempt{
		{Status: ledger.Successful, Number: 1, At: d.now.Add(time.Second), HTTPStatus: 503, Reason: "server"},
	}
	d.ledger.Overwrite(e)
	return e
}

// addReplayedPayment is addRetriedPayment, replayed an hour later.
func (d *testTool) addReplayedPayment() *ledger.Entry {
	e := d.addRetriedPayment()
	d.now = d.now.Add(time.Hour)
	d.apply("deliveries replay " + e.ID)
	return d.mustReadEntry(e.Key)
}

func TestDeliveriesShow(t *testing.T) {
	d := newTestTool(t)
	e := d.addRetriedPayment()
	id := ledger.NotificationID(e.Key, ledger.Successful)
	checkEqual(t, "attempts", query[deliveryHistory](d, "deliveries show "+e.ID).Attempts, []attemptView{
		{id, ledger.Successful, 1, d.now.Add(time.Second), "server", 503},
		{id, ledger.Successful, 2, d.now.Add(2 * time.Second), "delivered", 0},
	})
	d.expectOutput("deliveries show "+e.ID, "https://shop.example/n", "server 503")
	d.expectOutput("payment show "+e.ID, "delivery attempt failed", "attempt 1: server 503")
	d.expectExit("deliveries show ShopA_99", ExitFailed, "no payment")
}

// While a replayed notification waits, both histories show its first delivery and the replay.
func TestReplayKeepsEarlierAttempts(t *testing.T) {
	d := newTestTool(t)
	e := d.addReplayedPayment()
	failed := ledger.FailedAttempt{Number: 1, At: d.now.Add(time.Second), HTTPStatus: 500, Reason: "server"}
	e.RecordFailedAttempt(*e.HeadClaim(), failed, d.now.Add(time.Minute))
	d.ledger.Overwrite(e)
	id, first := e.Outbox[0].ID, d.now.Add(2*time.Second-time.Hour)
	history := query[deliveryHistory](d, "deliveries show "+e.ID)
	checkEqual(t, "attempts", history.Attempts, []attemptView{
		{id, ledger.Successful, 1, first.Add(-time.Second), "server", 503},
		{id, ledger.Successful, 2, first, "delivered", 0},
		{id, ledger.Successful, 1, d.now.Add(time.Second), "server", 500},
	})
	checkEqual(t, "replays", history.Replays, []replayView{{id, ledger.Successful, d.now, 2, first, ""}})
	n := history.Notifications[0]
	checkEqual(t, "state", n.State, deliveryWaiting)
	checkEqual(t, "first delivery", n.FirstDeliveredAt, first)
	checkEqual(t, "delivery", n.DeliveredAt, time.Time{})
	d.expectOutput("deliveries show "+e.ID, "waiting", "2026-03-01T12:00:02Z", // the state, and the first delivery
		"2026-03-01T12:00:01Z", "server 503", "2026-03-01T12:00:02Z", "delivered", "2026-03-01T13:00:00Z", "replayed",
		"2026-03-01T13:00:01Z", "server 500")
	d.expectOutput("payment show "+e.ID, "attempt 1: server 503", "first delivered at 2026-03-01T12:00:02Z",
		"2026-03-01T12:00:02Z  delivered", "attempt 2", "2026-03-01T13:00:00Z  replayed", "after 2 attempts",
		"attempt 1: server 500")
	if len(query[entryHistory](d, "payment show "+e.ID).Events) == 0 {
		t.Error("payment show --json has no events")
	}
}

// After a second delivery both deliveries are shown.
func TestReplayShowsBothDeliveries(t *testing.T) {
	d := newTestTool(t)
	e := d.addReplayedPayment()
	e.MarkDelivered(e.OutboxHead().ID, d.now.Add(3*time.Second))
	d.ledger.Overwrite(e)
	n := query[deliveryHistory](d, "deliveries show "+e.ID).Notifications[0]
	checkEqual(t, "state", n.State, deliveryDelivered)
	checkEqual(t, "delivery", n.DeliveredAt, d.now.Add(3*time.Second))
	checkEqual(t, "first delivery", n.FirstDeliveredAt, d.now.Add(2*time.Second-time.Hour))
	d.expectOutput("deliveries show "+e.ID,
		"12:00:01Z", "server 503", "12:00:02Z", "delivered", "13:00:00Z", "replayed", "13:00:03Z", "delivered")
	d.expectOutput("payment show "+e.ID, "12:00:02Z  delivered", "13:00:00Z  replayed", "13:00:03Z  delivered")
}

// A replayed dead letter keeps its reason.
func TestReplayOfDeadLetter(t *testing.T) {
	d := newTestTool(t)
	e := d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	e.Outbox, e.Delivered = e.Delivered, nil
	e.Outbox[0].DeliveredAt, e.Outbox[0].Attempts, e.Outbox[0].DeadReason = time.Time{}, 10, "attempts"
	d.ledger.Overwrite(e)
	d.now = d.now.Add(time.Hour)
	d.apply("deliveries replay " + e.ID)
	for _, command := range []string{"deliveries show ", "payment show "} {
		d.expectOutput(command+e.ID, "dead letter before: attempts")
		if _, out, _ := d.run(command + e.ID); strings.Contains(out, "delivered") {
			t.Errorf("%s shows a delivery that never was: %s", command, out)
		}
	}
	history := query[deliveryHistory](d, "deliveries show "+e.ID)
	checkEqual(t, "replays", history.Replays,
		[]replayView{{e.Outbox[0].ID, ledger.Successful, d.now, 10, time.Time{}, "attempts"}})
	checkEqual(t, "first delivery", history.Notifications[0].FirstDeliveredAt, time.Time{})
}

func TestDeliveriesList(t *testing.T) {
	d, shop := newShopTool(t)
	d.addDeliveredPayment(shop, 1, d.now)
	d.addDeliveredPayment(shop, 2, d.now.Add(-time.Hour))
	dead := d.addDeliveredPayment(shop, 3, d.now.Add(-day))
	at := d.now.Add(time.Minute)
	dead.Outbox = []ledger.Notification{
		{ID: "w", Status: "late", At: at, Attempts: 10, DeadReason: "attempts", LastReason: "server", LastStatus: 503},
	}
	d.ledger.Overwrite(dead)
	line := "deliveries list ShopA --from 2026-03-01T12:00:00Z --to 2026-03-02"
	for line, want := range map[string]int{
		line: 2, "deliveries list ShopA --from 2026-03-01 --to 2026-03-01": 3, line + " --state delivered": 1,
		line + " --state waiting": 0, line + " --state parked": 0,
	} {
		checkEqual(t, line, len(query[[]deliveryView](d, line)), want)
	}
	checkEqual(t, "dead letters", query[[]deliveryView](d, line+" --state dead-letter"), []deliveryView{{
		Kind: ledger.Payment, ID: dead.ID, WebhookID: "w", Status: "late", At: at, State: deliveryDeadLetter,
		Attempts:  10,
		LastError: "server", LastCode: 503, DeadReason: "attempts",
	}})
}
