package notif_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/ledgermem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func TestCallbackBeforePaymentResponse(t *testing.T) {
	ours := ledger.CallOutcome{State: ledger.Done, Status: ledger.Pending, ResponseStatus: 201, ResponseBody: []byte(`{"a":1}`), OperatorReference: "op-own"}
	t.Run("confirmed: our Settle then only adds the answer", func(t *testing.T) {
		k := newFixture(t)
		k.Operator.SetStatus("Successful")
		reservation := k.StoreEntry(k.NewReservedPayment(order))
		assertCommitted(t, k, newEvent(t, k))
		if e := k.MustGet(t, reservation); e.Status != ledger.Successful || e.State != ledger.Reserved || len(e.Outbox) != 1 {
			t.Fatalf("%+v", e)
		}
		updated, err := k.Book.StoreOutcome(context.Background(), reservation, ours)
		if err != nil || updated.State != ledger.Done || updated.Status != ledger.Successful || updated.ResponseStatus != 201 || len(updated.Outbox) != 1 {
			t.Errorf("%v, %+v", err, updated)
		}
	})
	t.Run("claimed: it waits through our Settle", func(t *testing.T) {
		k := newFixture(t)
		k.Operator.SetLookupResult(deliverytest.NoSuchOrder())
		reservation := k.StoreEntry(k.NewReservedPayment(order))
		assertCommitted(t, k, newEvent(t, k))
		updated, err := k.Book.StoreOutcome(context.Background(), reservation, ours)
		if err != nil || updated.Status != ledger.Pending || updated.Claim.Status != ledger.Successful || !updated.DueAt.Equal(k.Clock.Now().Add(deliverytest.ClaimRecheckDelay)) {
			t.Errorf("%v, %+v", err, updated)
		}
	})
}

func TestCallbackForEveryState(t *testing.T) {
	cases := []struct {
		name   string
		settle ledger.CallOutcome
		says   string
		status ledger.Status
		state  ledger.State
		told   int
	}{
		{"unknown (web, 504), then a success", ledger.CallOutcome{State: ledger.Unknown}, "Successful", ledger.Successful, ledger.Done, 1},
		{"unknown, then a failure", ledger.CallOutcome{State: ledger.Unknown}, "Failed", ledger.Failed, ledger.Done, 1},
		{"released, then a late success", ledger.CallOutcome{State: ledger.Released}, "Successful", ledger.Successful, ledger.Done, 1},
		{"released, then a late failure", ledger.CallOutcome{State: ledger.Released}, "Failed", ledger.Pending, ledger.Released, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newFixture(t)
			k.Operator.SetStatus(c.says)
			e := k.NewReservedPayment(order)
			e.Channel = "web"
			e.ApplyOutcome("owner", c.settle, k.Clock.Now())
			k.StoreEntry(e)
			assertCommitted(t, k, newEvent(t, k).SetBodyPart("status", c.says))
			if after := k.MustGet(t, e); after.Status != c.status || after.State != c.state || len(after.Outbox) != c.told {
				t.Errorf("%+v", after)
			}
		})
	}
}

// decision "callbacks": 503 where it could not be committed, so that the operator comes again.
func TestStoreFailure(t *testing.T) {
	for _, operation := range []ledgermem.Operation{ledgermem.Get, ledgermem.Replace} {
		t.Run(string(operation), func(t *testing.T) {
			k := newFixture(t)
			k.Operator.SetStatus("Successful")
			e := k.StorePendingPayment(order)
			k.FailNextLedgerCall(operation)
			lookup := k.Send(t, newEvent(t, k))
			lookup.AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
			if lookup.Header["Retry-After"] == "" {
				t.Error("no Retry-After")
			}
			assertCommitted(t, k, newEvent(t, k))
			if after := k.MustGet(t, e); after.Status != ledger.Successful || len(after.Outbox) != 1 {
				t.Errorf("%+v", after)
			}
		})
	}
}

// What the operator told along with the status goes into the entry.
func TestNotificationContents(t *testing.T) {
	k := newFixture(t)
	k.Operator.SetLookupResult(operator.StatusResponse{StatusKnown: true, OperatorStatus: "Successful", MSISDN: "0701020304", OperatorReference: "op-9"})
	e := k.StorePendingPayment(order, func(e *ledger.Entry) { e.MSISDN, e.OperatorReference, e.Channel = "", "", "web" })
	assertCommitted(t, k, newEvent(t, k))
	after := k.MustGet(t, e)
	if after.PurchaserMSISDN() != "0701020304" || after.OperatorReference != "op-9" || after.UserSMS != ledger.UserSMSDue {
		t.Errorf("%+v", after)
	}
	call := k.Operator.Lookups()[0]
	if call.IdempotencyKey != order || call.AccountID != "a1" || call.MCO != "OCI" || call.Country != "CI" || call.Channel != "web" || call.Lang != "fr" || call.Operator != "sandbox" {
		t.Errorf("asked %+v", call)
	}
	if due := after.UserSMSAt.Sub(k.Clock.Now()); due != ledger.FastLease || !after.DueAt.Equal(k.Clock.Now().Add(time.Minute)) {
		t.Errorf("the SMS is due in %s, the entry at %s", due, after.DueAt)
	}
}
