package gatewayctl

import (
	"context"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

func TestEndpoint(t *testing.T) {
	d, shop := newShopTool(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shop.NotifURL}
	if _, out, _ := d.run("endpoint show ShopA"); strings.Contains(out, "last status") {
		t.Errorf("endpoint show has a status without a response: %s", out)
	}
	d.health.StoreHealth(webhook.Health{Endpoint: at, Version: 4, Failures: 7, LastReason: "gone", LastStatus: 410,
		DisabledAt: d.now})
	parked := d.addDeliveredPayment(shop, 1, d.now)
	parked.Outbox, parked.Delivered = []ledger.Notification{{ID: "w", Status: "successful", At: d.now, Parked: true}},
		nil
	d.ledger.Overwrite(parked)
	d.now = d.now.Add(48 * time.Hour)
	d.apply("merchant add ShopB --country ci --operator sandbox")
	for _, command := range []string{"endpoint show", "endpoint enable"} {
		d.expectExit(command+" ShopB", ExitFailed, "no notif_url of its own")
	}
	view := query[endpointView](d, "endpoint show ShopA")
	checkEqual(t, "enabled before", view.Enabled, false)
	checkEqual(t, "last status", view.LastStatus, 410)
	d.mustRun("endpoint enable ShopA", nil)
	if d.health.Stored(at).Enabled() || !d.mustReadEntry(parked.Key).Outbox[0].Parked {
		t.Error("a dry run enabled the endpoint")
	}
	result := query[enableResult](d, "endpoint enable ShopA"+confirmFlags)
	checkEqual(t, "queued", result.Queued, 1)
	checkEqual(t, "enabled after", result.Endpoints[0].Enabled, true)
	checkEqual(t, "stored as enabled", d.health.Stored(at).Enabled(), true)
	checkEqual(t, "still parked", d.mustReadEntry(parked.Key).Outbox[0].Parked, false)
}

// Enabling finds the parked notifications of transactions of any age, and a second run continues the first.
func TestEndpointEnableOldTransactions(t *testing.T) {
	d, shop := newShopTool(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shop.NotifURL}
	park := func(number int) *ledger.Entry {
		e := d.addDeliveredPayment(shop, number, d.now)
		e.Outbox = []ledger.Notification{{ID: "w", Status: "successful", At: d.now, Parked: true}}
		e.Delivered = nil
		d.ledger.Overwrite(e)
		return e
	}
	first, second := park(1), park(2)
	d.now = d.now.Add(70 * 24 * time.Hour)
	d.health.StoreHealth(webhook.Health{Endpoint: at, Version: 4, LastReason: "gone", LastStatus: 410,
		DisabledAt: d.now})
	failing := true
	d.ledger.InjectFaults(func(call storetest.Call) storetest.Fault {
		if failing && call.Operation == storetest.Replace && call.Key == second.Key {
			return storetest.FailedBeforeApply
		}
		return storetest.NoFault
	})
	d.expectExit("endpoint enable ShopA"+confirmFlags, ExitFailed, "injected")
	failing = false
	d.mustRun("endpoint enable ShopA"+confirmFlags, nil)
	for _, e := range []*ledger.Entry{first, second} {
		if d.mustReadEntry(e.Key).Outbox[0].Parked {
			t.Errorf("%s is still parked", e.Key)
		}
	}
	checkEqual(t, "parked ones left", len(query[[]deliveryView](d,
		"deliveries list ShopA --from 2026-03-01 --to 2026-12-01 --state parked")), 0)
}

// disabledShop stores a payment to each path of two hosts of ShopA, parked at its disabled URL.
func (d *testTool) disabledShop(shop onboardingResult, addresses ...string) []*ledger.Entry {
	var entries []*ledger.Entry
	for i, address := range addresses {
		entries = append(entries, d.addWaitingPayment(shop, i+1, func(e *ledger.Entry) {
			e.NotifyURL = address
			e.Park(d.now)
		}))
		d.health.StoreHealth(webhook.Health{
			Endpoint: webhook.Endpoint{MerchantID: shop.ID, URL: address}, LastReason: "gone", LastStatus: 410,
			DisabledAt: d.now,
		})
	}
	return entries
}

// One host or all URLs of a merchant are listed and enabled by one command. An address that was never seen is an error.
func TestEndpointsOfAMerchant(t *testing.T) {
	d, shop := newShopTool(t)
	const a, b, c = "https://a.example/1", "https://a.example/2", "https://b.example:8443/3"
	entries := d.disabledShop(shop, a, b, c)
	d.addWaitingPayment(shop, 9)
	list := query[[]listedEndpoint](d, "endpoint list ShopA")
	for i, want := range []listedEndpoint{
		{endpointView{URL: a}, undelivered{Parked: 1}}, {endpointView{URL: b}, undelivered{Parked: 1}},
		{endpointView{URL: c}, undelivered{Parked: 1}},
		{endpointView{URL: shopURL, Enabled: true}, undelivered{Waiting: 1}},
	} {
		if got := list[i]; got.URL != want.URL || got.Enabled != want.Enabled || got.Waiting != want.Waiting ||
			got.Parked != want.Parked {
			t.Errorf("listed %+v, want %+v", got, want)
		}
	}
	for _, never := range []string{
		"show ShopA --url https://a.example/11", "enable ShopA --url https://a.example/11",
		"enable ShopA --host c.example",
	} {
		d.expectBoth("endpoint "+never, ExitFailed, "was never notified at")
	}
	d.expectExit("endpoint enable ShopA --all --host a.example", ExitUsage, "exclude each other")
	checkEqual(t, "dry run", query[enableResult](d, "endpoint enable ShopA --all").Queued, 3)
	checkEqual(t, "others that wait", query[enableResult](d, "endpoint enable ShopA --all").Waiting, 1)
	d.expectExit("endpoint enable ShopA --all", ExitDone, "3 notifications queued, 1 more waiting")
	d.expectExit("endpoint enable ShopA --all", ExitDone,
		"gatewayctl deliveries send --merchant ShopA --since 2026-02-25 --yes --reason REASON")

	result := query[enableResult](d, "endpoint enable ShopA --host a.example"+confirmFlags)
	checkEqual(t, "queued", result.Queued, 2)
	checkEqual(t, "URLs", len(result.Endpoints), 2)
	checkEqual(t, "another host", d.mustReadEntry(entries[2].Key).Outbox[0].Parked, true)
	result = query[enableResult](d, "endpoint enable ShopA --all"+confirmFlags)
	checkEqual(t, "queued", result.Queued, 1)
	checkEqual(t, "still parked", d.mustReadEntry(entries[2].Key).Outbox[0].Parked, false)
	for _, at := range query[[]listedEndpoint](d, "endpoint list ShopA --since 2026-03-01") {
		checkEqual(t, at.URL+" is enabled", at.Enabled, true)
		checkEqual(t, at.URL+" parked", at.Parked, 0)
	}
}

// parkingLedger parks an entry after the first write: a sweep that read the endpoint while it was disabled. If disable
// is set, the endpoint responds 410 again at that time.
type parkingLedger struct {
	Ledger
	tool    *testTool
	late    *ledger.Entry
	disable bool
}

func (l *parkingLedger) Replace(ctx context.Context, next *ledger.Entry) (*ledger.Entry, error) {
	current, err := l.Ledger.Replace(ctx, next)
	if l.late != nil {
		l.late.Park(l.tool.now)
		l.tool.ledger.Overwrite(l.late)
		at := webhook.Endpoint{MerchantID: l.late.MerchantID, URL: shopURL}
		if l.disable {
			l.tool.health.StoreHealth(webhook.Health{Endpoint: at, DisabledAt: l.tool.now})
		}
		l.late = nil
	}
	return current, err
}

// A notification that a running sweep parks meanwhile is queued too. An endpoint that responds 410 again ends it.
func TestEndpointEnableUntilNothingIsParked(t *testing.T) {
	for _, disable := range []bool{false, true} {
		d, shop := newShopTool(t)
		d.disabledShop(shop, shopURL)
		late := d.addWaitingPayment(shop, 2)
		d.changeStores(func(s *Stores) { s.Ledger = &parkingLedger{d.ledger, d, late.Clone(), disable} })
		if disable {
			d.expectExit("endpoint enable ShopA"+confirmFlags, ExitFailed, "responded 410 again")
			continue
		}
		checkEqual(t, "queued", query[enableResult](d, "endpoint enable ShopA"+confirmFlags).Queued, 2)
		checkEqual(t, "still parked", d.mustReadEntry(late.Key).Outbox[0].Parked, false)
	}
}

// The progress of a dry run states what would be queued.
func TestProgressOfEndpointEnable(t *testing.T) {
	d, shop := newShopTool(t)
	for number := range progressEvery {
		d.addWaitingPayment(shop, number+1, func(e *ledger.Entry) { e.Park(d.now) })
	}
	d.expectExit("endpoint enable ShopA", ExitDone, "100 would be queued\n")
	d.expectExit("endpoint enable ShopA"+confirmFlags, ExitDone, "100 queued\n")
}
