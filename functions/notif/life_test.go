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

func TestBeforeOurOwnAnswer(t *testing.T) {
	ours := ledger.Settlement{State: ledger.Done, Status: ledger.Pending, AnswerStatus: 201, AnswerBody: []byte(`{"a":1}`), OperatorReference: "op-own"}
	t.Run("confirmed: our Settle then only adds the answer", func(t *testing.T) {
		k := kit(t)
		k.Operator.Says("Successful")
		held := k.Store(k.Reserved(order))
		committed(t, k, event(t, k))
		if e := k.Get(t, held); e.Status != ledger.Successful || e.State != ledger.Reserved || len(e.Outbox) != 1 {
			t.Fatalf("%+v", e)
		}
		settled, err := k.Book.Settle(context.Background(), held, ours)
		if err != nil || settled.State != ledger.Done || settled.Status != ledger.Successful || settled.AnswerStatus != 201 || len(settled.Outbox) != 1 {
			t.Errorf("%v, %+v", err, settled)
		}
	})
	t.Run("claimed: it waits through our Settle", func(t *testing.T) {
		k := kit(t)
		k.Operator.Tells(deliverytest.NoSuchOrder())
		held := k.Store(k.Reserved(order))
		committed(t, k, event(t, k))
		settled, err := k.Book.Settle(context.Background(), held, ours)
		if err != nil || settled.Status != ledger.Pending || settled.Claim.Status != ledger.Successful || !settled.Due.Equal(k.Clock.Now().Add(deliverytest.Recheck)) {
			t.Errorf("%v, %+v", err, settled)
		}
	})
}

func TestWhateverBecameOfOurCall(t *testing.T) {
	cases := []struct {
		name   string
		settle ledger.Settlement
		says   string
		status ledger.Status
		state  ledger.State
		told   int
	}{
		{"unknown (web, 504), then a success", ledger.Settlement{State: ledger.Unknown}, "Successful", ledger.Successful, ledger.Done, 1},
		{"unknown, then a failure", ledger.Settlement{State: ledger.Unknown}, "Failed", ledger.Failed, ledger.Done, 1},
		{"released, then a late success", ledger.Settlement{State: ledger.Released}, "Successful", ledger.Successful, ledger.Done, 1},
		{"released, then a late failure", ledger.Settlement{State: ledger.Released}, "Failed", ledger.Pending, ledger.Released, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := kit(t)
			k.Operator.Says(c.says)
			e := k.Reserved(order)
			e.Channel = "web"
			e.Settle("owner", c.settle, k.Clock.Now())
			k.Store(e)
			committed(t, k, event(t, k).Set("status", c.says))
			if after := k.Get(t, e); after.Status != c.status || after.State != c.state || len(after.Outbox) != c.told {
				t.Errorf("%+v", after)
			}
		})
	}
}

// decision "callbacks": 503 where it could not be committed, so that the operator comes again.
func TestNotCommitted(t *testing.T) {
	for _, operation := range []ledgermem.Operation{ledgermem.Get, ledgermem.Replace} {
		t.Run(string(operation), func(t *testing.T) {
			k := kit(t)
			k.Operator.Says("Successful")
			e := k.Payment(order)
			k.Lost(operation)
			answer := k.Do(t, event(t, k))
			answer.Fails(t, 503, "SVC0001", "PDK_SMSW_0013")
			if answer.Header["Retry-After"] == "" {
				t.Error("no Retry-After")
			}
			committed(t, k, event(t, k))
			if after := k.Get(t, e); after.Status != ledger.Successful || len(after.Outbox) != 1 {
				t.Errorf("%+v", after)
			}
		})
	}
}

// What the operator told along with the status goes into the entry.
func TestWhatIsTold(t *testing.T) {
	k := kit(t)
	k.Operator.Tells(operator.StatusAnswer{Known: true, Status: "Successful", MSISDN: "0701020304", OperatorReference: "op-9"})
	e := k.Payment(order, func(e *ledger.Entry) { e.MSISDN, e.OperatorReference, e.Channel = "", "", "web" })
	committed(t, k, event(t, k))
	after := k.Get(t, e)
	if after.PurchaserMSISDN() != "0701020304" || after.OperatorReference != "op-9" || after.UserSMS != ledger.UserSMSDue {
		t.Errorf("%+v", after)
	}
	call := k.Operator.Lookups()[0]
	if call.Key != order || call.Account != "a1" || call.MCO != "OCI" || call.Country != "CI" || call.Channel != "web" || call.Lang != "fr" || call.Operator != "sandbox" {
		t.Errorf("asked %+v", call)
	}
	if due := after.UserSMSAt.Sub(k.Clock.Now()); due != ledger.FastLease || !after.Due.Equal(k.Clock.Now().Add(time.Minute)) {
		t.Errorf("the SMS is due in %s, the entry at %s", due, after.Due)
	}
}
