package pay

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

// preparingDriver is a driver whose platform makes its own key of a payment.
type preparingDriver struct {
	*operationtest.Driver
	prepare  func() operator.Result
	prepared int
}

func (d *preparingDriver) Prepare(context.Context, operator.PayCall) (string, operator.Result) {
	d.prepared++
	if d.prepare != nil {
		return "material", d.prepare()
	}
	return "material", operator.Result{Outcome: operator.Succeeded}
}

// reserve reserves a payment that is sent to a platform with a key of its own.
func reserve(t testing.TB, w *operationtest.Fixture) *operation.Attempt {
	t.Helper()
	a := w.NewAttempt(&ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: "DemoShop_1"}, Operator: "mtn", Country: "CI", Fingerprint: "f",
		UpstreamKey: "DemoShop_1", AmountMinor: 500, Currency: "XOF",
	})
	if reserved, err := w.Pipeline.Reserve(t.Context(), a, nil); err != nil || !reserved {
		t.Fatalf("reserved %v, error %v; want a reservation", reserved, err)
	}
	return a
}

// decision "prepare": the payment follows only once its material is stored.
func TestPrepare(t *testing.T) {
	unavailable := operator.Result{Outcome: operator.NotApplied, Fault: fault.New(fault.OperatorUnavailable)}
	for _, c := range []struct {
		name    string
		prepare func(*operationtest.Fixture, *ledger.Entry) operator.Result // nil for a success
		fault   storetest.Fault
		sent    bool // whether the payment may follow
		stored  bool
	}{
		{"it is stored", nil, storetest.NoFault, true, true},
		{"the platform does not respond", func(*operationtest.Fixture, *ledger.Entry) operator.Result {
			return unavailable
		}, storetest.NoFault, false, false},
		{"it cannot be stored", nil, storetest.FailedBeforeApply, false, false},
		{"the response to the write is lost", nil, storetest.LostResponse, false, true},
		{"the write was sent twice", nil, storetest.RetriedAfterLostResponse, true, true},
		{"a callback came meanwhile", func(w *operationtest.Fixture, e *ledger.Entry) operator.Result {
			if _, err := w.Pipeline.Book.Change(t.Context(), e.Key, func(e *ledger.Entry) error {
				e.AddClaim(ledger.Claim{Status: ledger.Failed, CheckAt: w.Clock.Now()}, w.Clock.Now())
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return operator.Result{Outcome: operator.Succeeded}
		}, storetest.NoFault, true, true},
		{"the lease ended meanwhile", func(w *operationtest.Fixture, _ *ledger.Entry) operator.Result {
			w.Clock.Advance(time.Minute)
			return operator.Result{Outcome: operator.Succeeded}
		}, storetest.NoFault, false, false},
		{"another attempt took over meanwhile", func(w *operationtest.Fixture, _ *ledger.Entry) operator.Result {
			w.Clock.Advance(time.Minute)
			reserve(t, w) // takes it over
			return operator.Result{Outcome: operator.Succeeded}
		}, storetest.NoFault, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			a := reserve(t, w)
			driver := &preparingDriver{Driver: w.Driver}
			if c.prepare != nil {
				driver.prepare = func() operator.Result { return c.prepare(w, a.Stored) }
			}
			w.Ledger.FailNext(storetest.Replace, c.fault)
			o := &Operation{Pipeline: w.Pipeline}
			result := o.send(t.Context(), a, driver, operator.PayCall{Call: operator.NewCall(a.Stored)}).Result
			calls := w.Driver.Calls()
			if sent := result.Fault == nil; sent != c.sent || sent != (len(calls) == 1) {
				t.Errorf("result %+v, %d calls; want sent %v", result, len(calls), c.sent)
			}
			if c.sent && calls[0].Call.DriverData != "material" {
				t.Errorf("sent with %q", calls[0].Call.DriverData)
			}
			if !c.sent && result.Outcome != operator.NotApplied {
				t.Errorf("outcome %v, want not applied", result.Outcome)
			}
			stored := w.Ledger.All()[0].Material != ""
			if stored != c.stored || c.sent && a.Stored.Material != "material" {
				t.Errorf("stored %v, want %v; the reservation has %q", stored, c.stored, a.Stored.Material)
			}
			if driver.prepared != 1 {
				t.Errorf("%d preparations", driver.prepared)
			}
		})
	}
}

// An entry with material is never prepared again, and most drivers have nothing to prepare.
func TestNothingToPrepare(t *testing.T) {
	w := operationtest.New(t)
	o, a := &Operation{Pipeline: w.Pipeline}, reserve(t, w)
	reservation := a.Stored
	result := o.send(t.Context(), a, w.Driver, operator.PayCall{Call: operator.NewCall(a.Stored)}).Result
	if result.Fault != nil || a.Stored != reservation {
		t.Errorf("a driver that cannot prepare: %+v", result)
	}
	a.Stored.Material = "earlier"
	driver := &preparingDriver{Driver: w.Driver}
	result = o.send(t.Context(), a, driver, operator.PayCall{Call: operator.NewCall(a.Stored)}).Result
	material := w.Driver.Calls()[1].Call.DriverData
	if result.Fault != nil || driver.prepared != 0 || material != "earlier" {
		t.Errorf("%+v after %d preparations, material %q; want the earlier one", result, driver.prepared, material)
	}
	if w.Ledger.CallCount(storetest.Replace) != 0 {
		t.Error("something was written")
	}
}
