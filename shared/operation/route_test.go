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
	w *operationtest.Fixture, body string, choice operation.Choice,
) (reservation, existing *ledger.Entry, err error) {
	e := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: "DemoShop_1"}, Operator: "mtn", Country: "CI", Fingerprint: body,
		UpstreamKey: "DemoShop_1", AmountMinor: 500, Currency: "XOF",
	}
	key := operation.IdempotencyKey{Value: e.ID, Part: "order_id"}
	return w.Pipeline.Reserve(context.Background(), w.NewRequest(), operationtest.DemoProfile(), e, choice, key)
}

// decision "routes": a refusal of today is for a key without an entry. Any other key gets what its entry has.
func TestReserveWithRefusal(t *testing.T) {
	refused, own := operation.Choice{Refusal: errNoRoute}, operationtest.Choice("mtn")
	first := func(choice operation.Choice, outcomes ...ledger.CallOutcome) func(*testing.T, *operationtest.Fixture) {
		return func(t *testing.T, w *operationtest.Fixture) {
			reservation, _, err := reservePayment(w, "f", choice)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range outcomes {
				if _, err := w.Pipeline.Book.StoreOutcome(t.Context(), reservation, o); err != nil {
					t.Fatal(err)
				}
			}
		}
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
			reservation, existing, err := reservePayment(w, c.body, refused)
			failsAsWanted := err != nil && kindOf(err) == c.kind && reservation == nil
			if (err != nil || c.kind != 0) && !failsAsWanted {
				t.Fatalf("reservation %v, %v; want fault %s", reservation, err, c.kind)
			}
			if err == nil && (reservation == nil) == (existing == nil) {
				t.Fatalf("reservation %v, existing %v; want one of them", reservation, existing)
			}
			if pinned := c.pin.Platform != ""; pinned != (reservation != nil) {
				t.Fatalf("reservation %v, want one %v", reservation, pinned)
			} else if pinned && operator.PinOf(reservation) != c.pin {
				t.Errorf("pinned to %+v, want %+v", operator.PinOf(reservation), c.pin)
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
	reservation, _, err := reservePayment(w, "f", operationtest.Choice("mtn"))
	if err != nil {
		t.Fatal(err)
	}
	done := ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, ResponseBody: []byte("{}")}
	if _, err := w.Pipeline.Book.StoreOutcome(t.Context(), reservation, done); err != nil {
		t.Fatal(err)
	}
	w.Driver.AccountErr = fault.New(fault.IntegrationRejected)
	_, existing, err := reservePayment(w, "f", operationtest.Choice("mtn"))
	if err != nil || existing == nil || existing.ResponseStatus != 201 {
		t.Errorf("existing %v, %v; want the stored response", existing, err)
	}
}

// A retry keeps the platform, the account and the key of its first attempt, also if the routes have changed.
func TestPinnedRetry(t *testing.T) {
	w := operationtest.New(t)
	reservation, _, err := reservePayment(w, "f", routedChoice("pawapay/p"))
	if err != nil || reservation.Account != "pawapay/p" {
		t.Fatalf("%v, %v; want it pinned to pawapay/p", reservation, err)
	}
	released := ledger.CallOutcome{State: ledger.Released}
	if _, err := w.Pipeline.Book.StoreOutcome(t.Context(), reservation, released); err != nil {
		t.Fatal(err)
	}
	for _, choice := range []operation.Choice{operationtest.Choice("mtn"), routedChoice("mtn-momo/ci")} {
		again, _, err := reservePayment(w, "f", choice)
		if err != nil || again.Account != "pawapay/p" {
			t.Fatalf("%v, %v; want it pinned to pawapay/p", again, err)
		}
		if _, err := w.Pipeline.Book.StoreOutcome(t.Context(), again, released); err != nil {
			t.Fatal(err)
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
		{"no routes", nil, nil, []string{"wave", "orange"}, "orange", "", nil},
		{"the next operator", []operator.Route{elsewhere}, nil, []string{"orange", "mtn"}, "mtn", "", nil},
		{"its own platform", []operator.Route{elsewhere}, []string{"orange"}, []string{"orange", "mtn"},
			"orange", "", nil},
		{"another country works", []operator.Route{elsewhere}, nil, []string{"orange"}, "", "",
			fault.NotAllowed("X-Operator-MCO", []string{"OCI"})},
		{"nothing works", nil, nil, []string{"wave", "moov"}, "", "", fault.New(fault.Forbidden)},
	} {
		w, profile := operationtest.New(t), operationtest.DemoProfile()
		routes := &operationtest.Routes{Routes: operator.Routes{Platforms: c.platforms}}
		if c.routes != nil {
			routes.Set("orange", c.routes...)
		}
		w.UseRoutes(w.Driver, routes)
		profile.Operators = c.profile
		choice, err := w.Pipeline.SelectOperator(t.Context(), profile, "sms", senegal)
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
	choice, err := w.Pipeline.SelectOperator(t.Context(), operationtest.DemoProfile(), "sms", senegal)
	if err != nil || !errors.Is(choice.Refusal, unreadable) {
		t.Errorf("unreadable routes: refusal %v, %v; a repeat must still get its response", choice.Refusal, err)
	}
}
