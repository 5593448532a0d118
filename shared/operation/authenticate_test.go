package operation_test

import (
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
)

func newAuthorizedRequest(w *operationtest.Fixture) *apigw.Request {
	req := w.NewRequest()
	req.Body = []byte("{}")
	req.SetHeader("Authorization", operationtest.DemoToken)
	req.SetHeader("Content-Type", "application/json")
	return req
}

func TestAuthenticateAndReadBody(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*apigw.Request)
		want   fault.Kind
	}{
		"no credentials": {func(r *apigw.Request) { r.SetHeader("Authorization", "") }, fault.MissingCredentials},
		"not JSON":       {func(r *apigw.Request) { r.SetHeader("Content-Type", "") }, fault.UnsupportedMediaType},
		"broken JSON":    {func(r *apigw.Request) { r.Body = []byte("{") }, fault.InvalidPart},
	} {
		w := operationtest.New(t)
		req := newAuthorizedRequest(w)
		c.change(req)
		if a, err := w.Pipeline.AuthenticateAndReadBody(t.Context(), req); a != nil || kindOf(err) != c.want {
			t.Errorf("%s: attempt %v, error %v; want only %s", name, a, err, c.want)
		}
	}
	w := operationtest.New(t)
	a, err := w.Pipeline.AuthenticateAndReadBody(t.Context(), newAuthorizedRequest(w))
	if err != nil || a.Profile.Name != "DemoShop" || a.Body == nil {
		t.Errorf("attempt %v, error %v; want DemoShop's request", a, err)
	}
}

// decision "merchant-limits": a merchant over its rate waits for whole seconds, and a table that does not respond
// limits no merchant.
func TestAuthenticateChecksRate(t *testing.T) {
	w := operationtest.New(t).UpdateDemo(func(p *merchant.Profile) { p.RequestsPerSecond = 1 })
	authenticate := func() *fault.Fault {
		_, err := w.Pipeline.AuthenticateAndReadBody(t.Context(), newAuthorizedRequest(w))
		return fault.FromError(err)
	}
	if f := authenticate(); f != nil {
		t.Errorf("the first request: fault %v, want none", f)
	}
	for range 2 {
		if f := authenticate(); f == nil || f.Kind != fault.RateLimited || f.RetryAfter != 1 {
			t.Errorf("fault %+v, want rate limited for 1 s", f)
		}
		w.Clock.Advance(time.Millisecond)
	}
	w.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
	w.Clock.Advance(time.Minute)
	if f := authenticate(); f != nil {
		t.Errorf("the table does not respond: fault %v, want none", f)
	}
}

// mustReserveAmount returns an attempt of a charge of 500 XOF, of a merchant with a limit, that has a reservation.
func mustReserveAmount(t testing.TB, w *operationtest.Fixture, limit int64) *operation.Attempt {
	t.Helper()
	a := w.NewAttempt(newEntry("f"))
	a.Entry.Amount.Minor, a.Entry.Amount.Currency = 500, "XOF"
	a.Profile.DailyAmounts = map[string]int64{"XOF": limit}
	if reserved, err := w.Pipeline.Reserve(t.Context(), a, nil); err != nil || !reserved {
		t.Fatalf("reserved %v, error %v; want a reservation", reserved, err)
	}
	return a
}

// decision "merchant-limits": nothing is sent that could not be counted.
func TestReserveDailyAmount(t *testing.T) {
	const none = fault.Kind(-1)
	cases := []struct {
		name       string
		limit      int64
		table      storetest.Fault
		failing    storetest.Operation // of the ledger; "" for none
		superseded bool
		want       fault.Kind
		state      ledger.State
	}{
		{"it fits", 500, storetest.NoFault, "", false, none, ledger.Reserved},
		{"over the limit", 499, storetest.NoFault, "", false, fault.DailyLimitExceeded, ledger.Released},
		{"the refusal is not stored", 499, storetest.NoFault, storetest.Replace, false, fault.Internal,
			ledger.Reserved},
		{"another attempt succeeded", 499, storetest.NoFault, "", true, fault.OutcomeUnknown, ledger.Done},
		{"no table", 500, storetest.FailedBeforeApply, "", false, fault.OperatorUnavailable, ledger.Released},
		{"no table and no ledger", 500, storetest.FailedBeforeApply, storetest.Replace, false, fault.OutcomeUnknown,
			ledger.Reserved},
		{"no table, another attempt succeeded", 500, storetest.FailedBeforeApply, "", true, fault.OutcomeUnknown,
			ledger.Done},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			a := mustReserveAmount(t, w, c.limit)
			if c.superseded {
				done := ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}
				_, err := w.Pipeline.Book.StoreOutcome(t.Context(), a.Stored, ledger.RecordSuccess, done)
				if err != nil {
					t.Fatal(err)
				}
			}
			w.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return c.table })
			w.FailEvery(c.failing)
			got := fault.FromError(w.Pipeline.ReserveDailyAmount(t.Context(), a))
			if got == nil && c.want != none || got != nil && got.Kind != c.want {
				t.Errorf("fault %v, want %s", got, c.want)
			}
			w.AssertState(t, ledger.Charge, c.state)
		})
	}
}

// decision "merchant-limits": the release of an attempt was stored, its response was lost, and a retry took the entry
// over on the next day. The first attempt then finds another owner, and takes its amount out of its own day.
func TestAmountOfAnEarlierDayIsRefunded(t *testing.T) {
	w := operationtest.New(t)
	reserve := func() *operation.Attempt {
		a := mustReserveAmount(t, w, 500)
		if err := w.Pipeline.ReserveDailyAmount(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := reserve()
	released := ledger.CallOutcome{State: ledger.Released}
	_, err := w.Pipeline.Book.StoreOutcome(t.Context(), first.Stored, ledger.RecordNotApplied, released)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(14 * time.Hour) // the next day
	reserve()
	w.AssertDailySum(t, 1000)
	notApplied := operationtest.RespondUnavailable(nil)
	err = w.Pipeline.RecordOutcome(t.Context(), first, notApplied, operation.CallOutcomes{})
	if kindOf(err) != fault.OutcomeUnknown {
		t.Errorf("error %v, want unknown: another attempt is at work", err)
	}
	w.AssertDailySum(t, 500)
}
