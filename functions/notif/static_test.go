package notif_test

import (
	"testing"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

const staticResource = "/callbacks/v1/accounts/payments/{platform}/{account}/{secret}"

// waveEvent returns the golden callback at the one address of an account of Wave.
func waveEvent(t testing.TB) *operationtest.Event {
	t.Helper()
	e := operationtest.LoadEvent(t, "testdata/event.json").SetField("resource", staticResource)
	e.SetPathParameter("platform", "wave-checkout").SetPathParameter("account", deliverytest.CallbackAccount)
	return e.SetPathParameter("secret", deliverytest.CallbackSecret).SetBodyPart("order-id", order)
}

// pinned pins a payment to an account of Wave.
func pinned(account string) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.Route.Operator, e.Route.Account, e.Request.Channel = "wave", account, "web" }
}

// storeWavePayment stores a pending payment of the account that calls back.
func storeWavePayment(k *deliverytest.DeliveryFixture) *ledger.Entry {
	return k.StorePendingPayment(order, pinned("wave-checkout/"+deliverytest.CallbackAccount))
}

// waveSuccess is the summary of a payment after a confirmed success: the platform itself sends the payer's SMS.
var waveSuccess = summary{State: ledger.Done, Status: ledger.Successful, Outbox: 1, Due: true}

// decision "static-callbacks": a callback is confirmed by a lookup, and its effect is that of a signed address.
func TestStaticCallback(t *testing.T) {
	k := newFixture(t, "Successful")
	e := storeWavePayment(k)
	k.AssertCommitted(t, waveEvent(t).SetBodyPart("status", "Successful"))
	k.AssertEntry(t, e, waveSuccess)
	assertCalls(t, k, 2, 1)
	if call := k.Operator.Lookups()[0].Call; call.Platform != "wave-checkout" || call.AccountID != "sn" {
		t.Errorf("looked up at %s, account %s", call.Platform, call.AccountID)
	}
	k.AssertCommitted(t, waveEvent(t).SetBodyPart("status", "Successful"))
	k.AssertEntry(t, e, waveSuccess)
	assertCalls(t, k, 3, 1)
}

// decision "static-callbacks": a forged callback gets 404, and costs no call of the ledger.
func TestForgedStaticCallback(t *testing.T) {
	deliverytest.CheckForgedStatic(t, func(t testing.TB) *deliverytest.DeliveryFixture {
		k := newFixture(t, "Successful")
		storeWavePayment(k)
		return k
	}, waveEvent, "mtn-momo")
	newFixture(t, "").Send(t, waveEvent(t).SetPathParameter("platform", "Wave-Checkout")).AssertError(t, 404, "900906")
	k := serveCallbacks(deliverytest.NewWithDriver(t, &deliverytest.Operator{}, deliverytest.MinimalDriver{}))
	k.Send(t, waveEvent(t)).AssertError(t, 404, "900906")
}

// An account speaks only of its own payments. Any other report gets 200, so that the platform does not repeat it.
func TestStaticCallbackOfAnotherPayment(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*ledger.Entry)
		id     string
		reads  int
	}{
		{"an unknown order", pinned("wave-checkout/sn"), "DemoShop_9", 1},
		{"another account's", pinned("wave-checkout/ci"), order, 1},
		{"another platform's", func(e *ledger.Entry) { e.Route.Account = "pawapay/sn" }, order, 1},
		{"one without a route", func(e *ledger.Entry) { e.Route.Account = deliverytest.CallbackAccount }, order, 1},
		{"no order", pinned("wave-checkout/sn"), "", 0},
	} {
		k := newFixture(t, "Successful")
		e := k.StorePendingPayment(order, c.change)
		k.AssertCommitted(t, waveEvent(t).SetBodyPart("order-id", c.id).SetBodyPart("status", "Successful"))
		if after := k.MustGet(t, e); after.Version != e.Version {
			t.Errorf("%s: version %d after %d", c.name, after.Version, e.Version)
		}
		assertCalls(t, k, c.reads, 0)
	}
}

// A callback on another key of the same order is about another payment.
func TestStaticCallbackOfAnotherKey(t *testing.T) {
	for key, status := range map[string]ledger.Status{
		"the-key": ledger.Successful, "another-key": ledger.Pending, "": ledger.Successful,
	} {
		o := &deliverytest.Operator{}
		k := serveCallbacks(deliverytest.NewWithDriver(t, o, keyReporter{o, key}))
		k.Operator.SetStatus("Successful")
		withKey := func(e *ledger.Entry) { e.Route.UpstreamKey = "the-key" }
		e := k.StorePendingPayment(order, pinned("wave-checkout/sn"), withKey)
		k.AssertCommitted(t, waveEvent(t).SetBodyPart("status", "Successful"))
		if after := k.MustGet(t, e); after.Status != status {
			t.Errorf("key %q: the payment is %s, want %s", key, after.Status, status)
		}
	}
}

// keyReporter reads callbacks that have the upstream key.
type keyReporter struct {
	*deliverytest.Operator
	key string
}

func (r keyReporter) ReadPaymentCallback(body []byte) operator.CallbackReport {
	report := r.Operator.ReadPaymentCallback(body)
	report.UpstreamKey = r.key
	return report
}

// decision "unread-callbacks": a callback that names its payment makes a lookup due. Any other one is only counted.
func TestUnreadStaticCallback(t *testing.T) {
	k := newFixture(t, "Successful")
	e := storeWavePayment(k)
	k.AssertCommitted(t, waveEvent(t).SetRawBody("{"))
	k.AssertCounted(t, "UnreadCallbacks")
	assertCalls(t, k, 0, 0)
	k.AssertCommitted(t, waveEvent(t).SetRawBody(`{"status":"Exploded","order-id":"`+order+`"}`))
	k.AssertCounted(t, "UnreadCallbacks")
	assertCalls(t, k, 2, 0)
	if after := k.MustGet(t, e); !after.Poll.At.Equal(k.Clock.Now()) || after.Status != ledger.Pending {
		t.Errorf("the lookup is due at %s, the status is %s", after.Poll.At, after.Status)
	}
}

// Without an effect the platform gets 503, and sends the callback again.
func TestStaticCallbackFails(t *testing.T) {
	o := &deliverytest.Operator{}
	k := serveCallbacks(deliverytest.NewWithDriver(t, o, deliverytest.UnreadableAccount{Operator: o}))
	storeWavePayment(k)
	k.Send(t, waveEvent(t)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	assertCalls(t, k, 0, 0)
	for _, operation := range []storetest.Operation{storetest.Get, storetest.Replace} {
		k := newFixture(t, "Successful")
		e := storeWavePayment(k)
		k.Ledger.FailNext(operation, storetest.FailedBeforeApply)
		event := func() *operationtest.Event { return waveEvent(t).SetBodyPart("status", "Successful") }
		k.Send(t, event()).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
		k.AssertCommitted(t, event())
		k.AssertEntry(t, e, waveSuccess)
	}
}

// Some platforms call back with PUT at a signed address.
func TestPut(t *testing.T) {
	k := newFixture(t, "Successful")
	e := k.StorePendingPayment(order)
	k.AssertCommitted(t, newEvent(t, k).SetField("httpMethod", "PUT").SetBodyPart("status", "Successful"))
	k.AssertEntry(t, e, successful)
	k.Send(t, newEvent(t, k).SetField("httpMethod", "PUT").SetPathParameter("token", "x")).AssertError(t, 404, "900906")
	k.Send(t, newEvent(t, k).SetField("httpMethod", "PATCH")).AssertError(t, 404, "900906")
}
