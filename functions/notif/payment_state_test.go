package notif_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func TestCallbackForEveryState(t *testing.T) {
	failed := summary{State: ledger.Done, Status: ledger.Failed, Outbox: 1, Due: true}
	reserved := successful
	reserved.State = ledger.Reserved
	cases := []struct {
		name   string
		state  ledger.State
		status string
		want   summary
	}{
		{"reserved, then a success", ledger.Reserved, "Successful", reserved},
		{"unknown (web, 504), then a success", ledger.Unknown, "Successful", successful},
		{"unknown, then a failure", ledger.Unknown, "Failed", failed},
		{"released, then a late success", ledger.Released, "Successful", successful},
		{"released, then a late failure", ledger.Released, "Failed",
			summary{State: ledger.Released, Status: ledger.Pending}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t, c.status)
			e := k.NewReservedPayment(order)
			e.Request.Channel = "web"
			if c.state != ledger.Reserved {
				e.ApplyOutcome("owner", ledger.CallOutcome{State: c.state}, k.Clock.Now())
			}
			k.StoreEntry(e)
			sendStatus(t, k, c.status)
			k.AssertEntry(t, e, c.want)
		})
	}
}

// decision "callbacks": 503 if the callback could not be stored, so that the operator sends it again.
func TestStoreFailure(t *testing.T) {
	for _, operation := range []storetest.Operation{storetest.Get, storetest.Replace} {
		t.Run(string(operation), func(t *testing.T) {
			k := newFixture(t, "Successful")
			e := k.StorePendingPayment(order)
			k.Ledger.FailNext(operation, storetest.FailedBeforeApply)
			response := k.Send(t, newEvent(t, k))
			response.AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
			if response.Header["Retry-After"] == "" {
				t.Error("the response has no Retry-After")
			}
			k.AssertCommitted(t, newEvent(t, k))
			k.AssertEntry(t, e, successful)
		})
	}
}

// The facts that the operator reports with a status are stored in the entry.
func TestNotificationContents(t *testing.T) {
	k := newFixture(t, "")
	report := operator.StatusReport{MSISDN: "0701020304", OperatorReference: "op-9"}
	k.Operator.SetLookupResult(deliverytest.LookupResponse("Successful", report))
	e := k.StorePendingPayment(order, func(e *ledger.Entry) {
		e.Request.MSISDN, e.OperatorReference, e.Request.Channel = "", "", "web"
	})
	k.AssertCommitted(t, newEvent(t, k))
	after := k.AssertEntry(t, e, successful)
	reported := []string{after.PayerMSISDN(), after.OperatorReference}
	if diff := cmp.Diff([]string{"0701020304", "op-9"}, reported); diff != "" {
		t.Errorf("MSISDN and operator reference (-want +got):\n%s", diff)
	}
	want := operator.StatusCall{
		Call: operator.Call{
			Platform: "sandbox", Operator: "sandbox", AccountID: "a1", UpstreamKey: order, OrderID: order,
			MCO: "OCI", Country: "CI",
		},
		Channel: "web", Lang: "fr", Amount: "500", Currency: "XOF",
	}
	if diff := cmp.Diff(want, k.Operator.Lookups()[0].StatusCall); diff != "" {
		t.Errorf("getStatus request (-want +got):\n%s", diff)
	}
	if wait := after.UserSMS.At.Sub(k.Clock.Now()); wait != ledger.FastLease {
		t.Errorf("the payer's SMS is due in %s, want %s", wait, ledger.FastLease)
	}
	if wait := after.DueAt.Sub(k.Clock.Now()); wait != time.Minute {
		t.Errorf("the entry is due in %s, want 1m", wait)
	}
}

// decision "pay-failure-reason": the reason is that of the report that ends the payment.
func TestFailureReason(t *testing.T) {
	lookup := func(description string) operator.StatusResponse {
		report := operator.StatusReport{Reason: operator.ParseFailureReason(description)}
		return deliverytest.LookupResponse("failed", report)
	}
	send := func(t *testing.T, k *deliverytest.DeliveryFixture, description any) *ledger.Entry {
		e := k.StorePendingPayment(order)
		callback := newEvent(t, k).SetBodyPart("status", "failed").SetBodyPart("statusDescription", description)
		k.AssertCommitted(t, callback)
		return k.MustGet(t, e)
	}
	for _, c := range []struct {
		name, inLookup string
		inCallback     any
		want           ledger.FailureReason
	}{
		{"of the lookup", "Low balance", "refused by user", ledger.NotEnoughFunds},
		{"not of the callback", "", "refused by user", ""},
		{"another type in the callback", "Low balance", map[string]any{}, ledger.NotEnoughFunds},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t, "")
			k.Operator.SetLookupResult(lookup(c.inLookup))
			if got := send(t, k, c.inCallback).FailureReason; got != c.want {
				t.Errorf("the failure reason is %q, want %q", got, c.want)
			}
		})
	}
}
