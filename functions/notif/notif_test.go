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

// serveCallbacks puts the function behind a gateway.
func serveCallbacks(k *deliverytest.DeliveryFixture) *deliverytest.DeliveryFixture {
	handler := &notif.CallbackHandler{
		Verifier: k.CallbackKeys, Book: k.Book, Reconciler: k.Reconciler, DailyAmounts: k.Pipeline.DailyAmounts, ClaimRecheckDelay: deliverytest.ClaimRecheckDelay, Now: k.Clock.Now,
	}
	k.Serve("notif", handler.Route())
	return k
}

func newFixture(t testing.TB) *deliverytest.DeliveryFixture {
	t.Helper()
	return serveCallbacks(deliverytest.New(t))
}

// newEvent is the golden callback with a good token.
func newEvent(t testing.TB, k *deliverytest.DeliveryFixture) *operationtest.Event {
	t.Helper()
	return newEventFor(t, k, "sandbox", order)
}

// newEventFor is the callback of an operator about an order, with the token of that address.
func newEventFor(t testing.TB, k *deliverytest.DeliveryFixture, name, id string) *operationtest.Event {
	t.Helper()
	callbackRing, err := k.CallbackKeys.Ring(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	e := operationtest.LoadEvent(t, "testdata/event.json")
	return e.SetPathParameter("operator", name).SetPathParameter("orderId", id).SetPathParameter("token", callbackRing.Sign(callback.PaymentPath(name, id)))
}

// assertCommitted checks a callback's 200.
func assertCommitted(t testing.TB, k *deliverytest.DeliveryFixture, e *operationtest.Event) {
	t.Helper()
	if lookup := k.Send(t, e).AssertStatus(t, 200); lookup.Body != `{"status":"OK"}` {
		t.Errorf("body %s", lookup.Body)
	}
}

// storeCalls is how often anything was asked of the ledger.
func storeCalls(k *deliverytest.DeliveryFixture) int {
	return k.Ledger.CallCount(ledgermem.Get) + k.Ledger.WriteCount()
}

// decision "callbacks": a forged call costs no database call and gets 404.
func TestForgedCallback(t *testing.T) {
	good := func(k *deliverytest.DeliveryFixture) string {
		callbackRing, err := k.CallbackKeys.Ring(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return callbackRing.Sign(callback.PaymentPath("sandbox", order))
	}
	cases := []struct {
		name  string
		forge func(*operationtest.Event, *deliverytest.DeliveryFixture)
	}{
		{"no token at all", func(e *operationtest.Event, _ *deliverytest.DeliveryFixture) { e.SetPathParameter("token", "x") }},
		{"a token of the right length", func(e *operationtest.Event, _ *deliverytest.DeliveryFixture) {
			e.SetPathParameter("token", strings.Repeat("A", callback.TokenLength))
		}},
		{"the last character changed", func(e *operationtest.Event, k *deliverytest.DeliveryFixture) {
			token := good(k)
			last := "A"
			if strings.HasSuffix(token, "A") {
				last = "Q"
			}
			e.SetPathParameter("token", token[:len(token)-1]+last)
		}},
		{"another order's token", func(e *operationtest.Event, k *deliverytest.DeliveryFixture) {
			e.SetPathParameter("orderId", "DemoShop_1002").SetPathParameter("token", good(k))
		}},
		{"another operator's token", func(e *operationtest.Event, k *deliverytest.DeliveryFixture) {
			e.SetPathParameter("operator", "orange").SetPathParameter("token", good(k))
		}},
		{"a receipt's token", func(e *operationtest.Event, k *deliverytest.DeliveryFixture) {
			callbackRing, err := k.CallbackKeys.Ring(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			e.SetPathParameter("token", callbackRing.Sign(callback.ReceiptPath("sandbox", order)))
		}},
		{"a broken body changes nothing of it", func(e *operationtest.Event, _ *deliverytest.DeliveryFixture) {
			e.SetPathParameter("token", "x").SetRawBody("{")
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t)
			k.StorePendingPayment(order)
			e := newEvent(t, k)
			c.forge(e, k)
			k.Send(t, e).AssertError(t, 404, "900906")
			if storeCalls(k) != 0 || len(k.Operator.Lookups()) != 0 {
				t.Errorf("%d calls of the ledger, %d lookups", storeCalls(k), len(k.Operator.Lookups()))
			}
		})
	}
}

func TestForeignCallback(t *testing.T) {
	cases := []struct {
		name  string
		event func(*deliverytest.DeliveryFixture) *operationtest.Event
		entry func(*ledger.Entry)
	}{
		{"an operator that the payment does not belong to", func(k *deliverytest.DeliveryFixture) *operationtest.Event { return newEventFor(t, k, "orange", order) }, nil},
		{"an order that is not there", func(k *deliverytest.DeliveryFixture) *operationtest.Event {
			return newEventFor(t, k, "sandbox", "DemoShop_9").SetBodyPart("order-id", "DemoShop_9")
		}, nil},
		{"another notif_token than the payment's", func(k *deliverytest.DeliveryFixture) *operationtest.Event {
			return newEvent(t, k).SetBodyPart("notif_token", "another")
		},
			func(e *ledger.Entry) { e.NotifToken = "its-own" }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t)
			k.Operator.SetStatus("successful")
			before := k.StorePendingPayment(order, func(e *ledger.Entry) {
				if c.entry != nil {
					c.entry(e)
				}
			})
			k.Send(t, c.event(k)).AssertError(t, 404, "900906")
			if after := k.MustGet(t, before); after.Version != before.Version || len(k.Operator.Lookups()) != 0 {
				t.Errorf("changed to %+v", after)
			}
		})
	}
	t.Run("the payment's own notif_token, or none", func(t *testing.T) {
		for _, received := range []any{"its-own", "", nil} {
			k := newFixture(t)
			k.Operator.SetStatus("successful")
			e := k.StorePendingPayment(order, func(e *ledger.Entry) { e.NotifToken = "its-own" })
			assertCommitted(t, k, newEvent(t, k).SetBodyPart("notif_token", received))
			if k.MustGet(t, e).Status != ledger.Successful {
				t.Errorf("notif_token %v: %s", received, k.MustGet(t, e).Status)
			}
		}
	})
}

// A web payment's end may be reported before the answer to its creation is stored, which has the token that the merchant
// compares: then it is the callback's, whether the end stands at once or is asked about later.
func TestNotifTokenBeforeResponse(t *testing.T) {
	for _, lookupStatus := range []string{"successful", "pending"} {
		k := newFixture(t)
		k.Operator.SetStatus(lookupStatus)
		e := k.StorePendingPayment(order, func(e *ledger.Entry) { e.Channel = "web" })
		assertCommitted(t, k, newEvent(t, k).SetBodyPart("notif_token", "the-page's"))
		after := k.MustGet(t, e)
		if body := string(payment.NotificationBody(after, ledger.Successful)); !strings.Contains(body, `"notif_token":"the-page's"`) {
			t.Errorf("getStatus says %s: the merchant is told %s", lookupStatus, body)
		}
	}
}

// decision "pay-statuses": the words that real platforms send.
func TestOperatorStatusTexts(t *testing.T) {
	statusTexts := map[string]ledger.Status{
		"Initiated": ledger.Pending, "Loaded": ledger.Pending, "InProgress": ledger.Pending, "pending": ledger.Pending,
		"Success": ledger.Successful, "Successful": ledger.Successful, "SUCCESSFUL": ledger.Successful,
		"Failed": ledger.Failed, "FAILED": ledger.Failed,
		"Abandoned": ledger.Cancelled, "Canceled": ledger.Cancelled, "Cancelled": ledger.Cancelled,
		"Expired": ledger.Expired, "expired": ledger.Expired,
	}
	for statusText, want := range statusTexts {
		t.Run(statusText, func(t *testing.T) {
			k := newFixture(t)
			k.Operator.SetStatus(statusText)
			e := k.StorePendingPayment(order)
			assertCommitted(t, k, newEvent(t, k).SetBodyPart("status", statusText))
			after := k.MustGet(t, e)
			deliveries := 0
			if want.Final() {
				deliveries = 1
			}
			if after.Status != want || len(after.Outbox) != deliveries || len(after.Conflicts) != 0 || len(k.Operator.Lookups()) != deliveries {
				t.Errorf("%s: %s, %d notifications, %d lookups", statusText, after.Status, len(after.Outbox), len(k.Operator.Lookups()))
			}
		})
	}
}

// decision "pay-claims".
func TestClaims(t *testing.T) {
	cases := []struct {
		name      string
		claimed   string
		answer    operator.StatusResponse
		status    ledger.Status
		claim     ledger.Status // what waits
		conflicts int
	}{
		{"success confirmed now", "Successful", operator.StatusResponse{StatusKnown: true, OperatorStatus: "Success", Amount: "500.00", Currency: "XOF"}, ledger.Successful, "", 0},
		{"failure confirmed now", "Failed", operator.StatusResponse{StatusKnown: true, OperatorStatus: "Failed"}, ledger.Failed, "", 0},
		{"getStatus still pending", "Successful", operator.StatusResponse{StatusKnown: true, OperatorStatus: "InProgress"}, ledger.Pending, ledger.Successful, 0},
		{"getStatus silent", "Failed", deliverytest.NoResponse(), ledger.Pending, ledger.Failed, 0},
		{"getStatus knows no such order", "Successful", deliverytest.NoSuchOrder(), ledger.Pending, ledger.Successful, 0},
		{"getStatus with a word of its own", "Successful", operator.StatusResponse{StatusKnown: true, OperatorStatus: "Exploded"}, ledger.Pending, ledger.Successful, 0},
		{"getStatus says another final status", "Successful", operator.StatusResponse{StatusKnown: true, OperatorStatus: "Failed"}, ledger.Failed, "", 1},
		{"getStatus says success to a claimed failure", "Failed", operator.StatusResponse{StatusKnown: true, OperatorStatus: "Successful"}, ledger.Successful, "", 1},
		{"getStatus has another amount", "Successful", operator.StatusResponse{StatusKnown: true, OperatorStatus: "Successful", Amount: "5"}, ledger.Pending, "", 1},
		{"getStatus has another currency", "Successful", operator.StatusResponse{StatusKnown: true, OperatorStatus: "Successful", Currency: "XAF"}, ledger.Pending, "", 1},
		{"getStatus has an amount that is none", "Successful", operator.StatusResponse{StatusKnown: true, OperatorStatus: "Successful", Amount: "much"}, ledger.Pending, "", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t)
			k.Operator.SetLookupResult(c.answer)
			e := k.StorePendingPayment(order)
			assertCommitted(t, k, newEvent(t, k).SetBodyPart("status", c.claimed))
			after := k.MustGet(t, e)
			if after.Status != c.status || after.Claim.Status != c.claim || len(after.Conflicts) != c.conflicts {
				t.Errorf("%s, claim %q, conflicts %+v", after.Status, after.Claim.Status, after.Conflicts)
			}
			if c.claim != "" && (!after.DueAt.Equal(k.Clock.Now().Add(deliverytest.ClaimRecheckDelay)) || len(after.Outbox) != 0) {
				t.Errorf("due at %s, outbox %v", after.DueAt, after.Outbox)
			}
			counted, _ := k.LastLine(t)["StatusConflicts"].(float64)
			if int(counted) != c.conflicts {
				t.Errorf("%v conflicts counted, %d kept", counted, c.conflicts)
			}
		})
	}
}

func TestOperatorWithoutLookup(t *testing.T) {
	o := &deliverytest.Operator{}
	k := serveCallbacks(deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o}))
	e := k.StorePendingPayment(order)
	assertCommitted(t, k, newEvent(t, k))
	if after := k.MustGet(t, e); after.Status != ledger.Successful || len(after.Outbox) != 1 || after.UserSMS != "" {
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
			k := newFixture(t)
			k.Operator.SetStatus("Successful")
			e := k.StorePendingPayment(order)
			for range 3 {
				assertCommitted(t, k, newEvent(t, k).SetBodyPart(c.part, c.value))
			}
			after := k.MustGet(t, e)
			if after.Status != ledger.Pending || len(after.Conflicts) != 1 || after.Conflicts[0].Reason != c.reason || after.DueAt.IsZero() {
				t.Errorf("%+v", after)
			}
			if strings.Count(k.Log(), `"StatusConflicts":1`) != 1 {
				t.Errorf("not counted once:\n%s", k.Log())
			}
		})
	}
	for _, same := range []any{"500", "500.00", "0500", 500} {
		k := newFixture(t)
		k.Operator.SetStatus("Successful")
		e := k.StorePendingPayment(order)
		assertCommitted(t, k, newEvent(t, k).SetBodyPart("amount", same))
		if k.MustGet(t, e).Status != ledger.Successful {
			t.Errorf("amount %v: %+v", same, k.MustGet(t, e))
		}
	}
}

// A final status never changes; a contradiction is a conflict, counted once (decision "pay-statuses").
func TestCallbackAfterFinalStatus(t *testing.T) {
	k := newFixture(t)
	k.Operator.SetStatus("Successful")
	e := k.StorePendingPayment(order)
	assertCommitted(t, k, newEvent(t, k))
	before := k.MustGet(t, e)
	for range 2 {
		assertCommitted(t, k, newEvent(t, k))
	}
	if after := k.MustGet(t, e); after.Version != before.Version {
		t.Errorf("a repeat wrote: %+v", after)
	}
	for range 2 {
		assertCommitted(t, k, newEvent(t, k).SetBodyPart("status", "Failed"))
	}
	after := k.MustGet(t, e)
	if after.Status != ledger.Successful || len(after.Conflicts) != 1 || after.Version != before.Version+1 || len(after.Outbox) != 1 {
		t.Errorf("%+v", after)
	}
	if len(k.Operator.Lookups()) != 1 {
		t.Errorf("%d lookups", len(k.Operator.Lookups()))
	}
}

func TestRepeatedInParallel(t *testing.T) {
	const times = 20
	k := newFixture(t)
	k.Operator.SetStatus("Successful")
	e := k.StorePendingPayment(order)
	callbacks := make([]*operationtest.Event, times)
	for i := range callbacks {
		callbacks[i] = newEvent(t, k)
	}
	var group sync.WaitGroup
	for _, each := range callbacks {
		group.Go(func() {
			if lookup := k.Send(t, each); lookup.Status != 200 {
				t.Errorf("%d %s", lookup.Status, lookup.Body)
			}
		})
	}
	group.Wait()
	after := k.MustGet(t, e)
	if after.Status != ledger.Successful || len(after.Outbox) != 1 || after.Version != e.Version+1 || len(after.Conflicts) != 0 {
		t.Errorf("%+v", after)
	}
}
