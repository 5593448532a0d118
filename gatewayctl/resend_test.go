package gatewayctl

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

const shopURL = "https://shop.example/n"

// toShop is the destination of transactions to ShopA's address.
func toShop(count int) []destinationCount {
	return []destinationCount{{destination{URL: shopURL}, count}}
}

// addWaitingPayment stores a payment whose notification failed four times and waits for five hours.
func (d *testTool) addWaitingPayment(
	shop onboardingResult, number int, changes ...func(*ledger.Entry),
) *ledger.Entry {
	e := d.addDeliveredPayment(shop, number, d.now)
	e.Outbox, e.Delivered = e.Delivered, nil
	head := &e.Outbox[0]
	head.DeliveredAt, head.Attempts, head.NextAttemptAt = time.Time{}, 4, d.now.Add(5*time.Hour)
	for _, change := range changes {
		change(e)
	}
	e.Reschedule()
	d.ledger.Overwrite(e)
	return e
}

// A waiting notification goes now: the fast path of the server is open, and the relay makes the first attempt.
func TestDeliveriesSend(t *testing.T) {
	d, shop := newShopTool(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shopURL}
	d.health.StoreHealth(webhook.Health{Endpoint: at, Failures: 9, Slow: true, LastReason: "timeout"})
	waiting := d.addWaitingPayment(shop, 1)
	dead := d.addWaitingPayment(shop, 2, func(e *ledger.Entry) { e.Outbox[0].DeadReason = "server" })
	soon := d.addWaitingPayment(shop, 3, func(e *ledger.Entry) { e.Outbox[0].NextAttemptAt = d.now.Add(time.Minute) })
	d.now = d.now.Add(time.Minute)

	line := "deliveries send --merchant ShopA --since 2026-03-01"
	want := resendResult{1, []string{}, toShop(1)}
	checkEqual(t, "dry run", query[resendResult](d, line), want)
	checkEqual(t, "version after a dry run", d.mustReadEntry(waiting.Key).Version, waiting.Version)
	checkEqual(t, "fast path after a dry run", d.health.Stored(at).AllowsFastPath(), false)

	checkEqual(t, "result", query[resendResult](d, line+confirmFlags), want)
	sent := d.mustReadEntry(waiting.Key)
	if head := sent.OutboxHead(); !sent.WakesRelay() || head.Attempts != 0 || len(sent.Replays) != 1 {
		t.Errorf("sent %+v, replays %+v, want the first attempt by the relay", head, sent.Replays)
	}
	checkEqual(t, "fast path", d.health.Stored(at).AllowsFastPath(), true)
	for _, e := range []*ledger.Entry{dead, soon} {
		checkEqual(t, "version of "+e.ID, d.mustReadEntry(e.Key).Version, e.Version)
		d.expectBoth("deliveries send "+e.ID, ExitFailed, "nothing waits")
	}
	d.expectBoth(line, ExitFailed, "nothing waits")
	d.expectBoth("deliveries send --merchant ShopA --since 2026-03-02", ExitUsage, "range is empty")
	for _, usage := range []string{
		"", " ShopA_1 --merchant ShopA", " --merchant ShopA", " ShopA_1 --since 2026-03-01",
	} {
		d.expectExit("deliveries send"+usage, ExitUsage, "expected")
	}
}

// A notification that is parked at a disabled endpoint is not sent; once the endpoint is enabled it is.
func TestDeliveriesSendParked(t *testing.T) {
	d, shop := newShopTool(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shopURL}
	e := d.addWaitingPayment(shop, 1, func(e *ledger.Entry) { e.Park(d.now) })
	d.health.StoreHealth(webhook.Health{Endpoint: at, DisabledAt: d.now})
	d.expectBoth("deliveries send ShopA_1", ExitFailed, "endpoint enable ShopA --url "+shopURL)
	checkEqual(t, "parked", d.mustReadEntry(e.Key).Outbox[0].Parked, true)
	d.health.StoreHealth(webhook.Health{Endpoint: at})
	d.apply("deliveries send ShopA_1")
	checkEqual(t, "parked", d.mustReadEntry(e.Key).Outbox[0].Parked, false)
}

// decision "notification-address": send and replay follow the profile, unless the request named the address or a person
// chooses the former one. The dry run shows where each goes, and the host checks of a request apply.
func TestResendFollowsTheProfile(t *testing.T) {
	const newURL = "https://new.example/n"
	d, shop := newShopTool(t)
	fromProfile := func(e *ledger.Entry) { e.NotifyFrom = ledger.AddressOfProfile }
	provisioned, named := d.addWaitingPayment(shop, 1, fromProfile), d.addWaitingPayment(shop, 2)
	d.now = d.now.Add(time.Hour) // the merchant is not new: only the change keeps functions from being current
	d.apply("merchant change ShopA --notif-url "+newURL+" --host new.example",
		"host add ShopA shop.example")
	line := "deliveries send --merchant ShopA --since 2026-03-01"
	d.expectBoth(line, ExitFailed, "functions use its notif_url from 2026-03-01T13:00:35Z on")
	dead := d.addWaitingPayment(shop, 3, fromProfile, func(e *ledger.Entry) { e.Outbox[0].DeadReason = "server" })
	d.expectBoth("deliveries replay "+dead.ID, ExitFailed, "functions use its notif_url from 2026-03-01T13:00:35Z on")
	d.now = d.now.Add(35 * time.Second)
	moved := destination{URL: newURL, Former: shopURL}
	checkEqual(t, "dry run", query[resendResult](d, line).Addresses,
		[]destinationCount{{moved, 1}, {destination{URL: shopURL}, 1}})
	d.expectOutput(line, newURL, "the profile's; at the request "+shopURL)
	d.expectOutput("deliveries show ShopA_1", newURL, shopURL)

	former := line + " --former-address"
	checkEqual(t, "former address", query[resendResult](d, former).Addresses, toShop(2))
	d.apply(former)
	checkEqual(t, "provisioned", d.mustReadEntry(provisioned.Key).NotifyFrom, ledger.AddressFormer)
	checkEqual(t, "named", d.mustReadEntry(named.Key).NotifyFrom, ledger.AddressOfRequest)

	e := d.mustReadEntry(provisioned.Key)
	e.DeadLetter(e.Outbox[0].ID, "server", d.now)
	d.ledger.Overwrite(e)
	d.expectOutput("deliveries replay ShopA_1"+confirmFlags, newURL)
	checkEqual(t, "after a replay", d.mustReadEntry(provisioned.Key).NotifyFrom, ledger.AddressOfProfile)

	d.apply("host remove ShopA shop.example")
	d.now = d.now.Add(-time.Minute)
	for _, id := range []string{"ShopA_1 --former-address", "ShopA_2"} {
		e := d.mustReadEntry(ledger.Key{Kind: ledger.Payment, ID: strings.Fields(id)[0]})
		e.Outbox[0].NextAttemptAt = d.now.Add(time.Hour)
		d.ledger.Overwrite(e)
		d.expectBoth("deliveries send "+id, ExitFailed, "a host that is not registered")
	}
}
