package notif_test

import (
	"context"
	"testing"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/internal/limitmem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/ledger"
)

// storeCountedPayment stores a payment whose amount the merchant's day has counted.
func storeCountedPayment(t *testing.T, k *deliverytest.DeliveryFixture, changes ...func(*ledger.Entry)) {
	t.Helper()
	e := k.StorePendingPayment(order, append([]func(*ledger.Entry){func(e *ledger.Entry) { e.CountsDailyAmount = true }}, changes...)...)
	if err := k.Pipeline.DailyAmounts.Reserve(context.Background(), operationtest.DemoProfile(), e); err != nil {
		t.Fatal(err)
	}
}

// decision "merchant-limits": a payment that ends otherwise than successfully is given back, once.
func TestDailyAmountRefunded(t *testing.T) {
	for statusText, want := range map[string]int64{"successful": 500, "failed": 0, "cancelled": 0, "expired": 0} {
		t.Run(statusText, func(t *testing.T) {
			k := newFixture(t)
			storeCountedPayment(t, k)
			k.Operator.SetStatus(statusText)
			for range 3 {
				assertCommitted(t, k, newEvent(t, k).SetBodyPart("status", statusText))
			}
			if got := k.LimitStore.Sum("demo0001", "XOF"); got != want {
				t.Errorf("counted %d, want %d", got, want)
			}
		})
	}
	t.Run("a table that does not answer costs no callback", func(t *testing.T) {
		k := newFixture(t)
		storeCountedPayment(t, k)
		k.Operator.SetStatus("failed")
		k.LimitStore.SetFaults(func() limitmem.Fault { return limitmem.Error })
		assertCommitted(t, k, newEvent(t, k).SetBodyPart("status", "failed"))
		if k.LimitStore.Sum("demo0001", "XOF") != 500 || k.LastLine(t)["LimitStoreFailures"] != 1.0 {
			t.Errorf("line %v", k.LastLine(t))
		}
	})
	t.Run("without a limit nothing is asked", func(t *testing.T) {
		k := newFixture(t)
		k.StorePendingPayment(order)
		k.Operator.SetStatus("failed")
		assertCommitted(t, k, newEvent(t, k).SetBodyPart("status", "failed"))
		if k.LimitStore.AmountWrites() != 0 {
			t.Error("the table of limits was asked")
		}
	})
}

// The late success of a released payment, which was given back, is counted again before it is stored; where it cannot be,
// the operator comes again.
func TestLateSuccessReservesAmountAgain(t *testing.T) {
	k := newFixture(t)
	storeCountedPayment(t, k, func(e *ledger.Entry) { e.State, e.ResponseStatus, e.ResponseBody = ledger.Released, 0, nil })
	if err := k.Pipeline.DailyAmounts.Refund(context.Background(), k.Ledger.All()[0]); err != nil {
		t.Fatal(err)
	}
	k.Operator.SetStatus("successful")
	k.LimitStore.SetFaults(func() limitmem.Fault { return limitmem.Error })
	k.Send(t, newEvent(t, k)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	if stored := k.Ledger.All()[0]; stored.Status == ledger.Successful {
		t.Error("stored, and not counted")
	} else if stored.Claim.Status != ledger.Successful || stored.DueAt.IsZero() {
		t.Error("lost, should the operator not come again")
	}
	k.LimitStore.SetFaults(nil)
	assertCommitted(t, k, newEvent(t, k))
	if stored := k.Ledger.All()[0]; stored.Status != ledger.Successful || k.LimitStore.Sum("demo0001", "XOF") != 500 {
		t.Errorf("%s, counted %d", stored.Status, k.LimitStore.Sum("demo0001", "XOF"))
	}
}
