package sms_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

const (
	smsAccount = "orange-sms/s"
	theirID    = "op-DemoShop.s-1001" // the operator's id of the golden message
)

// newRouted returns a fixture that sends messages over a platform with one address for all receipts.
func newRouted(t testing.TB) (*operationtest.Fixture, *operationtest.Routes) {
	t.Helper()
	w, routes := operationtest.New(t), &operationtest.Routes{}
	routes.Set("orange", operator.Route{Country: "CI", Operation: "sms", To: smsAccount})
	w.UseRoutes(w.Driver, routes)
	w.UpdateDemo(func(p *merchant.Profile) { p.Operators = []string{"orange"} })
	o := newOperation(w)
	o.Messages = w.Ledger
	return w.Serve("sms", o.Route()), routes
}

// receive is a receipt of the golden message, as the function receipt stores it.
func receive(t testing.TB, w *operationtest.Fixture, status ledger.Status) (id string, early []ledger.Status) {
	t.Helper()
	id, early, err := w.Ledger.FindMessage(t.Context(), smsAccount, theirID, []ledger.Status{status}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return id, early
}

// decision "static-callbacks": the operator's id finds the message once its response is stored, with one write more.
func TestMessageIsBound(t *testing.T) {
	w, _ := newRouted(t)
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	e := w.OnlyEntry(t, ledger.SMS)
	if e.Route.Account != smsAccount || w.Driver.Calls()[0].Call.Platform != "orange-sms" {
		t.Errorf("pinned to %s, sent over %s", e.Route.Account, w.Driver.Calls()[0].Call.Platform)
	}
	w.AssertCallCounts(t, 1, 0, 1, 1)
	if id, early := receive(t, w, ledger.DeliveredToNetwork); id != e.ID || len(early) != 0 {
		t.Errorf("found message %q with %v, want %s", id, early, e.ID)
	}
}

// A part that the platform does not take is refused before anything is stored: the corrected request is a new one.
func TestPlatformRefusesPart(t *testing.T) {
	w, _ := newRouted(t)
	w.Driver.Refused = fault.BrokenRule("X-Operator-ISE2", logsafe.New("the number is of another country"))
	w.Send(t, newEvent(t)).AssertError(t, 400, "SVC0002", "X-Operator-ISE2")
	if stored := len(w.Ledger.All()); stored != 0 || len(w.Driver.Calls()) != 0 {
		t.Errorf("%d entries, %d calls; want none", stored, len(w.Driver.Calls()))
	}
	w.Driver.Refused = nil
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
}

// A platform with signed addresses needs no such write, and no message that was not sent is bound.
func TestMessageIsNotBound(t *testing.T) {
	for name, c := range map[string]struct {
		behaviour operationtest.Behaviour
		change    func(*operationtest.Routes)
	}{
		"another platform": {operationtest.Succeed, func(r *operationtest.Routes) { r.Set("orange") }},
		"unknown":          {operationtest.LoseResponse, func(*operationtest.Routes) {}},
		"refused":          {operationtest.RefuseFinally("POL0001"), func(*operationtest.Routes) {}},
		"not applied":      {operationtest.RespondUnavailable, func(*operationtest.Routes) {}},
	} {
		w, routes := newRouted(t)
		c.change(routes)
		w.Driver.SetBehaviours(c.behaviour)
		w.Send(t, newEvent(t))
		if got := w.Ledger.CallCount(storetest.BindMessage); got != 0 || len(w.Driver.Calls()) != 1 {
			t.Errorf("%s: %d bindings after %d calls", name, got, len(w.Driver.Calls()))
		}
	}
}

// The receipts that came before the response are applied with it, and notified.
func TestEarlyReceipts(t *testing.T) {
	w, _ := newRouted(t)
	w.Driver.SetBehaviours(func(apply func()) operator.Result {
		receive(t, w, ledger.DeliveredToNetwork)
		receive(t, w, ledger.DeliveredToTerminal)
		return operationtest.Succeed(apply)
	})
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	e := w.OnlyEntry(t, ledger.SMS)
	var queued []ledger.Status
	for _, n := range e.Outbox.Waiting {
		queued = append(queued, n.Status)
	}
	want := []ledger.Status{ledger.DeliveredToNetwork, ledger.DeliveredToTerminal}
	if e.Status != ledger.DeliveredToTerminal || !slices.Equal(queued, want) {
		t.Errorf("status %s, notified %v", e.Status, queued)
	}
	w.AssertCallCounts(t, 1, 0, 1, 1)
}

// A message that cannot be bound was sent all the same: the merchant gets 201, the failure is counted, and the sweep
// binds the message a minute later.
func TestBindingFails(t *testing.T) {
	for _, fault := range []storetest.Fault{storetest.FailedBeforeApply, storetest.LostResponse} {
		w, _ := newRouted(t)
		w.Ledger.FailNext(storetest.BindMessage, fault)
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		w.AssertCounted(t, "UnreadCallbacks")
		e := w.OnlyEntry(t, ledger.SMS)
		retry := e.SentAt.Add(ledger.FirstBindWait)
		if e.State != ledger.Done || !e.BindAt.Equal(retry) || !e.DueAt.Equal(retry) {
			t.Errorf("state %s, bound again at %s, due at %s; want it done, and due at %s",
				e.State, e.BindAt, e.DueAt, retry)
		}
		w.AssertSingleEffect(t, expectedEffect, 1)
	}
}

// A message that may have been sent is never sent again over a platform that takes no repeat.
func TestNoRepeat(t *testing.T) {
	w, routes := newRouted(t)
	w.Driver.SetBehaviours(operationtest.LoseResponse)
	w.Send(t, newEvent(t)).AssertUnknown(t)
	routes.Set("orange")
	w.Send(t, newEvent(t)).AssertUnknown(t)
	w.AssertSingleEffect(t, expectedEffect, 1)
}

// The messages of an account stay within its platform's rate. A table that does not respond limits nothing.
func TestAccountRate(t *testing.T) {
	const burst = 5 // of orange-sms
	w, routes := newRouted(t)
	number := 0
	send := func(account string) operationtest.Response {
		routes.Set("orange", operator.Route{Country: "CI", Operation: "sms", To: account})
		number++
		return w.Send(t, newEvent(t).SetBodyPart(correlator, fmt.Sprint("s-", number)))
	}
	for range burst {
		send(smsAccount).AssertStatus(t, 201)
	}
	send(smsAccount).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	w.AssertOperatorCalls(t, burst)
	send("orange-sms/ci").AssertStatus(t, 201)
	w.Clock.Advance(time.Second / burst)
	send(smsAccount).AssertStatus(t, 201)
	w.LimitStore.FailNext(storetest.UpdateRate, storetest.FailedBeforeApply)
	send("orange-sms/bf").AssertStatus(t, 201)
	w.AssertCounted(t, "LimitStoreFailures")
	calls := w.LimitStore.CallCount(storetest.UpdateRate)
	routes.Set("orange")
	w.Send(t, newEvent(t)).AssertStatus(t, 201)
	if w.LimitStore.CallCount(storetest.UpdateRate) != calls {
		t.Error("a platform without a rate costs a write")
	}
}
