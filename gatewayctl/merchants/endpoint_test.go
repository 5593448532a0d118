package merchants_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

func TestEndpoint(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shop.NotifURL}
	d.ExpectWithout("endpoint show ShopA", gatewayctl.ExitDone, "last status") // there was no response
	d.Health.StoreHealth(webhook.Health{Endpoint: at, Version: 4, Failures: 7, LastReason: "gone", LastStatus: 410,
		DisabledAt: d.Now})
	parked := d.AddWaitingPayment(shop, 1, func(e *ledger.Entry) { e.Outbox.Park(d.Now) })
	d.Now = d.Now.Add(48 * time.Hour)
	d.Apply("merchant add ShopB --country ci --operator sandbox")
	for _, command := range []string{"endpoint show", "endpoint enable"} {
		d.ExpectExit(command+" ShopB", gatewayctl.ExitFailed, "no notif_url of its own")
	}
	view := gatewayctltest.Query[merchants.EndpointView](d, "endpoint show ShopA")
	d.Equal("enabled before", view.Enabled, false)
	d.Equal("last status", view.LastStatus, 410)
	result := gatewayctltest.Change[merchants.EnableResult](d, "endpoint enable ShopA")
	d.Equal("queued", result.Queued, 1)
	d.Equal("enabled after", result.Endpoints[0].Enabled, true)
	d.Equal("stored as enabled", d.Health.Stored(at).Enabled(), true)
	d.Equal("still parked", d.MustReadEntry(parked.Key).Outbox.Waiting[0].Parked, false)
}

// Enabling finds the parked notifications of transactions of any age, and a second run continues the first.
func TestEndpointEnableOldTransactions(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: shop.NotifURL}
	park := func(e *ledger.Entry) { e.Outbox.Park(d.Now) }
	first, second := d.AddWaitingPayment(shop, 1, park), d.AddWaitingPayment(shop, 2, park)
	d.Now = d.Now.Add(70 * 24 * time.Hour)
	d.Health.StoreHealth(webhook.Health{Endpoint: at, Version: 4, LastReason: "gone", LastStatus: 410,
		DisabledAt: d.Now})
	d.FailWritesOf(second.ID)
	d.ExpectFailed("endpoint enable ShopA", "injected")
	d.Ledger.InjectFaults(nil)
	d.Apply("endpoint enable ShopA")
	for _, e := range []*ledger.Entry{first, second} {
		if d.MustReadEntry(e.Key).Outbox.Waiting[0].Parked {
			t.Errorf("%s is still parked", e.Key)
		}
	}
	d.ExpectCount("parked ones left", "deliveries list ShopA --from 2026-03-01 --to 2026-12-01 --state parked", 0)
}

// disabledShop stores a payment to each path of two hosts of ShopA, parked at its disabled URL.
func disabledShop(d *gatewayctltest.Tool, shop merchants.Onboarding, addresses ...string) []*ledger.Entry {
	var entries []*ledger.Entry
	for i, address := range addresses {
		entries = append(entries, d.AddWaitingPayment(shop, i+1, func(e *ledger.Entry) {
			e.Outbox.URL = address
			e.Outbox.Park(d.Now)
		}))
		d.Health.StoreHealth(webhook.Health{
			Endpoint: webhook.Endpoint{MerchantID: shop.ID, URL: address}, LastReason: "gone", LastStatus: 410,
			DisabledAt: d.Now,
		})
	}
	return entries
}

// One host or all URLs of a merchant are listed and enabled by one command. An address that was never seen is an error.
func TestEndpointsOfAMerchant(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	const a, b, c = "https://a.example/1", "https://a.example/2", "https://b.example:8443/3"
	entries := disabledShop(d, shop, a, b, c)
	d.AddWaitingPayment(shop, 9)
	list := gatewayctltest.Query[[]merchants.ListedEndpoint](d, "endpoint list ShopA")
	for i, want := range []merchants.ListedEndpoint{
		{EndpointView: merchants.EndpointView{URL: a}, Undelivered: merchants.Undelivered{Parked: 1}},
		{EndpointView: merchants.EndpointView{URL: b}, Undelivered: merchants.Undelivered{Parked: 1}},
		{EndpointView: merchants.EndpointView{URL: c}, Undelivered: merchants.Undelivered{Parked: 1}},
		{EndpointView: merchants.EndpointView{URL: gatewayctltest.ShopURL, Enabled: true},
			Undelivered: merchants.Undelivered{Waiting: 1}},
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
		d.ExpectBoth("endpoint "+never, gatewayctl.ExitFailed, "was never notified at")
	}
	d.ExpectExit("endpoint enable ShopA --all --host a.example", gatewayctl.ExitUsage, "exclude each other")
	planned := gatewayctltest.Query[merchants.EnableResult](d, "endpoint enable ShopA --all")
	d.Equal("queued and waiting by the dry run", []int{planned.Queued, planned.Waiting}, []int{3, 1})
	d.ExpectExit("endpoint enable ShopA --all", gatewayctl.ExitDone, "3 notifications queued, 1 more waiting",
		"gatewayctl deliveries send --merchant ShopA --since 2026-02-25 --yes --reason REASON")

	result := gatewayctltest.Change[merchants.EnableResult](d, "endpoint enable ShopA --host a.example")
	d.Equal("queued", result.Queued, 2)
	d.Equal("URLs", len(result.Endpoints), 2)
	d.Equal("another host", d.MustReadEntry(entries[2].Key).Outbox.Waiting[0].Parked, true)
	result = gatewayctltest.Change[merchants.EnableResult](d, "endpoint enable ShopA --all")
	d.Equal("queued", result.Queued, 1)
	d.Equal("still parked", d.MustReadEntry(entries[2].Key).Outbox.Waiting[0].Parked, false)
	for _, at := range gatewayctltest.Query[[]merchants.ListedEndpoint](d, "endpoint list ShopA --since 2026-03-01") {
		d.Equal(at.URL+" is enabled", at.Enabled, true)
		d.Equal(at.URL+" parked", at.Parked, 0)
	}
}

// parkingLedger parks an entry after the first write: a sweep that read the endpoint while it was disabled. If disable
// is set, the endpoint responds 410 again at that time.
type parkingLedger struct {
	deployment.Ledger
	tool    *gatewayctltest.Tool
	late    *ledger.Entry
	disable bool
}

func (l *parkingLedger) Replace(ctx context.Context, next *ledger.Entry, t ledger.Transition) (*ledger.Entry, error) {
	current, err := l.Ledger.Replace(ctx, next, t)
	if l.late != nil {
		l.late.Outbox.Park(l.tool.Now)
		l.tool.Ledger.Overwrite(l.late)
		at := webhook.Endpoint{MerchantID: l.late.Merchant.ID, URL: gatewayctltest.ShopURL}
		if l.disable {
			l.tool.Health.StoreHealth(webhook.Health{Endpoint: at, DisabledAt: l.tool.Now})
		}
		l.late = nil
	}
	return current, err
}

// A notification that a running sweep parks meanwhile is queued too. An endpoint that responds 410 again ends it.
func TestEndpointEnableUntilNothingIsParked(t *testing.T) {
	for _, disable := range []bool{false, true} {
		d, shop := gatewayctltest.NewShop(t)
		disabledShop(d, shop, gatewayctltest.ShopURL)
		late := d.AddWaitingPayment(shop, 2)
		d.ChangeStores(func(s *deployment.Stores) { s.Ledger = &parkingLedger{d.Ledger, d, late.Clone(), disable} })
		if disable {
			d.ExpectFailed("endpoint enable ShopA", "responded 410 again")
			continue
		}
		d.Equal("queued", gatewayctltest.Change[merchants.EnableResult](d, "endpoint enable ShopA").Queued, 2)
		d.Equal("still parked", d.MustReadEntry(late.Key).Outbox.Waiting[0].Parked, false)
	}
}

// The audit record and the dry run name the URLs that change, not the others of the selection.
func TestEnableNamesWhatChanges(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	const disabled = "https://a.example/1"
	disabledShop(d, shop, disabled)
	d.ExpectExit("endpoint enable ShopA --all", gatewayctl.ExitDone,
		"this would enable an endpoint, ShopA "+disabled+": enabled: 1")
	d.ExpectExit("endpoint disable ShopA --all", gatewayctl.ExitDone,
		"this would disable an endpoint, ShopA "+gatewayctltest.ShopURL+": disabled: 1")
	d.Apply("endpoint enable ShopA --all")
	d.ExpectExit("endpoint enable ShopA --all", gatewayctl.ExitDone, "ShopA "+disabled+", "+gatewayctltest.ShopURL+": ")
}

// The progress of a dry run states what would be queued.
func TestProgressOfEndpointEnable(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	for number := range entries.ProgressEvery {
		d.AddWaitingPayment(shop, number+1, func(e *ledger.Entry) { e.Outbox.Park(d.Now) })
	}
	d.ExpectExit("endpoint enable ShopA", gatewayctl.ExitDone, "100 would be queued\n")
	d.ExpectExit("endpoint enable ShopA"+gatewayctltest.Confirm, gatewayctl.ExitDone, "100 queued\n")
}

// A person disables an endpoint: it says why, and the next attempt parks the notification.
func TestDisableEndpoint(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddWaitingPayment(shop, 1)
	const disable = "endpoint disable ShopA --url " + gatewayctltest.ShopURL
	d.Apply(disable, disable) // the second time there is nothing to do
	at := gatewayctltest.Query[merchants.EndpointView](d, "endpoint show ShopA --url "+gatewayctltest.ShopURL)
	if at.Enabled || at.LastError != "manual" || at.DisabledAt.IsZero() {
		t.Errorf("the endpoint is %+v, want it disabled by a person", at)
	}
	d.ExpectFailed("endpoint disable ShopA --url https://shop.example/never", "never notified")
	d.Apply("endpoint enable ShopA --url " + gatewayctltest.ShopURL)
}
