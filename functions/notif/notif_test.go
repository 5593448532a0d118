package notif_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/functions/notif"
	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/payment"
	"mobilegateway/shared/timeline"
)

const order = "DemoShop_1001"

// summary is the summary of an entry.
type summary = deliverytest.EntrySummary

// successful is the summary of a payment after a confirmed success.
var successful = summary{
	State: ledger.Done, Status: ledger.Successful, Outbox: 1, UserSMS: ledger.UserSMSDue, Due: true,
}

// serveCallbacks puts the function behind a gateway.
func serveCallbacks(k *deliverytest.DeliveryFixture) *deliverytest.DeliveryFixture {
	handler := &notif.CallbackHandler{
		Verifier: k.CallbackKeys, Book: k.Book, Confirmer: k.Confirmer,
		ClaimRecheckInterval: deliverytest.ClaimRecheckInterval, Now: k.Clock.Now,
	}
	k.Serve("notif", handler.Routes()...)
	return k
}

// newFixture returns a fixture whose operator's getStatus returns a status.
func newFixture(t testing.TB, status string) *deliverytest.DeliveryFixture {
	t.Helper()
	k := serveCallbacks(deliverytest.New(t))
	k.Operator.SetStatus(status)
	return k
}

// newEvent returns the golden callback with a valid token.
func newEvent(t testing.TB, k *deliverytest.DeliveryFixture) *operationtest.Event {
	t.Helper()
	return newEventFor(t, k, "sandbox", order)
}

// newEventFor returns the callback of an operator for an order, with a valid token.
func newEventFor(t testing.TB, k *deliverytest.DeliveryFixture, name, id string) *operationtest.Event {
	t.Helper()
	e := operationtest.LoadEvent(t, "testdata/event.json").SetBodyPart("order-id", id)
	e.SetPathParameter("operator", name).SetPathParameter("orderId", id)
	return e.SetPathParameter("token", k.SignPath(t, callback.PaymentPath(name, id)))
}

// sendStatus sends a callback with a status and checks that it is acknowledged.
func sendStatus(t testing.TB, k *deliverytest.DeliveryFixture, status string) {
	t.Helper()
	k.AssertCommitted(t, newEvent(t, k).SetBodyPart("status", status))
}

// assertCalls checks the number of ledger calls and lookups.
func assertCalls(t testing.TB, k *deliverytest.DeliveryFixture, ledgerCalls, lookups int) {
	t.Helper()
	if got := k.Ledger.CallCount(storetest.Get) + k.Ledger.WriteCount(); got != ledgerCalls {
		t.Errorf("%d calls of the ledger, want %d", got, ledgerCalls)
	}
	k.AssertLookups(t, lookups)
}

// decision "callbacks": a forged request costs no database call, a foreign one a read. Both get 404.
func TestForgedAndForeignCallbacks(t *testing.T) {
	withToken := func(e *ledger.Entry) { e.Outbox.NotifToken = "its-own" }
	deliverytest.CheckForged(t, func(t testing.TB) *deliverytest.DeliveryFixture {
		k := newFixture(t, "successful")
		k.StorePendingPayment(order, withToken)
		return k
	}, deliverytest.ForgedCallback{
		NewEvent: newEventFor, ID: order, IDParameter: "orderId",
		Path: callback.PaymentPath, OtherPath: callback.ReceiptPath,
	})
	t.Run("another notif_token than the payment's", func(t *testing.T) {
		k := newFixture(t, "successful")
		k.StorePendingPayment(order, withToken)
		k.Send(t, newEvent(t, k).SetBodyPart("notif_token", "another")).AssertError(t, 404, "900906")
		assertCalls(t, k, 1, 0)
	})
	t.Run("the payment's own notif_token, or none", func(t *testing.T) {
		for _, received := range []any{"its-own", "", nil} {
			k := newFixture(t, "successful")
			e := k.StorePendingPayment(order, withToken)
			k.AssertCommitted(t, newEvent(t, k).SetBodyPart("notif_token", received))
			k.AssertEntry(t, e, successful)
		}
	})
}

// A callback of a web payment may come before the response to the payment request is stored, which has the notif_token.
// The notification then has the callback's notif_token, with a confirmed claim and with a waiting one.
func TestNotifTokenBeforeResponse(t *testing.T) {
	for _, lookupStatus := range []string{"successful", "pending"} {
		k := newFixture(t, lookupStatus)
		e := k.StorePendingPayment(order, func(e *ledger.Entry) { e.Request.Channel = "web" })
		k.AssertCommitted(t, newEvent(t, k).SetBodyPart("notif_token", "the-page's"))
		body := string(payment.NotificationBody(k.MustGet(t, e), ledger.Successful))
		if !strings.Contains(body, `"notif_token":"the-page's"`) {
			t.Errorf("getStatus %s: the notification has no notif_token of the callback: %s", lookupStatus, body)
		}
	}
}

// The notification of a final status keeps its body: a contradiction that has a notif_token is kept without it.
func TestNotifTokenAfterFinalStatus(t *testing.T) {
	k := newFixture(t, "cancelled")
	e := k.StoreFinalPayment(order, ledger.Cancelled, func(e *ledger.Entry) { e.Request.Channel = "web" })
	before := string(payment.NotificationBody(e, ledger.Cancelled))
	k.AssertCommitted(t, newEvent(t, k).SetBodyPart("notif_token", "the-page's"))
	after := k.MustGet(t, e)
	if len(after.Conflicts) != 1 {
		t.Errorf("conflicts %+v, want the contradiction", after.Conflicts)
	}
	if body := string(payment.NotificationBody(after, ledger.Cancelled)); body != before {
		t.Errorf("the notification was\n%s\nand is\n%s", before, body)
	}
}

// decision "pay-statuses": a status that is not final changes nothing, and needs no lookup.
func TestStatusIsNotFinal(t *testing.T) {
	k := newFixture(t, "Successful")
	e := k.StorePendingPayment(order)
	sendStatus(t, k, "InProgress")
	assertCalls(t, k, 1, 0)
	k.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Pending, Due: true})
}

// decision "pay-claims".
func TestClaims(t *testing.T) {
	known := func(status, amount, currency string) operator.StatusResponse {
		return deliverytest.LookupResponse(status, operator.StatusReport{Amount: amount, Currency: currency})
	}
	cases := []struct {
		name          string
		claimed       string
		response      operator.StatusResponse
		status        ledger.Status
		waitingStatus ledger.Status
		conflicts     int
	}{
		{"a success is confirmed", "Successful", known("Success", "500.00", "XOF"), ledger.Successful, "", 0},
		{"a failure is confirmed", "Failed", known("Failed", "", ""), ledger.Failed, "", 0},
		{"getStatus: pending", "Successful", known("InProgress", "", ""), ledger.Pending, ledger.Successful, 0},
		{"getStatus: no response", "Failed", deliverytest.NoResponse(), ledger.Pending, ledger.Failed, 0},
		{"getStatus: no such order", "Successful", deliverytest.NoSuchOrder(), ledger.Pending, ledger.Successful, 0},
		{"getStatus: unknown status", "Successful", known("Exploded", "", ""), ledger.Pending, ledger.Successful, 0},
		{"getStatus: failure of a claimed success", "Successful", known("Failed", "", ""), ledger.Failed, "", 1},
		{"getStatus: success of a claimed failure", "Failed", known("Successful", "", ""), ledger.Successful, "", 1},
		{"getStatus: another amount", "Successful", known("Successful", "5", ""), ledger.Pending, "", 1},
		{"getStatus: another currency", "Successful", known("Successful", "", "XAF"), ledger.Pending, "", 1},
		{"getStatus: an invalid amount", "Successful", known("Successful", "much", ""), ledger.Pending, "", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t, "")
			k.Operator.SetLookupResult(c.response)
			e := k.StorePendingPayment(order)
			sendStatus(t, k, c.claimed)
			want := summary{State: ledger.Done, Status: c.status, Claim: c.waitingStatus, Conflicts: c.conflicts}
			want.Due = true
			if c.status.Final() {
				want.Outbox = 1
			}
			if c.status == ledger.Successful {
				want.UserSMS = ledger.UserSMSDue
			}
			after := k.AssertEntry(t, e, want)
			wait := after.DueAt.Sub(k.Clock.Now())
			if c.waitingStatus != "" && wait != deliverytest.ClaimRecheckInterval {
				t.Errorf("the claim is due in %s, want %s", wait, deliverytest.ClaimRecheckInterval)
			}
			if counted, _ := k.LastLine(t)["StatusConflicts"].(float64); int(counted) != c.conflicts {
				t.Errorf("%v conflicts counted, want %d", counted, c.conflicts)
			}
		})
	}
}

// decision "pay-claims": a claim that no lookup can confirm waits for a person.
func TestOperatorWithoutLookup(t *testing.T) {
	o := &deliverytest.Operator{}
	k := serveCallbacks(deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o}))
	e := k.StorePendingPayment(order)
	k.AssertCommitted(t, newEvent(t, k))
	k.AssertEntry(t, e, summary{
		State: ledger.Done, Status: ledger.Pending, Claim: ledger.Successful, Due: true,
	})
}

// decision "pay-claims": a callback that repeats a stored claim is 200 without a lookup while the claim's own lookup is
// due later. Another claim is looked up, and so is a repeat once the sweep is late.
func TestRepeatedClaim(t *testing.T) {
	const repeats = 20
	cases := []struct {
		name     string
		after    time.Duration // from the first callback to its repeats
		part     string        // what differs in them; "" for nothing
		value    any
		lookups  int
		conflict bool
	}{
		{"the same claim", 0, "", nil, 1, false},
		{"just before its lookup", deliverytest.ClaimRecheckInterval - time.Second, "", nil, 1, false},
		{"when its lookup is due", deliverytest.ClaimRecheckInterval, "", nil, 1 + repeats, false},
		{"another status", 0, "status", "failed", 1 + repeats, true},
		{"another reference", 0, "Transaction-id", "op-8", 1 + repeats, false},
		{"another payer", 0, "user_msisdn", "0709998878", 1 + repeats, false},
		{"another amount", 0, "amount", "501", 1, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t, "pending")
			e := k.StorePendingPayment(order)
			k.AssertCommitted(t, newEvent(t, k))
			first := k.MustGet(t, e)
			k.Clock.Advance(c.after)
			for range repeats {
				event := newEvent(t, k)
				if c.part != "" {
					event.SetBodyPart(c.part, c.value)
				}
				k.AssertCommitted(t, event)
			}
			k.AssertLookups(t, c.lookups)
			after := k.MustGet(t, e)
			if after.Claim != first.Claim || (len(after.Conflicts) > 0) != c.conflict {
				t.Errorf("claim %+v, %d conflicts; want %+v, conflict %v", after.Claim, len(after.Conflicts),
					first.Claim, c.conflict)
			}
			if !c.conflict && after.Version != first.Version {
				t.Errorf("the repeats wrote version %d after %d", after.Version, first.Version)
			}
		})
	}
}

func TestAmountAndCurrency(t *testing.T) {
	cases := []struct {
		name, part string
		value      any
	}{
		{"another amount", "amount", "501"},
		{"an invalid amount", "amount", "five hundred"},
		{"a part of a unit", "amount", "500.5"},
		{"another currency", "currency", "XAF"},
		{"an invalid currency", "currency", "FCFA"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t, "Successful")
			e := k.StorePendingPayment(order)
			for range 3 {
				k.AssertCommitted(t, newEvent(t, k).SetBodyPart(c.part, c.value))
			}
			after := k.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Pending, Conflicts: 1, Due: true})
			if reason := after.Conflicts[0].Reason; reason != c.part {
				t.Errorf("the conflict's reason is %q, want %q", reason, c.part)
			}
			log := k.LogLines.String()
			if strings.Count(log, `"StatusConflicts":`) != 1 || !strings.Contains(log, `"StatusConflicts":1`) {
				t.Errorf("the conflict is not counted once:\n%s", log)
			}
		})
	}
}

// A final status never changes. A contradiction is a conflict, counted once (decision "pay-statuses").
func TestCallbackAfterFinalStatus(t *testing.T) {
	k := newFixture(t, "Successful")
	e := k.StorePendingPayment(order)
	sendStatus(t, k, "Successful")
	version := k.AssertEntry(t, e, successful).Version
	for range 2 {
		sendStatus(t, k, "Successful")
	}
	if after := k.MustGet(t, e); after.Version != version {
		t.Errorf("repeated callbacks wrote version %d after %d", after.Version, version)
	}
	for range 2 {
		sendStatus(t, k, "Failed")
	}
	contradicted := successful
	contradicted.Conflicts = 1
	if after := k.AssertEntry(t, e, contradicted); after.Version != version+1 {
		t.Errorf("two contradictions wrote version %d after %d, want one write", after.Version, version)
	}
	k.AssertLookups(t, 1)
}

func TestRepeatedInParallel(t *testing.T) {
	k := newFixture(t, "Successful")
	e := k.StorePendingPayment(order)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { k.AssertCommitted(t, newEvent(t, k)) })
	}
	group.Wait()
	if after := k.AssertEntry(t, e, successful); after.Version != e.Version+1 {
		t.Errorf("version %d after %d, want one write", after.Version, e.Version)
	}
}

// decision "order-timeline": a callback that changes the payment is kept with its lookup, one that does not is not.
func TestTimelineOfCallbacks(t *testing.T) {
	for name, c := range map[string]struct {
		lookup    string // the operator's getStatus
		callbacks []string
		want      timeline.Log
	}{
		"confirmed":               {"successful", []string{"successful", "successful"}, "cs ls"},
		"not confirmed":           {"InProgress", []string{"successful"}, "c60000s l60000p"},
		"another status":          {"successful", []string{"failed"}, "cf ls"},
		"contradicts the final":   {"successful", []string{"successful", "failed"}, "cs ls cf"},
		"the driver cannot read":  {"InProgress", []string{"no status"}, "c60000u"},
		"nothing to change by it": {"InProgress", []string{"pending"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := newFixture(t, c.lookup)
			e := k.StorePendingPayment(order, func(e *ledger.Entry) { e.Poll.At = e.CreatedAt.Add(time.Hour) })
			k.Clock.Advance(time.Minute)
			for _, status := range c.callbacks {
				sendStatus(t, k, status)
			}
			if got := k.MustGet(t, e).Timeline; got != c.want {
				t.Errorf("the timeline %q, want %q", got, c.want)
			}
		})
	}
}
