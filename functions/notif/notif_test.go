package notif_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"mobilegateway/functions/notif"
	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/payment"
)

const order = "DemoShop_1001"

// serve puts the function behind a gateway.
func serve(k *deliverytest.Kit) *deliverytest.Kit {
	inbox := &notif.Inbox{
		Callbacks: k.Callbacks, Book: k.Book, Settlement: k.Settlement, Recheck: deliverytest.Recheck, Now: k.Clock.Now,
	}
	k.Serve("notif", inbox.Route())
	return k
}

func kit(t testing.TB) *deliverytest.Kit {
	t.Helper()
	return serve(deliverytest.New(t))
}

// event is the golden callback with a good token.
func event(t testing.TB, k *deliverytest.Kit) *operationtest.Event {
	t.Helper()
	return addressed(t, k, "sandbox", order)
}

// addressed is the callback of an operator about an order, with the token of that address.
func addressed(t testing.TB, k *deliverytest.Kit, name, id string) *operationtest.Event {
	t.Helper()
	ring, err := k.Callbacks.Ring(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	e := operationtest.Load(t, "testdata/event.json")
	return e.Param("operator", name).Param("orderId", id).Param("token", ring.Sign(callback.PaymentPath(name, id)))
}

// committed checks a callback's 200.
func committed(t testing.TB, k *deliverytest.Kit, e *operationtest.Event) {
	t.Helper()
	if answer := k.Do(t, e).Succeeds(t, 200); answer.Body != `{"status":"OK"}` {
		t.Errorf("body %s", answer.Body)
	}
}

// reads is how often anything was asked of the ledger.
func reads(k *deliverytest.Kit) int { return k.Ledger.Calls(ledgermem.Get) + k.Ledger.Writes() }

// decision "callbacks": a forged call costs no database call and gets 404.
func TestForged(t *testing.T) {
	good := func(k *deliverytest.Kit) string {
		ring, err := k.Callbacks.Ring(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return ring.Sign(callback.PaymentPath("sandbox", order))
	}
	cases := []struct {
		name  string
		forge func(*operationtest.Event, *deliverytest.Kit)
	}{
		{"no token at all", func(e *operationtest.Event, _ *deliverytest.Kit) { e.Param("token", "x") }},
		{"a token of the right length", func(e *operationtest.Event, _ *deliverytest.Kit) {
			e.Param("token", strings.Repeat("A", callback.TokenLength))
		}},
		{"the last character changed", func(e *operationtest.Event, k *deliverytest.Kit) {
			token := good(k)
			last := "A"
			if strings.HasSuffix(token, "A") {
				last = "Q"
			}
			e.Param("token", token[:len(token)-1]+last)
		}},
		{"another order's token", func(e *operationtest.Event, k *deliverytest.Kit) {
			e.Param("orderId", "DemoShop_1002").Param("token", good(k))
		}},
		{"another operator's token", func(e *operationtest.Event, k *deliverytest.Kit) {
			e.Param("operator", "orange").Param("token", good(k))
		}},
		{"a receipt's token", func(e *operationtest.Event, k *deliverytest.Kit) {
			ring, err := k.Callbacks.Ring(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			e.Param("token", ring.Sign(callback.ReceiptPath("sandbox", order)))
		}},
		{"a broken body changes nothing of it", func(e *operationtest.Event, _ *deliverytest.Kit) { e.Param("token", "x").Raw("{") }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := kit(t)
			k.Payment(order)
			e := event(t, k)
			c.forge(e, k)
			k.Do(t, e).Fails(t, 404, "900906")
			if reads(k) != 0 || len(k.Operator.Lookups()) != 0 {
				t.Errorf("%d calls of the ledger, %d lookups", reads(k), len(k.Operator.Lookups()))
			}
		})
	}
}

func TestForeign(t *testing.T) {
	cases := []struct {
		name  string
		event func(*deliverytest.Kit) *operationtest.Event
		entry func(*ledger.Entry)
	}{
		{"an operator that the payment does not belong to", func(k *deliverytest.Kit) *operationtest.Event { return addressed(t, k, "orange", order) }, nil},
		{"an order that is not there", func(k *deliverytest.Kit) *operationtest.Event {
			return addressed(t, k, "sandbox", "DemoShop_9").Set("order-id", "DemoShop_9")
		}, nil},
		{"another notif_token than the payment's", func(k *deliverytest.Kit) *operationtest.Event { return event(t, k).Set("notif_token", "another") },
			func(e *ledger.Entry) { e.NotifToken = "its-own" }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := kit(t)
			k.Operator.Says("successful")
			before := k.Payment(order, func(e *ledger.Entry) {
				if c.entry != nil {
					c.entry(e)
				}
			})
			k.Do(t, c.event(k)).Fails(t, 404, "900906")
			if after := k.Get(t, before); after.Version != before.Version || len(k.Operator.Lookups()) != 0 {
				t.Errorf("changed to %+v", after)
			}
		})
	}
	t.Run("the payment's own notif_token, or none", func(t *testing.T) {
		for _, given := range []any{"its-own", "", nil} {
			k := kit(t)
			k.Operator.Says("successful")
			e := k.Payment(order, func(e *ledger.Entry) { e.NotifToken = "its-own" })
			committed(t, k, event(t, k).Set("notif_token", given))
			if k.Get(t, e).Status != ledger.Successful {
				t.Errorf("notif_token %v: %s", given, k.Get(t, e).Status)
			}
		}
	})
}

// A web payment's end may be reported before the answer to its creation is stored, which has the token that the merchant
// compares: then it is the callback's, whether the end stands at once or is asked about later.
func TestNotifTokenBeforeTheAnswer(t *testing.T) {
	for _, said := range []string{"successful", "pending"} {
		k := kit(t)
		k.Operator.Says(said)
		e := k.Payment(order, func(e *ledger.Entry) { e.Channel = "web" })
		committed(t, k, event(t, k).Set("notif_token", "the-page's"))
		after := k.Get(t, e)
		if body := string(payment.Notification(after, ledger.Successful)); !strings.Contains(body, `"notif_token":"the-page's"`) {
			t.Errorf("getStatus says %s: the merchant is told %s", said, body)
		}
	}
}

// decision "pay-statuses": the words that real platforms send.
func TestWords(t *testing.T) {
	words := map[string]ledger.Status{
		"Initiated": ledger.Pending, "Loaded": ledger.Pending, "InProgress": ledger.Pending, "pending": ledger.Pending,
		"Success": ledger.Successful, "Successful": ledger.Successful, "SUCCESSFUL": ledger.Successful,
		"Failed": ledger.Failed, "FAILED": ledger.Failed,
		"Abandoned": ledger.Cancelled, "Canceled": ledger.Cancelled, "Cancelled": ledger.Cancelled,
		"Expired": ledger.Expired, "expired": ledger.Expired,
	}
	for word, want := range words {
		t.Run(word, func(t *testing.T) {
			k := kit(t)
			k.Operator.Says(word)
			e := k.Payment(order)
			committed(t, k, event(t, k).Set("status", word))
			after := k.Get(t, e)
			told := 0
			if want.Final() {
				told = 1
			}
			if after.Status != want || len(after.Outbox) != told || len(after.Conflicts) != 0 || len(k.Operator.Lookups()) != told {
				t.Errorf("%s: %s, %d notifications, %d lookups", word, after.Status, len(after.Outbox), len(k.Operator.Lookups()))
			}
		})
	}
}

// decision "pay-claims".
func TestClaims(t *testing.T) {
	cases := []struct {
		name      string
		claimed   string
		answer    operator.StatusAnswer
		status    ledger.Status
		claim     ledger.Status // what waits
		conflicts int
	}{
		{"success confirmed now", "Successful", operator.StatusAnswer{Known: true, Status: "Success", Amount: "500.00", Currency: "XOF"}, ledger.Successful, "", 0},
		{"failure confirmed now", "Failed", operator.StatusAnswer{Known: true, Status: "Failed"}, ledger.Failed, "", 0},
		{"getStatus still pending", "Successful", operator.StatusAnswer{Known: true, Status: "InProgress"}, ledger.Pending, ledger.Successful, 0},
		{"getStatus silent", "Failed", deliverytest.Silent(), ledger.Pending, ledger.Failed, 0},
		{"getStatus knows no such order", "Successful", deliverytest.NoSuchOrder(), ledger.Pending, ledger.Successful, 0},
		{"getStatus with a word of its own", "Successful", operator.StatusAnswer{Known: true, Status: "Exploded"}, ledger.Pending, ledger.Successful, 0},
		{"getStatus says another final status", "Successful", operator.StatusAnswer{Known: true, Status: "Failed"}, ledger.Failed, "", 1},
		{"getStatus says success to a claimed failure", "Failed", operator.StatusAnswer{Known: true, Status: "Successful"}, ledger.Successful, "", 1},
		{"getStatus has another amount", "Successful", operator.StatusAnswer{Known: true, Status: "Successful", Amount: "5"}, ledger.Pending, "", 1},
		{"getStatus has another currency", "Successful", operator.StatusAnswer{Known: true, Status: "Successful", Currency: "XAF"}, ledger.Pending, "", 1},
		{"getStatus has an amount that is none", "Successful", operator.StatusAnswer{Known: true, Status: "Successful", Amount: "much"}, ledger.Pending, "", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := kit(t)
			k.Operator.Tells(c.answer)
			e := k.Payment(order)
			committed(t, k, event(t, k).Set("status", c.claimed))
			after := k.Get(t, e)
			if after.Status != c.status || after.Claim.Status != c.claim || len(after.Conflicts) != c.conflicts {
				t.Errorf("%s, claim %q, conflicts %+v", after.Status, after.Claim.Status, after.Conflicts)
			}
			if c.claim != "" && (!after.Due.Equal(k.Clock.Now().Add(deliverytest.Recheck)) || len(after.Outbox) != 0) {
				t.Errorf("due at %s, outbox %v", after.Due, after.Outbox)
			}
			counted, _ := k.LastLine(t)["Conflicts"].(float64)
			if int(counted) != c.conflicts {
				t.Errorf("%v conflicts counted, %d kept", counted, c.conflicts)
			}
		})
	}
}

func TestWithoutALookup(t *testing.T) {
	o := &deliverytest.Operator{}
	k := serve(deliverytest.With(t, o, deliverytest.Mute{Driver: o}))
	e := k.Payment(order)
	committed(t, k, event(t, k))
	if after := k.Get(t, e); after.Status != ledger.Successful || len(after.Outbox) != 1 || after.UserSMS != "" {
		t.Errorf("%+v", after)
	}
}

func TestAmountAndCurrency(t *testing.T) {
	cases := []struct {
		name, part, reason string
		value              any
	}{
		{"another amount", "amount", "amount", "501"},
		{"an amount that is none", "amount", "amount", "five hundred"},
		{"a part of a unit", "amount", "amount", "500.5"},
		{"another currency", "currency", "currency", "XAF"},
		{"a currency that is none", "currency", "currency", "FCFA"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := kit(t)
			k.Operator.Says("Successful")
			e := k.Payment(order)
			for range 3 {
				committed(t, k, event(t, k).Set(c.part, c.value))
			}
			after := k.Get(t, e)
			if after.Status != ledger.Pending || len(after.Conflicts) != 1 || after.Conflicts[0].Reason != c.reason || after.Due.IsZero() {
				t.Errorf("%+v", after)
			}
			if strings.Count(k.Log(), `"Conflicts":1`) != 1 {
				t.Errorf("not counted once:\n%s", k.Log())
			}
		})
	}
	for _, same := range []any{"500", "500.00", "0500", 500} {
		k := kit(t)
		k.Operator.Says("Successful")
		e := k.Payment(order)
		committed(t, k, event(t, k).Set("amount", same))
		if k.Get(t, e).Status != ledger.Successful {
			t.Errorf("amount %v: %+v", same, k.Get(t, e))
		}
	}
}

// A final status never changes; a contradiction is a conflict, counted once (decision "pay-statuses").
func TestAfterTheEnd(t *testing.T) {
	k := kit(t)
	k.Operator.Says("Successful")
	e := k.Payment(order)
	committed(t, k, event(t, k))
	before := k.Get(t, e)
	for range 2 {
		committed(t, k, event(t, k))
	}
	if after := k.Get(t, e); after.Version != before.Version {
		t.Errorf("a repeat wrote: %+v", after)
	}
	for range 2 {
		committed(t, k, event(t, k).Set("status", "Failed"))
	}
	after := k.Get(t, e)
	if after.Status != ledger.Successful || len(after.Conflicts) != 1 || after.Version != before.Version+1 || len(after.Outbox) != 1 {
		t.Errorf("%+v", after)
	}
	if len(k.Operator.Lookups()) != 1 {
		t.Errorf("%d lookups", len(k.Operator.Lookups()))
	}
}

func TestRepeatedInParallel(t *testing.T) {
	const times = 20
	k := kit(t)
	k.Operator.Says("Successful")
	e := k.Payment(order)
	callbacks := make([]*operationtest.Event, times)
	for i := range callbacks {
		callbacks[i] = event(t, k)
	}
	var group sync.WaitGroup
	for _, each := range callbacks {
		group.Go(func() {
			if answer := k.Do(t, each); answer.Status != 200 {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
		})
	}
	group.Wait()
	after := k.Get(t, e)
	if after.Status != ledger.Successful || len(after.Outbox) != 1 || after.Version != e.Version+1 || len(after.Conflicts) != 0 {
		t.Errorf("%+v", after)
	}
}
