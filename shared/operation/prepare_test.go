package operation_test

import (
	"context"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
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
			if again, _, err := reservePayment(w, "f", operationtest.Choice("mtn")); err != nil || again == nil {
				t.Fatal("not taken over", err)
			}
			return operator.Result{Outcome: operator.Succeeded}
		}, storetest.NoFault, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			reservation, _, err := reservePayment(w, "f", operationtest.Choice("mtn"))
			if err != nil {
				t.Fatal(err)
			}
			driver := &preparingDriver{Driver: w.Driver}
			if c.prepare != nil {
				driver.prepare = func() operator.Result { return c.prepare(w, reservation) }
			}
			w.Ledger.FailNext(storetest.Replace, c.fault)
			call := operator.PayCall{Call: operator.NewCall(reservation)}
			after, result := w.Pipeline.Prepare(t.Context(), driver, reservation, &call)
			if maySend := result.Fault == nil; maySend != c.sent || maySend != (call.DriverData == "material") {
				t.Errorf("result %+v, material %q; want sent %v", result, call.DriverData, c.sent)
			}
			if !c.sent && result.Outcome != operator.NotApplied {
				t.Errorf("outcome %v, want not applied", result.Outcome)
			}
			stored := w.Ledger.All()[0].Material != ""
			if stored != c.stored || c.sent && after.Material != "material" {
				t.Errorf("stored %v, want %v; the reservation has %q", stored, c.stored, after.Material)
			}
			if driver.prepared != 1 || len(w.Driver.Calls()) != 0 {
				t.Errorf("%d preparations, %d calls", driver.prepared, len(w.Driver.Calls()))
			}
		})
	}
}

// An entry with material is never prepared again, and most drivers have nothing to prepare.
func TestNothingToPrepare(t *testing.T) {
	w := operationtest.New(t)
	reservation, _, err := reservePayment(w, "f", operationtest.Choice("mtn"))
	if err != nil {
		t.Fatal(err)
	}
	call := operator.PayCall{Call: operator.NewCall(reservation)}
	after, result := w.Pipeline.Prepare(t.Context(), w.Driver, reservation, &call)
	if result.Fault != nil || after != reservation {
		t.Errorf("a driver that cannot prepare: %+v", result)
	}
	reservation.Material = "earlier"
	call.Call = operator.NewCall(reservation)
	driver := &preparingDriver{Driver: w.Driver}
	_, result = w.Pipeline.Prepare(t.Context(), driver, reservation, &call)
	if result.Fault != nil || driver.prepared != 0 || call.DriverData != "earlier" {
		t.Errorf("%+v after %d preparations, material %q; want the earlier one", result, driver.prepared, call.DriverData)
	}
	if w.Ledger.CallCount(storetest.Replace) != 0 {
		t.Error("something was written")
	}
}
