package notif_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
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

// decision "lookup-rate": a callback of an account at its rate is stored as a claim, 200, for the next sweep. A lookup
// costs one write of the table of limits, and none where the platform's row has no rate.
func TestCallbackAtLookupRate(t *testing.T) {
	k := newFixture(t, "successful")
	k.Confirmer.LookupRates = k.Pipeline.RateLimiter
	mtn := func(e *ledger.Entry) { e.Route.Account = "mtn-momo/ci" }
	e := k.StorePendingPayment(order, mtn)
	row := operator.CapabilitiesOf(e)
	if _, _, err := k.Confirmer.TakeLookups(t.Context(), operator.PinOf(e), row.LookupBurst()); err != nil {
		t.Fatal(err)
	}
	sendStatus(t, k, "successful")
	k.AssertLookups(t, 0)
	k.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Pending, Claim: ledger.Successful, Due: true})
	if wait := k.MustGet(t, e).DueAt.Sub(k.Clock.Now()); wait != deliverytest.ClaimRecheckInterval {
		t.Errorf("the claim is due in %s", wait)
	}
	k.AssertCounted(t, "RateLimitedLookups")
	k.Clock.Advance(time.Minute)
	before := k.LimitStore.CallCount(storetest.UpdateRate)
	sendStatus(t, k, "successful")
	k.AssertLookups(t, 1)
	if writes := k.LimitStore.CallCount(storetest.UpdateRate) - before; writes != 1 {
		t.Errorf("%d writes for a callback's lookup, want 1", writes)
	}
	k.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Successful, Outbox: 1, Due: true})
	t.Run("a table that does not respond limits nothing", func(t *testing.T) {
		k := newFixture(t, "successful")
		k.Confirmer.LookupRates = k.Pipeline.RateLimiter
		e := k.StorePendingPayment(order, mtn)
		k.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
		sendStatus(t, k, "successful")
		k.AssertCounted(t, "LimitStoreFailures")
		k.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Successful, Outbox: 1, Due: true})
	})
	t.Run("a platform without a rate", func(t *testing.T) {
		k := newFixture(t, "successful")
		k.Confirmer.LookupRates = k.Pipeline.RateLimiter
		k.StorePendingPayment(order)
		sendStatus(t, k, "successful")
		if writes := k.LimitStore.CallCount(storetest.UpdateRate); writes != 0 {
			t.Errorf("%d writes, want none", writes)
		}
	})
}

// decision "callback-patience": the time of the request before the lookup counts. Once it is used up, the claim is
// stored, 200, and the next sweep confirms it.
func TestCallbackPatience(t *testing.T) {
	for elapsed, lookups := range map[time.Duration]int{900 * time.Millisecond: 1, time.Second: 0} {
		k := newFixture(t, "successful")
		e := k.StorePendingPayment(order, func(e *ledger.Entry) { e.Route.Account = "mtn-momo/ci" })
		k.Ledger.InjectFaults(func(c storetest.Call) storetest.Fault {
			if c.Operation == storetest.Get {
				k.Clock.Advance(elapsed)
			}
			return storetest.NoFault
		})
		sendStatus(t, k, "successful")
		k.Ledger.InjectFaults(nil)
		k.AssertLookups(t, lookups)
		if after := k.MustGet(t, e); (after.Status == ledger.Successful) != (lookups > 0) ||
			lookups == 0 && after.Claim.Status != ledger.Successful {
			t.Errorf("after %s: %s, claim %q", elapsed, after.Status, after.Claim.Status)
		}
	}
}
