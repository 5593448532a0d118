package receipt_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"mobilegateway/functions/receipt"
	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

const (
	staticResource = "/callbacks/v1/accounts/receipts/{platform}/{account}/{secret}"
	smsAccount     = "orange-sms/" + deliverytest.CallbackAccount
	theirID        = "resource-1"
)

// serveStatic puts the function behind a gateway, with a driver for all platforms.
func serveStatic(t testing.TB, driver operator.Driver) *deliverytest.DeliveryFixture {
	t.Helper()
	o, isPlain := driver.(*deliverytest.Operator)
	if !isPlain {
		o = &deliverytest.Operator{}
	}
	k := deliverytest.NewWithDriver(t, o, driver)
	handler := &receipt.ReceiptHandler{
		Verifier: k.CallbackKeys, Book: k.Book, Now: k.Clock.Now,
		Operators: k.Confirmer.Operators, Messages: k.Ledger,
	}
	k.Serve("receipt", handler.Routes()...)
	return k
}

func newStaticFixture(t testing.TB) *deliverytest.DeliveryFixture {
	t.Helper()
	return serveStatic(t, &deliverytest.Operator{})
}

// staticEvent returns a receipt at the one address of an account of Orange.
func staticEvent(t testing.TB, status ledger.Status) *operationtest.Event {
	t.Helper()
	e := operationtest.LoadEvent(t, "testdata/event.json").SetField("resource", staticResource)
	e.SetPathParameter("platform", "orange-sms").SetPathParameter("account", deliverytest.CallbackAccount)
	e.SetPathParameter("secret", deliverytest.CallbackSecret)
	return e.SetRawBody(`{"id":"` + theirID + `","status":"` + string(status) + `"}`)
}

// storeMessage stores a message that is pinned to an account.
func storeMessage(k *deliverytest.DeliveryFixture, account string) *ledger.Entry {
	e := k.NewMessage(message)
	e.Route.Operator, e.Route.Account = "orange", account
	outcome := ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}
	e.ApplyOutcome("owner", outcome, ledger.Timestamp(k.Clock.Now()))
	return k.StoreEntry(e)
}

// bind binds the operator's id to the message, as the function sms does after the response.
func bind(t testing.TB, k *deliverytest.DeliveryFixture, want ...ledger.Status) {
	t.Helper()
	early, err := k.Ledger.BindMessage(context.Background(), smsAccount, theirID, message, time.Time{})
	if err != nil || !slices.Equal(early, want) {
		t.Fatalf("statuses before the response: %v, %v; want %v", early, err, want)
	}
}

// decision "static-callbacks": after the send a receipt costs one refused write, a read and a write.
func TestStaticReceipt(t *testing.T) {
	k := newStaticFixture(t)
	e := storeMessage(k, smsAccount)
	bind(t, k)
	for range 2 { // the platform repeats the last one
		k.AssertCommitted(t, staticEvent(t, ledger.DeliveredToTerminal))
		k.AssertEntry(t, e, delivered)
	}
	k.AssertCommitted(t, staticEvent(t, ledger.DeliveredToNetwork))
	k.AssertEntry(t, e, delivered)
	got := [3]int{k.Ledger.CallCount(storetest.FindMessage), k.Ledger.CallCount(storetest.Get),
		k.Ledger.CallCount(storetest.Replace)}
	if want := [3]int{3, 3, 1}; got != want {
		t.Errorf("FindMessage, Get and Replace %v, want %v", got, want)
	}
}

// A receipt may come before the response to its message: it is kept, and the response finds it.
func TestStaticReceiptBeforeTheResponse(t *testing.T) {
	k := newStaticFixture(t)
	e := storeMessage(k, smsAccount)
	k.AssertCommitted(t, staticEvent(t, ledger.DeliveredToNetwork))
	if after := k.MustGet(t, e); after.Version != e.Version || k.Ledger.CallCount(storetest.Get) != 0 {
		t.Errorf("version %d after %d", after.Version, e.Version)
	}
	bind(t, k, ledger.DeliveredToNetwork)
	// The function sms died before it applied the receipt that came first: the next one brings it along.
	k.AssertCommitted(t, staticEvent(t, ledger.DeliveredToTerminal))
	assertQueued(t, k, e, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal)
}

// expiries notes until when receipts of unknown messages are kept.
type expiries struct {
	ledger.MessageIndex
	got []time.Time
}

// FindMessage implements ledger.MessageIndex.
func (e *expiries) FindMessage(
	ctx context.Context, account, reference string, statuses []ledger.Status, expireAt time.Time,
) (string, []ledger.Status, error) {
	e.got = append(e.got, expireAt)
	return e.MessageIndex.FindMessage(ctx, account, reference, statuses, expireAt)
}

// decision "static-callbacks": a receipt of an unknown message is kept for seven days.
func TestStaticReceiptIsKept(t *testing.T) {
	k := newStaticFixture(t)
	kept := &expiries{MessageIndex: k.Ledger}
	handler := &receipt.ReceiptHandler{
		Verifier: k.CallbackKeys, Book: k.Book, Now: k.Clock.Now, Operators: k.Confirmer.Operators, Messages: kept,
	}
	k.Serve("receipt", handler.Routes()...)
	k.AssertCommitted(t, staticEvent(t, ledger.DeliveredToNetwork))
	if want := k.Clock.Now().Add(168 * time.Hour); len(kept.got) != 1 || !kept.got[0].Equal(want) {
		t.Errorf("kept until %s, want %s", kept.got, want)
	}
}

// A forged receipt gets 404, and costs no call of the ledger.
func TestForgedStaticReceipt(t *testing.T) {
	deliverytest.CheckForgedStatic(t, func(t testing.TB) *deliverytest.DeliveryFixture {
		k := newStaticFixture(t)
		storeMessage(k, smsAccount)
		bind(t, k)
		return k
	}, func(t testing.TB) *operationtest.Event { return staticEvent(t, ledger.DeliveredToTerminal) }, "orange")
	k := serveStatic(t, deliverytest.MinimalDriver{})
	k.Send(t, staticEvent(t, ledger.DeliveredToTerminal)).AssertError(t, 404, "900906")
}

// A receipt that concerns no message of the account gets 200 and changes nothing.
func TestStaticReceiptWithoutEffect(t *testing.T) {
	for _, c := range []struct {
		name, account string // what the message is pinned to
		change        func(*operationtest.Event)
		counted       bool
	}{
		{"not JSON", smsAccount, func(e *operationtest.Event) { e.SetRawBody("{") }, true},
		{"an unknown status", smsAccount, func(e *operationtest.Event) {
			e.SetRawBody(`{"id":"` + theirID + `","status":"Lost"}`)
		}, true},
		{"an unknown message", smsAccount, func(e *operationtest.Event) {
			e.SetRawBody(`{"id":"resource-2","status":"DeliveredToTerminal"}`)
		}, false},
		{"a message of another account", "orange-sms/ci", func(*operationtest.Event) {}, false},
		{"a message without a route", deliverytest.CallbackAccount, func(*operationtest.Event) {}, false},
	} {
		k := newStaticFixture(t)
		e := storeMessage(k, c.account)
		bind(t, k)
		event := staticEvent(t, ledger.DeliveredToTerminal)
		c.change(event)
		k.AssertCommitted(t, event)
		if after := k.MustGet(t, e); after.Version != e.Version {
			t.Errorf("%s: version %d after %d", c.name, after.Version, e.Version)
		}
		k.AssertMetric(t, "UnreadCallbacks", map[bool]int{true: 1}[c.counted])
	}
	k := newStaticFixture(t)
	bind(t, k) // the message itself is past its retention
	k.AssertCommitted(t, staticEvent(t, ledger.DeliveredToTerminal))
}

// After a failure the platform gets 503, and its repeat has the effect.
func TestStaticReceiptFails(t *testing.T) {
	k := serveStatic(t, deliverytest.UnreadableAccount{Operator: &deliverytest.Operator{}})
	k.Send(t, staticEvent(t, ledger.DeliveredToTerminal)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	for _, operation := range []storetest.Operation{storetest.FindMessage, storetest.Get, storetest.Replace} {
		for _, fault := range []storetest.Fault{storetest.FailedBeforeApply, storetest.LostResponse} {
			k := newStaticFixture(t)
			e := storeMessage(k, smsAccount)
			bind(t, k)
			k.Ledger.FailNext(operation, fault)
			k.Send(t, staticEvent(t, ledger.DeliveredToTerminal)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
			k.AssertCommitted(t, staticEvent(t, ledger.DeliveredToTerminal))
			k.AssertEntry(t, e, delivered)
		}
	}
}
