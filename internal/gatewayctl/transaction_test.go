package gatewayctl

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

func (d *testTool) mustReadEntry(key ledger.Key) *ledger.Entry {
	d.t.Helper()
	e, err := d.ledger.Get(context.Background(), key)
	if err != nil || e == nil {
		d.t.Fatalf("%v: %v, %v", key, e, err)
	}
	return e
}

// addUnknownCharge places a charge whose outcome is unknown.
func (d *testTool) addUnknownCharge(shop onboardingResult, correlator string) ledger.Key {
	key := ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(shop.ID, correlator, "")}
	e := &ledger.Entry{
		Key: key, MerchantID: shop.ID, Merchant: shop.Name, Owner: "o", State: ledger.Unknown, EverUnknown: true, CreatedAt: d.now, Version: 2,
		AmountMinor: 150, Exponent: 2, Currency: "USD", Correlator: correlator, ReferenceCode: "=1+1", PollAt: d.now.Add(time.Hour), Operator: "sandbox",
	}
	e.Reschedule()
	d.ledger.Overwrite(e)
	return key
}

func TestShowAndList(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	e := d.addDeliveredPayment(shop, 1, d.now)
	e.Conflicts = []ledger.Conflict{{Status: ledger.Failed, Reason: "final", Source: "callback", At: d.now.Add(3 * time.Second)}}
	e.Outbox = []ledger.Notification{{ID: "w2", Status: "late", At: d.now.Add(4 * time.Second), Attempts: 2, DeadReason: "410", LastReason: "gone", LastStatus: 410}}
	e.NotifToken, e.MerchantState = "NOTIFTOKEN", "STATE"
	d.ledger.Overwrite(e)
	d.addUnknownCharge(shop, "c1")
	code, out, _ := d.run("payment show ShopA_1")
	for _, want := range []string{"********00", "created", "first sent", "final", "delivered", "conflict", "dead letter: 410", "1000", "with account a1"} {
		if code != ExitDone || !strings.Contains(out, want) {
			t.Errorf("show lacks %q: %s", want, out)
		}
	}
	if strings.Contains(out, "0707072000") || strings.Contains(out, "NOTIFTOKEN") {
		t.Errorf("show tells too much: %s", out)
	}
	var charge entryHistory
	d.mustRun("charge show --merchant ShopA --correlator c1", &charge)
	if charge.State != ledger.Unknown || charge.Amount != "1.50" {
		t.Errorf("charge: %+v", charge)
	}
	var views []entryView
	d.mustRun("list ShopA --day 2026-03-01", &views)
	if len(views) != 2 {
		t.Errorf("list: %+v", views)
	}
	d.mustRun("list ShopA --day 2026-03-01 --status unknown", &views)
	if len(views) != 1 || views[0].Kind != ledger.Charge {
		t.Errorf("unknown of the day: %+v", views)
	}
	d.mustRun("list ShopA --day 2026-03-02", &views)
	if len(views) != 0 {
		t.Errorf("the day after: %+v", views)
	}
	for _, bogus := range []string{"bogus", "Pending", "DONE"} {
		d.expectFailure("list ShopA --day 2026-03-01 --status "+bogus, ExitUsage, "pending, successful, failed")
	}
	for _, known := range []string{"pending", "MessageWaiting", "DeliveryNotificationNotSupported", "reserved", "released"} {
		d.mustRun("list ShopA --day 2026-03-01 --status "+known, nil)
	}
	d.expectFailure("payment show ShopA_9", ExitFailed, "no payment ShopA_9")
	d.expectFailure("sms show 1", ExitFailed, "no SMS 1")
	d.expectFailure("sms show", ExitUsage, "correlator")
}

func TestReplayOfARange(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	const count = 1000
	for i := range count {
		d.addDeliveredPayment(shop, i, d.now.Add(time.Duration(i)*time.Second))
	}
	before := d.addDeliveredPayment(shop, 9000, d.now.Add(-time.Hour))
	waiting := d.addDeliveredPayment(shop, 9001, d.now)
	waiting.Outbox, waiting.Delivered = waiting.Delivered, nil
	waiting.Outbox[0].DeliveredAt, waiting.Outbox[0].NextAttemptAt = time.Time{}, d.now.Add(time.Hour)
	d.ledger.Overwrite(waiting)
	d.now = d.now.Add(time.Hour)
	var result replayResult
	code, _, notes := d.run("deliveries replay --merchant ShopA --from 2026-03-01T12:00:00Z --to 2026-03-02" + confirmFlags)
	if code != ExitDone || !strings.Contains(notes, "900 of 1000") {
		t.Fatalf("exit %d, %s", code, notes)
	}
	for _, e := range d.ledger.All() {
		replayed := len(e.Outbox) == 1 && len(e.Delivered) == 0 && e.WakesRelay()
		if other := e.ID == before.ID || e.ID == waiting.ID; replayed == other && e.ID != waiting.ID {
			t.Fatalf("%s: outbox %+v, told %+v", e.ID, e.Outbox, e.Delivered)
		}
	}
	if e := d.mustReadEntry(waiting.Key); e.Version != waiting.Version {
		t.Error("what was under way was replayed")
	}
	d.mustRun("deliveries replay "+before.ID+confirmFlags, &result)
	if result.Queued != 1 {
		t.Errorf("by id: %+v", result)
	}
	d.expectFailure("deliveries replay "+before.ID+confirmFlags, ExitFailed, "nothing to send again")
	d.expectFailure("deliveries replay ShopA_99999", ExitFailed, "no payment")
	d.expectFailure("deliveries replay --merchant ShopA", ExitUsage, "--from")
	d.expectFailure("deliveries replay --merchant ShopA --from x --to 2026-03-02", ExitUsage, "neither a day")
}

func TestPartiallyFailedReplay(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	for i := range 3 {
		d.addDeliveredPayment(shop, i, d.now)
	}
	d.ledger.InjectFaults(func(c ledgermem.Call) ledgermem.InjectedFault {
		if c.Operation == ledgermem.Replace && c.Key.ID == "ShopA_1" {
			return ledgermem.FailedBeforeApply
		}
		return ledgermem.NoFault
	})
	d.expectFailure("deliveries replay --merchant ShopA --from 2026-03-01 --to 2026-03-02"+confirmFlags, ExitFailed, "pay#ShopA_1")
	for _, r := range d.audit.records {
		if r.What == "replay deliveries" && (r.Outcome != OutcomeFailed || !strings.Contains(r.Detail, "2 of 3")) {
			t.Errorf("record: %+v", r)
		}
	}
}

func TestTimeRangesAreConsistent(t *testing.T) {
	d := newTestTool(t)
	d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	file := filepath.Join(t.TempDir(), "out")
	for _, command := range []string{
		"list ShopA", "deliveries list ShopA", "deliveries replay --merchant ShopA", "unknown list ShopA", "export ShopA --output " + file,
	} {
		d.mustRun(command+" --from 2026-03-01 --to 2026-03-01", nil)
		d.expectFailure(command+" --from 2026-03-02 --to 2026-03-01", ExitUsage, "range is empty")
		d.expectFailure(command+" --from 2026-03-02 --to 2026-3-2", ExitUsage, "2026-3-2")
		d.expectFailure(command+" --from 2026-03-02", ExitUsage, "--to")
	}
	for _, command := range []string{"deliveries list ShopA", "deliveries replay --merchant ShopA"} {
		d.expectFailure(command+" --from 2026-03-01T12:00:00Z --to 2026-03-01T12:00:00Z", ExitUsage, "range is empty")
	}
}

func TestEndpoint(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shop.NotifURL}
	d.expectFailure("endpoint enable ShopA"+confirmFlags, ExitFailed, "enabled")
	if _, out, _ := d.run("endpoint show ShopA"); strings.Contains(out, "last status") {
		t.Errorf("a status that never came: %s", out)
	}
	d.health[at] = webhook.Health{Endpoint: at, Version: 4, Failures: 7, LastReason: "gone", LastStatus: 410, DisabledAt: d.now}
	parked := d.addDeliveredPayment(shop, 1, d.now)
	parked.Outbox, parked.Delivered = []ledger.Notification{{ID: "w", Status: "successful", At: d.now, Parked: true}}, nil
	d.ledger.Overwrite(parked)
	d.now = d.now.Add(48 * time.Hour)
	var view endpointView
	d.mustRun("merchant add ShopB --country ci --operator sandbox"+confirmFlags, nil)
	for _, command := range []string{"endpoint show", "endpoint enable"} {
		d.expectFailure(command+" ShopB", ExitFailed, "no notif_url of its own")
	}
	d.mustRun("endpoint show ShopA", &view)
	if view.Enabled || view.LastStatus != 410 {
		t.Errorf("show: %+v", view)
	}
	d.mustRun("endpoint enable ShopA", nil)
	if d.health[at].Enabled() || !d.mustReadEntry(parked.Key).Outbox[0].Parked {
		t.Error("a dry run enabled the endpoint")
	}
	d.mustRun("endpoint enable ShopA"+confirmFlags, &view)
	if !view.Enabled || !d.health[at].Enabled() || d.mustReadEntry(parked.Key).Outbox[0].Parked {
		t.Errorf("enabled: %+v", view)
	}
}

func TestDeliveriesShow(t *testing.T) {
	d := newTestTool(t)
	e := d.addDeliveredPayment(d.onboardShop(), 1, d.now)
	e.Delivered[0].Attempts = 2
	e.FailedAttempts = []ledger.FailedAttempt{{Status: ledger.Successful, Number: 1, At: d.now.Add(time.Second), HTTPStatus: 503, Reason: "server"}}
	d.ledger.Overwrite(e)
	var shown deliveryHistory
	d.mustRun("deliveries show "+e.ID, &shown)
	if len(shown.Notifications) != 1 || len(shown.Attempts) != 2 || shown.Attempts[0].Code != 503 || shown.Attempts[1].Result != "delivered" ||
		shown.Attempts[0].WebhookID != shown.Attempts[1].WebhookID {
		t.Errorf("%+v", shown)
	}
	if _, out, _ := d.run("deliveries show " + e.ID); !strings.Contains(out, "server 503") || !strings.Contains(out, "https://shop.example/n") {
		t.Errorf("%s", out)
	}
	if _, out, _ := d.run("payment show " + e.ID); !strings.Contains(out, "attempt 1: server 503") {
		t.Errorf("%s", out)
	}
	d.expectFailure("deliveries show ShopA_99", ExitFailed, "no payment")
}

func TestDeliveriesList(t *testing.T) {
	d := newTestTool(t)
	shop := d.onboardShop()
	d.addDeliveredPayment(shop, 1, d.now)
	d.addDeliveredPayment(shop, 2, d.now.Add(-time.Hour))
	dead := d.addDeliveredPayment(shop, 3, d.now.Add(-day))
	dead.Outbox = []ledger.Notification{{ID: "w", Status: "late", At: d.now.Add(time.Minute), Attempts: 10, DeadReason: "attempts", LastReason: "server", LastStatus: 503}}
	d.ledger.Overwrite(dead)
	line := "deliveries list ShopA --from 2026-03-01T12:00:00Z --to 2026-03-02"
	var views []deliveryView
	d.mustRun(line, &views)
	if len(views) != 2 {
		t.Errorf("list: %+v", views)
	}
	d.mustRun("deliveries list ShopA --from 2026-03-01 --to 2026-03-01", &views)
	if len(views) != 3 {
		t.Errorf("the day: %+v", views)
	}
	views = nil
	d.mustRun(line+" --state dead-letter", &views)
	if len(views) != 1 || views[0].ID != dead.ID || views[0].Attempts != 10 || views[0].LastCode != 503 {
		t.Errorf("dead: %+v", views)
	}
}
