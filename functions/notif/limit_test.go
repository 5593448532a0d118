package notif_test

import (
	"context"
	"testing"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// storeCountedPayment stores a payment whose amount is reserved in the merchant's daily amount.
func storeCountedPayment(t *testing.T, k *deliverytest.DeliveryFixture, changes ...func(*ledger.Entry)) *ledger.Entry {
	t.Helper()
	counted := func(e *ledger.Entry) { e.Amount.CountsDaily = true }
	e := k.StorePendingPayment(order, append(changes, counted)...)
	if err := k.Pipeline.DailyAmounts.Reserve(context.Background(), operationtest.DemoProfile(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// decision "merchant-limits": the amount of a payment that is final and not successful is refunded, once.
func TestDailyAmountRefunded(t *testing.T) {
	for status, want := range map[string]int64{"successful": 500, "failed": 0, "cancelled": 0, "expired": 0} {
		t.Run(status, func(t *testing.T) {
			k := newFixture(t, status)
			storeCountedPayment(t, k)
			for range 3 {
				sendStatus(t, k, status)
			}
			k.AssertDailySum(t, want)
		})
	}
	t.Run("a callback is committed without a response of the table", func(t *testing.T) {
		k := newFixture(t, "failed")
		storeCountedPayment(t, k)
		k.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
		sendStatus(t, k, "failed")
		k.AssertDailySum(t, 500)
		k.AssertCounted(t, "LimitStoreFailures")
	})
	t.Run("without a limit the table is not called", func(t *testing.T) {
		k := newFixture(t, "failed")
		k.StorePendingPayment(order)
		sendStatus(t, k, "failed")
		if writes := k.LimitStore.CallCount(storetest.Adjust); writes != 0 {
			t.Errorf("%d calls of the table of limits, want none", writes)
		}
	})
}

// The amount of a released payment was refunded. Its late success is stored only after the amount is reserved again; if
// that fails, the operator sends the callback again.
func TestLateSuccessReservesAmountAgain(t *testing.T) {
	k := newFixture(t, "successful")
	e := storeCountedPayment(t, k, func(e *ledger.Entry) {
		e.State, e.Response.Status, e.Response.Body = ledger.Released, 0, nil
	})
	if err := k.Pipeline.DailyAmounts.Refund(context.Background(), e); err != nil {
		t.Fatal(err)
	}
	k.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
	k.Send(t, newEvent(t, k)).AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	// The sweep looks up the claim if the operator does not send it again.
	k.AssertEntry(t, e, summary{State: ledger.Released, Status: ledger.Pending, Claim: ledger.Successful, Due: true})
	k.LimitStore.InjectFaults(nil)
	k.AssertCommitted(t, newEvent(t, k))
	k.AssertEntry(t, e, successful)
	k.AssertDailySum(t, 500)
}
