package delivery_test

import (
	"context"
	"testing"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

// decision "notification-address": a provisioned address follows the profile at each attempt. An address that the
// request named stays, and so does a former one that a person chose.
func TestAddressFollowsTheProfile(t *testing.T) {
	for _, c := range []struct {
		name       string
		from       ledger.AddressSource
		provisions bool // the profile has an address, and it is another one
		want       string
	}{
		{"named by the request", ledger.AddressOfRequest, true, "/first"},
		{"provisioned", ledger.AddressOfProfile, true, "/second"},
		{"provisioned, and the profile has none now", ledger.AddressOfProfile, false, "/first"},
		{"the former one, chosen by a person", ledger.AddressFormer, true, "/first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := deliverytest.New(t)
			if c.provisions {
				k.ProfileStore.NotifURL = k.MerchantServer.URL + "/second"
			}
			e := storeFailed(k, "DemoShop_1", "/first")
			e.Outbox.From = c.from
			post(t, k, e, 1, mustFindTarget(t, k, e))
			if len(k.MerchantServer.Received(c.want)) != 1 || len(k.MerchantServer.Received("")) != 1 {
				t.Errorf("received %+v, want one notification at %s", k.MerchantServer.Received(""), c.want)
			}
			k.HealthStore.StoreHealth(webhook.Health{
				Endpoint:   webhook.Endpoint{MerchantID: "demo0001", URL: k.MerchantServer.URL + c.want},
				DisabledAt: k.Clock.Now(),
			})
			if enabled, err := k.Courier.EndpointEnabled(context.Background(), e); err != nil || enabled {
				t.Errorf("the endpoint at %s is enabled: %v, %v", c.want, enabled, err)
			}
		})
	}
}

// The new address passes the checks of a request, or nothing is sent and no attempt is used up.
func TestFollowedAddressIsChecked(t *testing.T) {
	for _, address := range []string{"https://other.example/n", "http://shop.example/n", "https://10.0.0.1/n"} {
		k := deliverytest.New(t)
		k.ProfileStore.NotifURL, k.ProfileStore.Hosts = address, []string{"shop.example"}
		e := storeFailed(k, "DemoShop_1", "/first")
		e.Outbox.From = ledger.AddressOfProfile
		if target, err := k.Courier.FindTarget(context.Background(), e); err == nil {
			t.Errorf("%s is accepted as %s", address, target.URL)
		}
		if _, err := k.Courier.EndpointEnabled(context.Background(), e); err == nil {
			t.Errorf("%s is accepted for a parked notification", address)
		}
	}
}

// An address must be on a registered host; an SMS's need not if the profile opens it (decision "sms-notify-url").
func TestCheckNotificationURL(t *testing.T) {
	for _, c := range []struct {
		kind    ledger.Kind
		address string
		want    bool
		anyHost bool
	}{
		{ledger.Payment, "https://shop.example/n", true, false},
		{ledger.Payment, "https://other.example/n", false, true},
		{ledger.SMS, "https://shop.example/n", true, false},
		{ledger.SMS, "https://other.example/n", false, false},
		{ledger.SMS, "https://other.example/n", true, true},
		{ledger.SMS, "http://other.example/n", false, true},
		{ledger.SMS, "https://127.0.0.1/n", false, true},
	} {
		p := &merchant.Profile{Notifications: merchant.Notifications{
			NotificationHosts: []string{"shop.example"}, SMSNotifyAnyHost: c.anyHost,
		}}
		e := &ledger.Entry{Key: ledger.Key{Kind: c.kind}}
		if err := delivery.CheckNotificationURL(c.address, e, p, false); (err == nil) != c.want {
			t.Errorf("%s %s: %v, want it accepted: %v", c.kind, c.address, err, c.want)
		}
	}
}
