package operation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
)

// routedChoice is the choice of a route of the operator mtn.
func routedChoice(to string) operation.Choice {
	row, _ := operator.FindCapabilities(operator.ParsePin(to, "").Platform)
	return operation.Choice{Selection: operator.Selection{Capabilities: row, Operator: "mtn", Account: to}}
}

var errNoRoute = fault.NotAllowed("mno-name", []string{"sandbox"})

// reservePayment reserves a payment's key under a choice.
func reservePayment(
	w *operationtest.Fixture, body string, choice operation.Choice, check operation.CheckFunc,
) (a *operation.Attempt, reserved bool, err error) {
	a = w.NewAttempt(&ledger.Entry{
		Key:     ledger.Key{Kind: ledger.Payment, ID: "DemoShop_1"},
		Route:   ledger.Route{Operator: "mtn", Country: "CI", UpstreamKey: "DemoShop_1"},
		Request: ledger.Request{Fingerprint: body}, Amount: ledger.Amount{Minor: 500, Currency: "XOF"},
	})
	a.Choice = choice
	reserved, err = w.Pipeline.Reserve(context.Background(), a, check)
	return a, reserved, err
}

// mustReservePayment returns the reservation of a payment, which its outcome, if any, has released or ended.
func mustReservePayment(
	t testing.TB, w *operationtest.Fixture, choice operation.Choice, outcomes ...ledger.CallOutcome,
) *ledger.Entry {
	t.Helper()
	a, reserved, err := reservePayment(w, "f", choice, nil)
	if err != nil || !reserved {
		t.Fatalf("reserved %v, error %v; want a reservation", reserved, err)
	}
	for _, o := range outcomes {
		made := map[ledger.State]ledger.Transition{
			ledger.Done: ledger.RecordSuccess, ledger.Unknown: ledger.RecordUnknown,
			ledger.Released: ledger.ReleaseUncalled,
		}[o.State]
		if _, err := w.Pipeline.Book.StoreOutcome(t.Context(), a.Stored, made, o); err != nil {
			t.Fatal(err)
		}
	}
	return a.Stored
}

// decision "routes": a refusal of today is for a key without an entry. Any other key gets what its entry has.
func TestReserveWithRefusal(t *testing.T) {
	refused, own := operation.Choice{Refusal: errNoRoute}, operationtest.Choice("mtn")
	first := func(choice operation.Choice, outcomes ...ledger.CallOutcome) func(*testing.T, *operationtest.Fixture) {
		return func(t *testing.T, w *operationtest.Fixture) { mustReservePayment(t, w, choice, outcomes...) }
	}
	lapsed := func(t *testing.T, w *operationtest.Fixture) {
		first(own)(t, w)
		w.Clock.Advance(time.Minute)
	}
	done := ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}
	unknown, released := ledger.CallOutcome{State: ledger.Unknown}, ledger.CallOutcome{State: ledger.Released}
	unbound := ledger.CallOutcome{State: ledger.Released, UnbindBody: true}
	momo := routedChoice("mtn-momo/ci")
	for _, c := range []struct {
		name   string
		before func(*testing.T, *operationtest.Fixture)
		body   string
		kind   fault.Kind // 0 for no fault
		pin    operator.Pin
	}{
		{"no entry", func(*testing.T, *operationtest.Fixture) {}, "f", fault.ValueNotAllowed, operator.Pin{}},
		{"released without its body", first(own, unbound), "f", fault.ValueNotAllowed, operator.Pin{}},
		{"a stored response", first(own, done), "f", 0, operator.Pin{}},
		{"another body", first(own, done), "g", fault.DuplicateKey, operator.Pin{}},
		{"in flight", first(own), "f", fault.RequestInProgress, operator.Pin{}},
		{"unknown at a platform that takes no repeat", first(momo, unknown), "f", fault.OutcomeUnknown, operator.Pin{}},
		{"unknown", first(own, unknown), "f", 0, operator.Pin{Platform: "mtn", Account: "a1"}},
		{"lapsed", lapsed, "f", 0, operator.Pin{Platform: "mtn", Account: "a1"}},
		{"released", first(momo, released), "f", 0, operator.Pin{Platform: "mtn-momo", Account: "ci"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := operationtest.New(t)
			c.before(t, w)
			stored := len(w.Ledger.All())
			a, reserved, err := reservePayment(w, c.body, refused, nil)
			failsAsWanted := err != nil && kindOf(err) == c.kind && !reserved
			if (err != nil || c.kind != 0) && !failsAsWanted {
				t.Fatalf("reserved %v, %v; want fault %s", reserved, err, c.kind)
			}
			if err == nil && a.Stored == nil {
				t.Fatal("neither a reservation nor an existing entry")
			}
			if pinned := c.pin.Platform != ""; pinned != reserved {
				t.Fatalf("reserved %v, want %v", reserved, pinned)
			} else if pinned && operator.PinOf(a.Stored) != c.pin {
				t.Errorf("pinned to %+v, want %+v", operator.PinOf(a.Stored), c.pin)
			}
			if got := len(w.Ledger.All()); got != stored {
				t.Errorf("%d entries after %d", got, stored)
			}
		})
	}
}

// An account that cannot be used refuses as a missing route does: the repeat keeps its stored response.
func TestUnusableAccount(t *testing.T) {
	w := operationtest.New(t)
	done := ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}
	mustReservePayment(t, w, operationtest.Choice("mtn"), done)
	w.Driver.AccountErr = fault.New(fault.IntegrationRejected)
	a, reserved, err := reservePayment(w, "f", operationtest.Choice("mtn"), nil)
	if err != nil || reserved || a.Stored.Response.Status != 201 {
		t.Errorf("reserved %v, stored %v, %v; want the stored response", reserved, a.Stored, err)
	}
}

// A retry keeps the platform, the account and the key of its first attempt, also if the routes have changed.
func TestPinnedRetry(t *testing.T) {
	w := operationtest.New(t)
	released := ledger.CallOutcome{State: ledger.Released}
	for _, choice := range []operation.Choice{
		routedChoice("pawapay/p"), operationtest.Choice("mtn"), routedChoice("mtn-momo/ci"),
	} {
		if got := mustReservePayment(t, w, choice, released).Route.Account; got != "pawapay/p" {
			t.Errorf("pinned to %s, want pawapay/p", got)
		}
	}
}

// decision "charge-country": the first operator of the profile that a platform serves.
func TestSelectOperatorByRoutes(t *testing.T) {
	senegal, _ := market.ByAlpha2("SN")
	toSMS := operator.Route{Country: "SN", Operation: "sms", To: "orange-sms/s"}
	elsewhere := operator.Route{Country: "CI", Operation: "sms", To: "orange-sms/s"}
	for _, c := range []struct {
		name      string
		routes    []operator.Route // of orange
		platforms []string
		profile   []string
		platform  string
		account   string
		refusal   *fault.Fault
	}{
		{"a route", []operator.Route{toSMS}, nil, []string{"wave", "orange", "mtn"}, "orange-sms", "orange-sms/s", nil},
		{"no routes", nil, nil, []string{"absent", "wave", "orange"}, "orange", "", nil},
		{"the next operator", []operator.Route{elsewhere}, nil, []string{"orange", "mtn"}, "mtn", "", nil},
		{"its own platform", []operator.Route{elsewhere}, []string{"orange"}, []string{"orange", "mtn"},
			"orange", "", nil},
		{"another country works", []operator.Route{elsewhere}, nil, []string{"orange"}, "", "",
			fault.NotAllowed("X-Operator-MCO", []string{"OCI"})},
		{"nothing works", nil, nil, []string{"wave", "moov"}, "", "", fault.New(fault.Forbidden)},
	} {
		w, a := operationtest.New(t), &operation.Attempt{Profile: operationtest.DemoProfile()}
		routes := &operationtest.Routes{Routes: operator.Routes{Platforms: c.platforms}}
		if c.routes != nil {
			routes.Set("orange", c.routes...)
		}
		w.UseRoutes(w.Driver, routes)
		a.Profile.Operators = c.profile
		err := w.Pipeline.SelectOperator(t.Context(), a, "sms", senegal)
		choice := a.Choice
		if err != nil || choice.Platform != c.platform || choice.Account != c.account {
			t.Errorf("%s: %q, account %q, %v; want %q, %q",
				c.name, choice.Platform, choice.Account, err, c.platform, c.account)
		}
		if c.refusal == nil && choice.Refusal == nil {
			continue
		}
		if f := fault.FromError(choice.Refusal); c.refusal == nil || choice.Refusal == nil ||
			f.Kind != c.refusal.Kind || f.Part != c.refusal.Part || f.Value != c.refusal.Value {
			t.Errorf("%s: refusal %v, want %v", c.name, choice.Refusal, c.refusal)
		}
	}
	w := operationtest.New(t)
	unreadable := &fault.Fault{Kind: fault.IntegrationRejected, Cause: errors.New("unreadable")}
	w.UseRoutes(w.Driver, &operationtest.Routes{Err: unreadable})
	a := &operation.Attempt{Profile: operationtest.DemoProfile()}
	err := w.Pipeline.SelectOperator(t.Context(), a, "sms", senegal)
	if err != nil || !errors.Is(a.Choice.Refusal, unreadable) {
		t.Errorf("unreadable routes: refusal %v, %v; a repeat must still get its response", a.Choice.Refusal, err)
	}
	a.Profile.Operations = nil
	if err := w.Pipeline.SelectOperator(t.Context(), a, "sms", senegal); kindOf(err) != fault.Forbidden {
		t.Errorf("decision authentication: error %v, want forbidden", err)
	}
}

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
		a, reserved, err := reservePayment(w, "f", c.choice, c.check)
		account := ""
		if reserved {
			account = a.Stored.Route.Account
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
