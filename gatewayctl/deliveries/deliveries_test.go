package deliveries_test

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/deliveries"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

// addRetriedPayment stores a payment that was delivered at the second attempt, two seconds after its creation.
func addRetriedPayment(d *gatewayctltest.Tool) *ledger.Entry {
	return d.AddDeliveredPayment(d.Onboard("ShopA"), 1, d.Now, func(e *ledger.Entry) {
		e.Outbox.Delivered[0].Attempts = 2
		e.Outbox.FailedAttempts = []ledger.FailedAttempt{
			{Status: ledger.Successful, Number: 1, At: d.Now.Add(time.Second), HTTPStatus: 503, Reason: "server"},
		}
	})
}

// addReplayedPayment is addRetriedPayment, replayed an hour later.
func addReplayedPayment(d *gatewayctltest.Tool) *ledger.Entry {
	e := addRetriedPayment(d)
	d.Now = d.Now.Add(time.Hour)
	d.Apply("deliveries replay " + e.ID)
	return d.MustReadEntry(e.Key)
}

func TestDeliveriesShow(t *testing.T) {
	d := gatewayctltest.New(t)
	e := addRetriedPayment(d)
	id := ledger.NotificationID(e.Key, ledger.Successful)
	d.Equal("attempts", gatewayctltest.Query[deliveries.History](d, "deliveries show "+e.ID).Attempts,
		[]entries.Attempt{
			{WebhookID: id, Status: ledger.Successful, Number: 1, At: d.Now.Add(time.Second), Result: "server",
				Code: 503},
			{WebhookID: id, Status: ledger.Successful, Number: 2, At: d.Now.Add(2 * time.Second), Result: "delivered"},
		})
	d.ExpectOutput("deliveries show "+e.ID, "https://shop.example/n", "server 503")
	d.ExpectOutput("payment show "+e.ID, "delivery", "failed", "attempt 1 of successful: server 503")
	d.ExpectExit("deliveries show ShopA_99", gatewayctl.ExitFailed, "no payment")
}

// While a replayed notification waits, both histories show its first delivery and the replay.
func TestReplayKeepsEarlierAttempts(t *testing.T) {
	d := gatewayctltest.New(t)
	e := addReplayedPayment(d)
	failed := ledger.FailedAttempt{Number: 1, At: d.Now.Add(time.Second), HTTPStatus: 500, Reason: "server"}
	e.Outbox.RecordFailedAttempt(*e.Outbox.HeadClaim(), failed, d.Now.Add(time.Minute))
	d.Ledger.Overwrite(e)
	id, first := e.Outbox.Waiting[0].ID, d.Now.Add(2*time.Second-time.Hour)
	history := gatewayctltest.Query[deliveries.History](d, "deliveries show "+e.ID)
	d.Equal("attempts", history.Attempts, []entries.Attempt{
		{WebhookID: id, Status: ledger.Successful, Number: 1, At: first.Add(-time.Second), Result: "server", Code: 503},
		{WebhookID: id, Status: ledger.Successful, Number: 2, At: first, Result: "delivered"},
		{WebhookID: id, Status: ledger.Successful, Number: 1, At: d.Now.Add(time.Second), Result: "server", Code: 500},
	})
	d.Equal("replays", history.Replays, []entries.Replay{{WebhookID: id, Status: ledger.Successful, At: d.Now,
		AttemptsBefore: 2, DeliveredBefore: first}})
	n := history.Notifications[0]
	d.Equal("state", n.State, entries.DeliveryWaiting)
	d.Equal("first delivery", n.FirstDeliveredAt, first)
	d.Equal("delivery", n.DeliveredAt, time.Time{})
	d.ExpectOutput("deliveries show "+e.ID, "waiting", "2026-03-01T12:00:02Z", // the state, and the first delivery
		"2026-03-01T12:00:01Z", "server 503", "2026-03-01T12:00:02Z", "delivered", "2026-03-01T13:00:00Z", "replayed",
		"2026-03-01T13:00:01Z", "server 500")
	d.ExpectOutput("payment show "+e.ID, "first delivered at 2026-03-01T12:00:02Z",
		"attempt 1 of successful: server 503", "2026-03-01T12:00:02Z  delivery", "delivered, attempt 2",
		"2026-03-01T13:00:00Z  replay", "after 2 attempts",
		"attempt 1 of successful: server 500")
	if len(gatewayctltest.Query[entries.History](d, "payment show "+e.ID).Timeline) == 0 {
		t.Error("payment show --json has no timeline")
	}
}

// After a second delivery both deliveries are shown.
func TestReplayShowsBothDeliveries(t *testing.T) {
	d := gatewayctltest.New(t)
	e := addReplayedPayment(d)
	e.Outbox.MarkDelivered(e.Outbox.Head().ID, d.Now.Add(3*time.Second))
	d.Ledger.Overwrite(e)
	n := gatewayctltest.Query[deliveries.History](d, "deliveries show "+e.ID).Notifications[0]
	d.Equal("state", n.State, entries.DeliveryDelivered)
	d.Equal("delivery", n.DeliveredAt, d.Now.Add(3*time.Second))
	d.Equal("first delivery", n.FirstDeliveredAt, d.Now.Add(2*time.Second-time.Hour))
	d.ExpectOutput("deliveries show "+e.ID,
		"12:00:01Z", "server 503", "12:00:02Z", "delivered", "13:00:00Z", "replayed", "13:00:03Z", "delivered")
	d.ExpectOutput("payment show "+e.ID, "12:00:02Z  delivery", "delivered", "13:00:00Z  replay", "13:00:03Z  delivery",
		"delivered")
}

// A replayed dead letter keeps its reason.
func TestReplayOfDeadLetter(t *testing.T) {
	d := gatewayctltest.New(t)
	e := d.AddWaitingPayment(d.Onboard("ShopA"), 1, func(e *ledger.Entry) {
		e.Outbox.Waiting[0].Attempts, e.Outbox.Waiting[0].DeadReason = 10, "attempts"
	})
	d.Now = d.Now.Add(time.Hour)
	dryRun := gatewayctltest.Query[map[string]any](d, "deliveries replay "+e.ID)
	d.Equal("the dry run is marked", dryRun["dry_run"], true)
	d.Apply("deliveries replay " + e.ID)
	for _, command := range []string{"deliveries show ", "payment show "} {
		d.ExpectOutput(command+e.ID, "dead letter before: attempts")
		d.ExpectWithout(command+e.ID, gatewayctl.ExitDone, "delivered")
	}
	history := gatewayctltest.Query[deliveries.History](d, "deliveries show "+e.ID)
	d.Equal("replays", history.Replays,
		[]entries.Replay{{WebhookID: e.Outbox.Waiting[0].ID, Status: ledger.Successful, At: d.Now, AttemptsBefore: 10,
			DeadReasonBefore: "attempts"}})
	d.Equal("first delivery", history.Notifications[0].FirstDeliveredAt, time.Time{})
}

func TestDeliveriesList(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.AddDeliveredPayment(shop, 1, d.Now)
	d.AddDeliveredPayment(shop, 2, d.Now.Add(-time.Hour))
	dead := d.AddDeliveredPayment(shop, 3, d.Now.Add(-session.Day))
	at := d.Now.Add(time.Minute)
	dead.Outbox.Waiting = []ledger.Notification{
		{ID: "w", Status: "late", At: at, Attempts: 10, DeadReason: "attempts", LastReason: "server", LastStatus: 503},
	}
	d.Ledger.Overwrite(dead)
	line := "deliveries list ShopA --from 2026-03-01T12:00:00Z --to 2026-03-02"
	for line, want := range map[string]int{
		line: 2, "deliveries list ShopA --from 2026-03-01 --to 2026-03-01": 3, line + " --state delivered": 1,
		line + " --state waiting": 0, line + " --state parked": 0,
	} {
		d.ExpectCount(line, line, want)
	}
	d.ExpectJSON("dead letters", line+" --state dead-letter", []entries.Notification{{
		Kind: ledger.Payment, ID: dead.ID, WebhookID: "w", Status: "late", At: at,
		State:     entries.DeliveryDeadLetter,
		Attempts:  10,
		LastError: "server", LastCode: 503, DeadReason: "attempts",
	}})
}

// A waiting notification goes now: the fast path of the server is open, and the relay makes the first attempt.
func TestDeliveriesSend(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: gatewayctltest.ShopURL}
	d.Health.StoreHealth(webhook.Health{Endpoint: at, Failures: 9, Slow: true, LastReason: "timeout"})
	waiting := d.AddWaitingPayment(shop, 1)
	dead := d.AddWaitingPayment(shop, 2, func(e *ledger.Entry) { e.Outbox.Waiting[0].DeadReason = "server" })
	soon := d.AddWaitingPayment(shop, 3,
		func(e *ledger.Entry) { e.Outbox.Waiting[0].NextAttemptAt = d.Now.Add(time.Minute) })
	d.Now = d.Now.Add(time.Minute)

	line := "deliveries send --merchant ShopA --since 2026-03-01"
	want := deliveries.Result{Queued: 1, Failed: []string{}, Addresses: gatewayctltest.ToShop(1)}
	d.ExpectJSON("dry run", line, want)
	d.Equal("fast path after a dry run", d.Health.Stored(at).AllowsFastPath(), false)
	d.ExpectJSON("result", line+gatewayctltest.Confirm, want)
	sent := d.MustReadEntry(waiting.Key)
	if head := sent.Outbox.Head(); !sent.Outbox.WakesRelay() || head.Attempts != 0 || len(sent.Outbox.Replays) != 1 {
		t.Errorf("sent %+v, replays %+v, want the first attempt by the relay", head, sent.Outbox.Replays)
	}
	d.Equal("fast path", d.Health.Stored(at).AllowsFastPath(), true)
	for _, command := range []string{"deliveries show ", "payment show "} { // nothing was sent for a second time
		d.ExpectOutput(command+waiting.ID, "sent now", "after 4 attempts")
	}
	for _, e := range []*ledger.Entry{dead, soon} {
		d.Equal("version of "+e.ID, d.MustReadEntry(e.Key).Version, e.Version)
		d.ExpectBoth("deliveries send "+e.ID, gatewayctl.ExitFailed, "nothing waits")
	}
	d.ExpectBoth(line, gatewayctl.ExitFailed, "nothing waits")
	d.ExpectBoth("deliveries send --merchant ShopA --since 2026-03-02", gatewayctl.ExitUsage, "range is empty")
	for _, usage := range []string{
		"", " ShopA_1 --merchant ShopA", " --merchant ShopA", " ShopA_1 --since 2026-03-01",
	} {
		d.ExpectExit("deliveries send"+usage, gatewayctl.ExitUsage, "expected")
	}
}

// A notification that is parked at a disabled endpoint is not sent; once the endpoint is enabled it is.
func TestDeliveriesSendParked(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	at := webhook.Endpoint{MerchantID: shop.ID, URL: gatewayctltest.ShopURL}
	e := d.AddWaitingPayment(shop, 1, func(e *ledger.Entry) { e.Outbox.Park(d.Now) })
	d.Health.StoreHealth(webhook.Health{Endpoint: at, DisabledAt: d.Now})
	for _, line := range []string{
		"deliveries send ShopA_1", "deliveries replay ShopA_1",
		"deliveries replay --merchant ShopA --from 2026-03-01 --to 2026-03-01",
	} {
		d.ExpectBoth(line, gatewayctl.ExitFailed,
			"gatewayctl endpoint enable ShopA --url "+gatewayctltest.ShopURL+" --yes --reason REASON")
		d.Equal("parked", d.MustReadEntry(e.Key).Outbox.Waiting[0].Parked, true)
	}
	d.Health.StoreHealth(webhook.Health{Endpoint: at})
	d.Apply("deliveries send ShopA_1")
	d.Equal("parked", d.MustReadEntry(e.Key).Outbox.Waiting[0].Parked, false)
}

// A refusal names the command that ends it, as a shell takes it. Only a failed write needs the same command again.
func TestRefusalsNameTheirCommand(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	for i, path := range []string{"?key=s3cret", "/b"} {
		address := gatewayctltest.ShopURL + path
		d.AddWaitingPayment(shop, i+1, func(e *ledger.Entry) { e.Outbox.URL = address })
		d.Health.StoreHealth(webhook.Health{
			Endpoint: webhook.Endpoint{MerchantID: shop.ID, URL: address}, DisabledAt: d.Now,
		})
	}
	d.AddWaitingPayment(shop, 3)
	d.FailWritesOf("ShopA_3")
	line := "deliveries send --merchant ShopA --since 2026-03-01"
	_, _, stderr := d.Exec(line)
	if !strings.Contains(stderr, "enable ShopA --url '"+gatewayctltest.ShopURL+"?***' --yes --reason REASON") ||
		!strings.Contains(stderr, "and 1 more") || strings.Contains(stderr, "again") {
		t.Errorf("two disabled addresses: %s", stderr)
	}
	result, _ := gatewayctltest.QueryExit[deliveries.Result](d, line+gatewayctltest.Confirm, gatewayctl.ExitFailed)
	failed := result.Failed
	if len(failed) != 3 || !strings.Contains(failed[2], "run the command again") ||
		!strings.Contains(failed[1], "endpoint enable ShopA --url "+gatewayctltest.ShopURL+"/b") {
		t.Errorf("failed %q", failed)
	}
}

// decision "notification-address": send and replay follow the profile, unless the request named the address or a person
// chooses the former one. The dry run shows where each goes, and the host checks of a request apply.
func TestResendFollowsTheProfile(t *testing.T) {
	const newURL = "https://new.example/n"
	d, shop := gatewayctltest.NewShop(t)
	fromProfile := func(e *ledger.Entry) { e.Outbox.From = ledger.AddressOfProfile }
	provisioned, named := d.AddWaitingPayment(shop, 1, fromProfile), d.AddWaitingPayment(shop, 2)
	d.Now = d.Now.Add(time.Hour) // the merchant is not new: only the change keeps functions from being current
	d.Apply("merchant change ShopA --notif-url "+newURL+" --host new.example", "host add ShopA shop.example")
	line := "deliveries send --merchant ShopA --since 2026-03-01"
	d.ExpectBoth(line, gatewayctl.ExitFailed, "functions use its notif_url from 2026-03-01T13:00:35Z on")
	dead := d.AddWaitingPayment(shop, 3, fromProfile,
		func(e *ledger.Entry) { e.Outbox.Waiting[0].DeadReason = "server" })
	d.ExpectBoth("deliveries replay "+dead.ID, gatewayctl.ExitFailed,
		"functions use its notif_url from 2026-03-01T13:00:35Z on")
	d.Now = d.Now.Add(35 * time.Second)
	moved := deliveries.Destination{URL: newURL, Former: gatewayctltest.ShopURL}
	d.Equal("dry run", gatewayctltest.Query[deliveries.Result](d, line).Addresses,
		[]deliveries.DestinationCount{{Destination: moved, Transactions: 1},
			{Destination: deliveries.Destination{URL: gatewayctltest.ShopURL}, Transactions: 1}})
	d.ExpectOutput(line, newURL, "the profile's; at the request "+gatewayctltest.ShopURL)
	d.ExpectOutput("deliveries show ShopA_1", newURL, gatewayctltest.ShopURL)

	former := line + " --former-address"
	d.Equal("former address", gatewayctltest.Query[deliveries.Result](d, former).Addresses, gatewayctltest.ToShop(2))
	d.Apply(former)
	d.Equal("provisioned", d.MustReadEntry(provisioned.Key).Outbox.From, ledger.AddressFormer)
	d.Equal("named", d.MustReadEntry(named.Key).Outbox.From, ledger.AddressOfRequest)

	d.Update(provisioned.Key, func(e *ledger.Entry) {
		e.Outbox.DeadLetter(e.Outbox.Waiting[0].ID, "server", d.Now)
	})
	d.ExpectOutput("deliveries replay ShopA_1"+gatewayctltest.Confirm, newURL)
	d.Equal("after a replay", d.MustReadEntry(provisioned.Key).Outbox.From, ledger.AddressOfProfile)

	d.Apply("host remove ShopA shop.example")
	d.Now = d.Now.Add(-time.Minute)
	for _, id := range []string{"ShopA_1 --former-address", "ShopA_2"} {
		d.Update(ledger.Key{Kind: ledger.Payment, ID: strings.Fields(id)[0]}, func(e *ledger.Entry) {
			e.Outbox.Waiting[0].NextAttemptAt = d.Now.Add(time.Hour)
		})
		d.ExpectBoth("deliveries send "+id, gatewayctl.ExitFailed, "a host that is not registered")
	}
}

func TestReplayOfARange(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	const count = 1000
	for i := range count {
		d.AddDeliveredPayment(shop, i, d.Now.Add(time.Duration(i)*time.Second))
	}
	before := d.AddDeliveredPayment(shop, 9000, d.Now.Add(-time.Hour))
	waiting := d.AddWaitingPayment(shop, 9001)
	d.Now = d.Now.Add(time.Hour)
	d.ExpectExit("deliveries replay --merchant ShopA --from 2026-03-01T12:00:00Z --to 2026-03-02"+
		gatewayctltest.Confirm, gatewayctl.ExitDone, "900 of 1000")
	for _, e := range d.Ledger.All() {
		replayed := len(e.Outbox.Waiting) == 1 && len(e.Outbox.Delivered) == 0 && e.Outbox.WakesRelay()
		if other := e.ID == before.ID || e.ID == waiting.ID; replayed == other && e.ID != waiting.ID {
			t.Fatalf("%s was replayed: %v, want %v", e.ID, replayed, !other)
		}
	}
	d.Equal("version of the waiting payment", d.MustReadEntry(waiting.Key).Version, waiting.Version)
	result := gatewayctltest.Change[deliveries.Result](d, "deliveries replay "+before.ID)
	d.Equal("replay by id", result, deliveries.Result{Queued: 1, Failed: []string{},
		Addresses: gatewayctltest.ToShop(1)})
	d.ExpectFailed("deliveries replay "+before.ID, "nothing to send again")
	d.ExpectExit("deliveries replay ShopA_99999", gatewayctl.ExitFailed, "no payment")
	d.ExpectExit("deliveries replay --merchant ShopA", gatewayctl.ExitUsage, "--from")
	d.ExpectExit("deliveries replay --merchant ShopA --from x --to 2026-03-02", gatewayctl.ExitUsage, "neither a day")
}

func TestPartiallyFailedReplay(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	for i := range 3 {
		d.AddDeliveredPayment(shop, i, d.Now)
	}
	d.FailWritesOf("ShopA_1")
	d.ExpectFailed("deliveries replay --merchant ShopA --from 2026-03-01 --to 2026-03-02", "pay#ShopA_1")
	for _, r := range d.Audit.Records {
		if r.What == "replay deliveries" &&
			(r.Outcome != auditlog.OutcomeFailed || !strings.Contains(r.Detail, "2 of 3")) {
			t.Errorf("audit record of the partial replay: %s: %s", r.Outcome, r.Detail)
		}
	}
}
