package confirm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
)

// newRatedFixture returns a fixture whose lookups are within the rates of the platforms' rows.
func newRatedFixture(t *testing.T, o *deliverytest.Operator, driver operator.Driver) *deliverytest.DeliveryFixture {
	k := deliverytest.NewWithDriver(t, o, driver)
	k.Confirmer.LookupRates = k.Pipeline.RateLimiter
	return k
}

// pinned pins a payment to an account: "platform/id".
func pinned(account string) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.Route.Account = account }
}

// decision "lookup-rate": an account has the lookups of its platform's row, each account its own. A table that does
// not respond limits nothing.
func TestTakeLookups(t *testing.T) {
	o := &deliverytest.Operator{}
	k := newRatedFixture(t, o, o)
	row, _ := operator.FindCapabilities("mtn-momo")
	burst := row.LookupBurst()
	for i, c := range []struct {
		account       operator.Pin
		after         time.Duration
		most, granted int
		wait          time.Duration
	}{
		{operator.Pin{Platform: "mtn-momo", Account: "ci"}, 0, 100, burst, 0},
		{operator.Pin{Platform: "mtn-momo", Account: "ci"}, 0, 1, 0, 100 * time.Millisecond},
		{operator.Pin{Platform: "mtn-momo", Account: "cm"}, 0, 2, 2, 0},
		{operator.Pin{Platform: "wave-checkout", Account: "ci"}, 0, 1000, 1000, 0}, // its row has no rate
		{operator.Pin{Platform: "unknown", Account: "ci"}, 0, 3, 3, 0},
		{operator.Pin{Platform: "mtn-momo", Account: "ci"}, 300 * time.Millisecond, 100, 3, 0},
	} {
		k.Clock.Advance(c.after)
		granted, wait, err := k.Confirmer.TakeLookups(t.Context(), c.account, c.most)
		if granted != c.granted || wait != c.wait || err != nil {
			t.Errorf("case %d: %d granted, wait %s, %v; want %d, %s", i+1, granted, wait, err, c.granted, c.wait)
		}
	}
	k.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
	account := operator.Pin{Platform: "mtn-momo", Account: "new"}
	granted, wait, err := k.Confirmer.TakeLookups(t.Context(), account, 40)
	if granted != 40 || wait != 0 || !errors.Is(err, storetest.ErrInjected) {
		t.Errorf("without the table: %d granted, wait %s, %v", granted, wait, err)
	}
}

// decision "callback-patience": the lookup of a callback ends a second before the operator's patience, and is not made
// without the time for it.
func TestLookUpClaimPatience(t *testing.T) {
	for _, c := range []struct {
		account    string
		sinceStart time.Duration
		want       time.Duration // 0: no lookup
	}{
		{"mtn-momo/ci", 0, time.Second},
		{"mtn-momo/ci", 400 * time.Millisecond, 600 * time.Millisecond},
		{"mtn-momo/ci", time.Second, 0},
		{"mtn-momo/ci", time.Minute, 0},
		{"wave-checkout/sn", 0, 4 * time.Second},
		{"wave-checkout/sn", 3 * time.Second, time.Second},
		{"a1", 0, 5 * time.Second}, // no patience is known: LookupTimeout
		{"a1", time.Minute, 5 * time.Second},
	} {
		o := &deliverytest.Operator{}
		driver := &deadlineReader{Operator: o}
		k := newRatedFixture(t, o, driver)
		e := k.StorePendingPayment("DemoShop_1", pinned(c.account))
		line := telemetry.NewLogLine("test", k.Clock.Now())
		result := k.Confirmer.LookUpClaim(context.Background(), line, e, c.sinceStart)
		if !result.Failed() {
			t.Errorf("%s after %s: %+v", c.account, c.sinceStart, result)
		}
		if driver.remaining > c.want || driver.remaining < c.want-400*time.Millisecond {
			t.Errorf("%s after %s: the lookup has %s, want %s", c.account, c.sinceStart, driver.remaining, c.want)
		}
	}
}

// decision "lookup-rate": a callback's lookup is one of its account's. An account at its rate makes none.
func TestLookUpClaimRate(t *testing.T) {
	o := &deliverytest.Operator{}
	k := newRatedFixture(t, o, o)
	e := k.StorePendingPayment("DemoShop_1", pinned("mtn-momo/ci"))
	k.Operator.SetStatus("Successful")
	row := operator.CapabilitiesOf(e)
	for i := range row.LookupBurst() + 2 {
		result := k.Confirmer.LookUpClaim(t.Context(), telemetry.NewLogLine("test", k.Clock.Now()), e, 0)
		if limited := errors.Is(result.Cause, confirm.ErrLookupRate); limited != (i >= row.LookupBurst()) ||
			result.StatusFinal == limited {
			t.Errorf("lookup %d: %+v", i+1, result)
		}
	}
	k.AssertLookups(t, row.LookupBurst())
	o = &deliverytest.Operator{}
	k = newRatedFixture(t, o, deliverytest.MinimalDriver{Driver: o})
	e = k.StorePendingPayment("DemoShop_1", pinned("mtn-momo/ci"))
	result := k.Confirmer.LookUpClaim(t.Context(), telemetry.NewLogLine("test", k.Clock.Now()), e, 0)
	if result.Supported || k.LimitStore.CallCount(storetest.UpdateRate) != 0 {
		t.Errorf("without a lookup: %+v, and a write", result)
	}
}

// A command waits until its account has a lookup, LookupTimeout at most.
func TestAwaitLookup(t *testing.T) {
	o := &deliverytest.Operator{}
	k := newRatedFixture(t, o, o)
	account := operator.Pin{Platform: "mtn-momo", Account: "ci"}
	if _, _, err := k.Confirmer.TakeLookups(t.Context(), account, 100); err != nil {
		t.Fatal(err)
	}
	never := func(context.Context, time.Duration) error { return context.DeadlineExceeded }
	if err := k.Confirmer.AwaitLookup(t.Context(), account, never); !errors.Is(err, confirm.ErrLookupRate) {
		t.Errorf("without a lookup: %v", err)
	}
	var waits []time.Duration
	err := k.Confirmer.AwaitLookup(t.Context(), account, func(ctx context.Context, wait time.Duration) error {
		if deadline, limited := ctx.Deadline(); !limited || time.Until(deadline) > k.Confirmer.LookupTimeout {
			t.Error("the wait is not limited")
		}
		waits = append(waits, wait)
		k.Clock.Advance(wait)
		return nil
	})
	if err != nil || len(waits) != 1 || waits[0] != 100*time.Millisecond {
		t.Errorf("waited %v, %v", waits, err)
	}
}
