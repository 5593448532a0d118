package control

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

func (d *desk) entry(key ledger.Key) *ledger.Entry {
	d.t.Helper()
	e, err := d.ledger.Get(context.Background(), key)
	if err != nil || e == nil {
		d.t.Fatalf("%v: %v, %v", key, e, err)
	}
	return e
}

// unknownCharge places a charge whose outcome is unknown.
func (d *desk) unknownCharge(shop onboarded, correlator string) ledger.Key {
	key := ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(shop.ID, correlator, "")}
	e := &ledger.Entry{
		Key: key, MerchantID: shop.ID, Merchant: shop.Name, Owner: "o", State: ledger.Unknown, EverUnknown: true, CreatedAt: d.now, Version: 2,
		Minor: 150, Exponent: 2, Currency: "USD", Correlator: correlator, ReferenceCode: "=1+1", PollAt: d.now.Add(time.Hour), Operator: "sandbox",
	}
	e.Reschedule()
	d.ledger.Put(e)
	return key
}

func TestShowAndList(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	e := d.payment(shop, 1, d.now)
	e.Conflicts = []ledger.Conflict{{Status: ledger.Failed, Reason: "final", Source: "callback", At: d.now.Add(3 * time.Second)}}
	e.Outbox = []ledger.Notification{{ID: "w2", Status: "late", At: d.now.Add(4 * time.Second), Attempt: 2, Dead: "410", LastWhy: "gone", LastCode: 410}}
	e.NotifToken, e.MerchantState = "NOTIFTOKEN", "STATE"
	d.ledger.Put(e)
	d.unknownCharge(shop, "c1")
	code, out, _ := d.run("payment show ShopA_1")
	for _, want := range []string{"********00", "created", "first sent", "final", "told", "conflict", "given up: 410", "1000", "by account a1"} {
		if code != ExitDone || !strings.Contains(out, want) {
			t.Errorf("show lacks %q: %s", want, out)
		}
	}
	if strings.Contains(out, "0707072000") || strings.Contains(out, "NOTIFTOKEN") {
		t.Errorf("show tells too much: %s", out)
	}
	var charge history
	d.do("charge show --merchant ShopA --correlator c1", &charge)
	if charge.State != ledger.Unknown || charge.Amount != "1.50" {
		t.Errorf("charge: %+v", charge)
	}
	var views []entryView
	d.do("list --merchant ShopA --day 2026-03-01", &views)
	if len(views) != 2 {
		t.Errorf("list: %+v", views)
	}
	d.do("list --merchant ShopA --day 2026-03-01 --status unknown", &views)
	if len(views) != 1 || views[0].Kind != ledger.Charge {
		t.Errorf("unknown of the day: %+v", views)
	}
	d.do("list --merchant ShopA --day 2026-03-02", &views)
	if len(views) != 0 {
		t.Errorf("the day after: %+v", views)
	}
	for _, bogus := range []string{"bogus", "Pending", "DONE"} {
		d.refused("list --merchant ShopA --day 2026-03-01 --status "+bogus, ExitUsage, "pending, successful, failed")
	}
	for _, known := range []string{"pending", "MessageWaiting", "DeliveryNotificationNotSupported", "reserved", "released"} {
		d.do("list --merchant ShopA --day 2026-03-01 --status "+known, nil)
	}
	d.refused("payment show ShopA_9", ExitFailed, "no payment ShopA_9")
	d.refused("sms show 1", ExitFailed, "no SMS 1")
	d.refused("sms show", ExitUsage, "correlator")
}

func TestReplayOfARange(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	const count = 1000
	for i := range count {
		d.payment(shop, i, d.now.Add(time.Duration(i)*time.Second))
	}
	before := d.payment(shop, 9000, d.now.Add(-time.Hour))
	waiting := d.payment(shop, 9001, d.now)
	waiting.Outbox, waiting.Told = waiting.Told, nil
	waiting.Outbox[0].ToldAt, waiting.Outbox[0].Next = time.Time{}, d.now.Add(time.Hour)
	d.ledger.Put(waiting)
	d.now = d.now.Add(time.Hour)
	var result replayed
	code, _, notes := d.run("deliveries replay --merchant ShopA --from 2026-03-01T12:00:00Z --to 2026-03-02" + yes)
	if code != ExitDone || !strings.Contains(notes, "900 of 1000") {
		t.Fatalf("exit %d, %s", code, notes)
	}
	for _, e := range d.ledger.All() {
		replayed := len(e.Outbox) == 1 && len(e.Told) == 0 && e.Fast()
		if other := e.ID == before.ID || e.ID == waiting.ID; replayed == other && e.ID != waiting.ID {
			t.Fatalf("%s: outbox %+v, told %+v", e.ID, e.Outbox, e.Told)
		}
	}
	if e := d.entry(waiting.Key); e.Version != waiting.Version {
		t.Error("what was under way was replayed")
	}
	d.do("deliveries replay --id "+before.ID+yes, &result)
	if result.Queued != 1 {
		t.Errorf("by id: %+v", result)
	}
	d.refused("deliveries replay --id "+before.ID+yes, ExitFailed, "nothing to be sent")
	d.refused("deliveries replay --id ShopA_99999", ExitFailed, "no payment")
	d.refused("deliveries replay --merchant ShopA", ExitUsage, "--from")
	d.refused("deliveries replay --merchant ShopA --from x --to 2026-03-02", ExitUsage, "moment")
}

func TestReplayThatFailsHalfWay(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	for i := range 3 {
		d.payment(shop, i, d.now)
	}
	d.ledger.SetFaults(func(c ledgermem.Call) ledgermem.Fault {
		if c.Operation == ledgermem.Replace && c.Key.ID == "ShopA_1" {
			return ledgermem.Error
		}
		return ledgermem.None
	})
	d.refused("deliveries replay --merchant ShopA --from 2026-03-01 --to 2026-03-02"+yes, ExitFailed, "pay#ShopA_1")
	for _, r := range d.audit.records {
		if r.What == "replay deliveries" && (r.Outcome != OutcomeFailed || !strings.Contains(r.Detail, "2 of 3")) {
			t.Errorf("record: %+v", r)
		}
	}
}

func TestRangesMeanTheSameEverywhere(t *testing.T) {
	d := newDesk(t)
	d.payment(d.shop(), 1, d.now)
	file := filepath.Join(t.TempDir(), "out")
	for _, command := range []string{"deliveries list", "deliveries replay", "unknown list", "export --output " + file} {
		d.do(command+" --merchant ShopA --from 2026-03-01 --to 2026-03-01", nil)
		d.refused(command+" --merchant ShopA --from 2026-03-02 --to 2026-03-01", ExitUsage, "between")
		d.refused(command+" --merchant ShopA --from 2026-03-02 --to 2026-3-2", ExitUsage, "2026-3-2")
	}
	for _, command := range []string{"deliveries list", "deliveries replay"} {
		d.refused(command+" --merchant ShopA --from 2026-03-01T12:00:00Z --to 2026-03-01T12:00:00Z", ExitUsage, "between")
	}
}

func TestEndpoint(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shop.NotifURL}
	d.refused("endpoint enable --merchant ShopA"+yes, ExitFailed, "enabled")
	if _, out, _ := d.run("endpoint show --merchant ShopA"); !strings.Contains(out, "its status\n") {
		t.Errorf("a status that never came: %s", out)
	}
	d.health[at] = webhook.Health{Endpoint: at, Version: 4, Failures: 7, LastWhy: "gone", LastStatus: 410, DisabledAt: d.now}
	parked := d.payment(shop, 1, d.now)
	parked.Outbox, parked.Told = []ledger.Notification{{ID: "w", Status: "successful", At: d.now, Parked: true}}, nil
	d.ledger.Put(parked)
	d.now = d.now.Add(48 * time.Hour)
	var view endpointView
	d.do("merchant add ShopB --country ci --operator sandbox"+yes, nil)
	for _, command := range []string{"endpoint show", "endpoint enable"} {
		d.refused(command+" --merchant ShopB", ExitFailed, "no notif_url of its own")
	}
	d.do("endpoint show --merchant ShopA", &view)
	if view.Enabled || view.LastStatus != 410 {
		t.Errorf("show: %+v", view)
	}
	d.do("endpoint enable --merchant ShopA", nil)
	if d.health[at].Enabled() || !d.entry(parked.Key).Outbox[0].Parked {
		t.Error("a dry run enabled the endpoint")
	}
	d.do("endpoint enable --merchant ShopA"+yes, &view)
	if !view.Enabled || !d.health[at].Enabled() || d.entry(parked.Key).Outbox[0].Parked {
		t.Errorf("enabled: %+v", view)
	}
}

func TestDeliveriesShow(t *testing.T) {
	d := newDesk(t)
	e := d.payment(d.shop(), 1, d.now)
	e.Told[0].Attempt = 2
	e.Attempts = []ledger.Attempt{{Status: ledger.Successful, Number: 1, At: d.now.Add(time.Second), Code: 503, Why: "server"}}
	d.ledger.Put(e)
	var shown deliveryHistory
	d.do("deliveries show "+e.ID, &shown)
	if len(shown.Notifications) != 1 || len(shown.Attempts) != 2 || shown.Attempts[0].Code != 503 || shown.Attempts[1].Result != "delivered" ||
		shown.Attempts[0].Webhook != shown.Attempts[1].Webhook {
		t.Errorf("%+v", shown)
	}
	if _, out, _ := d.run("deliveries show " + e.ID); !strings.Contains(out, "server 503") || !strings.Contains(out, "https://shop.example/n") {
		t.Errorf("%s", out)
	}
	if _, out, _ := d.run("payment show " + e.ID); !strings.Contains(out, "attempt 1: server 503") {
		t.Errorf("%s", out)
	}
	d.refused("deliveries show ShopA_99", ExitFailed, "no payment")
}

func TestDeliveriesList(t *testing.T) {
	d := newDesk(t)
	shop := d.shop()
	d.payment(shop, 1, d.now)
	d.payment(shop, 2, d.now.Add(-time.Hour))
	dead := d.payment(shop, 3, d.now.Add(-day))
	dead.Outbox = []ledger.Notification{{ID: "w", Status: "late", At: d.now.Add(time.Minute), Attempt: 10, Dead: "attempts", LastWhy: "server", LastCode: 503}}
	d.ledger.Put(dead)
	line := "deliveries list --merchant ShopA --from 2026-03-01T12:00:00Z --to 2026-03-02"
	var views []deliveryView
	d.do(line, &views)
	if len(views) != 2 {
		t.Errorf("list: %+v", views)
	}
	d.do("deliveries list --merchant ShopA --from 2026-03-01 --to 2026-03-01", &views)
	if len(views) != 3 {
		t.Errorf("the day: %+v", views)
	}
	views = nil
	d.do(line+" --standing dead", &views)
	if len(views) != 1 || views[0].ID != dead.ID || views[0].Attempts != 10 || views[0].LastCode != 503 {
		t.Errorf("dead: %+v", views)
	}
}
