package operation_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
)

// lookupDriver is a driver that keeps the last lookup of an account.
type lookupDriver struct {
	*operationtest.Driver
	found operator.Pin
}

// FindAccount implements operator.Driver.
func (d *lookupDriver) FindAccount(ctx context.Context, platform, id string) (string, error) {
	d.found = operator.Pin{Platform: platform, Account: id}
	return d.Driver.FindAccount(ctx, platform, id)
}

// decision "routes": the driver finds the account that the route names, or its own. An account that cannot be used, or
// a request that its platform does not take, refuses before anything is stored.
func TestPin(t *testing.T) {
	refused := fault.NotAllowed("amount", []string{"100"})
	rejected := fault.New(fault.IntegrationRejected)
	accepts := func(context.Context, operator.Driver, operator.Call) *fault.Fault { return nil }
	refuses := func(context.Context, operator.Driver, operator.Call) *fault.Fault { return refused }
	routed, own := routedChoice("mtn-momo/ci"), operationtest.Choice("mtn")
	momo, plain := operator.Pin{Platform: "mtn-momo", Account: "ci"}, operator.Pin{Platform: "mtn"}
	for _, c := range []struct {
		name       string
		choice     operation.Choice
		check      operation.CheckFunc
		accountErr error
		found      operator.Pin
		account    string
		kind       fault.Kind // 0 for no fault
	}{
		{"a route", routed, accepts, nil, momo, "mtn-momo/ci", 0},
		{"a route without a check", routed, nil, nil, momo, "mtn-momo/ci", 0},
		{"no route", own, accepts, nil, plain, "a1", 0},
		{"not taken", own, refuses, nil, plain, "", fault.ValueNotAllowed},
		{"no account", own, accepts, rejected, plain, "", fault.IntegrationRejected},
	} {
		w := operationtest.New(t)
		driver := &lookupDriver{Driver: w.Driver}
		driver.AccountErr = c.accountErr
		w.UseRoutes(driver, &operationtest.Routes{})
		c.choice.Check = c.check
		reservation, _, err := reservePayment(w, "f", c.choice)
		account := ""
		if reservation != nil {
			account = reservation.Account
		}
		if driver.found != c.found || account != c.account {
			t.Errorf("%s: looked %v up and pinned to %q, want %v and %q",
				c.name, driver.found, account, c.found, c.account)
		}
		if c.kind == 0 && err != nil || c.kind != 0 && kindOf(err) != c.kind {
			t.Errorf("%s: %v, want kind %v", c.name, err, c.kind)
		}
		if c.kind != 0 {
			w.AssertNoSideEffects(t)
		}
	}
}

// The messages of an account stay within its platform's rate. A table that does not respond limits nothing.
func TestTakeAccountRate(t *testing.T) {
	const burst = 5 // of orange-sms
	w := operationtest.New(t)
	take := func(account string, isFailure bool) *operator.Result {
		e := &ledger.Entry{Key: ledger.Key{Kind: ledger.SMS, ID: "1"}, Operator: "orange", Account: account}
		req := w.NewRequest()
		refused := w.Pipeline.TakeAccountRate(t.Context(), req, e)
		assertCounted(t, req, "LimitStoreFailures", isFailure)
		return refused
	}
	for number := range burst {
		if refused := take("orange-sms/sn", false); refused != nil {
			t.Errorf("message %d: %v", number, refused)
		}
	}
	refused := take("orange-sms/sn", false)
	if refused == nil || refused.Outcome != operator.NotApplied || refused.Fault.Kind != fault.OperatorUnavailable {
		t.Errorf("one message too many: %v, want it refused", refused)
	}
	if refused := take("orange-sms/ci", false); refused != nil {
		t.Errorf("another account: %v", refused)
	}
	w.Clock.Advance(time.Second / burst)
	if refused := take("orange-sms/sn", false); refused != nil {
		t.Errorf("after a fifth of a second: %v", refused)
	}
	w.LimitStore.FailNext(storetest.UpdateRate, storetest.FailedBeforeApply)
	if refused := take("orange-sms/bf", true); refused != nil {
		t.Errorf("a table that does not respond: %v", refused)
	}
	calls := w.LimitStore.CallCount(storetest.UpdateRate)
	if take("mtn-momo/ci", false) != nil || w.LimitStore.CallCount(storetest.UpdateRate) != calls {
		t.Error("a platform without a rate costs a write")
	}
}
