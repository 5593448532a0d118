package operator_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func TestNewPaymentKey(t *testing.T) {
	long := "DemoShop_" + strings.Repeat("1", 21)
	for _, c := range []struct {
		name    string
		form    operator.KeyForm
		orderID string
		random  byte
		want    string
	}{
		{"the order_id", operator.KeyOrderID, long, 0, long},
		{"a UUID of zeros", operator.KeyUUID, long, 0, "00000000-0000-4000-8000-000000000000"},
		{"a UUID of ones", operator.KeyUUID, "DemoShop_1", 0xff, "ffffffff-ffff-4fff-bfff-ffffffffffff"},
		{"a short order_id", operator.KeyShort, "DemoShop_12345678901", 0, "DemoShop_12345678901"},
		{"a long order_id", operator.KeyShort, "DemoShop_123456789012", 0, "GVASLCLIEIN7799LPLM8"},
	} {
		random := bytes.NewReader(bytes.Repeat([]byte{c.random}, 16))
		got, err := operator.NewPaymentKey(c.form, c.orderID, random)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	other, _ := operator.NewPaymentKey(operator.KeyShort, "DemoShop_123456789013", nil)
	if len(other) != 20 || other == "GVASLCLIEIN7799LPLM8" {
		t.Errorf("the key of another order is %q", other)
	}
}

func TestPaymentUUIDs(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		key, err := operator.NewPaymentKey(operator.KeyUUID, "DemoShop_1", rand.Reader)
		if err != nil || !form.MatchString(key) || seen[key] {
			t.Fatalf("%q, %v: not a new UUID of version 4", key, err)
		}
		seen[key] = true
	}
}

// Only a UUID needs the random source, and a part of one is never used.
func TestPaymentKeyWithoutRandom(t *testing.T) {
	noEntropy := errors.New("no entropy")
	for name, random := range map[string]io.Reader{
		"it fails": iotest.ErrReader(noEntropy), "it ends": strings.NewReader("15 bytes only.."),
	} {
		if key, err := operator.NewPaymentKey(operator.KeyUUID, "DemoShop_1", random); err == nil || key != "" {
			t.Errorf("%s: key %q, %v; want an error", name, key, err)
		}
		for _, form := range []operator.KeyForm{operator.KeyOrderID, operator.KeyShort} {
			if key, err := operator.NewPaymentKey(form, "DemoShop_1", random); err != nil || key != "DemoShop_1" {
				t.Errorf("%s, form %d: key %q, %v", name, form, key, err)
			}
		}
	}
}

// decision "routes": an entry without a route is pinned to an account of the operator's own platform, as all were
// before there were routes. The id of such an account may have a slash.
func TestPins(t *testing.T) {
	for _, c := range []struct {
		text, operator string
		want           operator.Pin
	}{
		{"mtn-momo/ci", "mtn", operator.Pin{Platform: "mtn-momo", Account: "ci"}},
		{"mtn-momo/ci/2", "mtn", operator.Pin{Platform: "mtn-momo", Account: "ci/2"}},
		{"a1", "mtn", operator.Pin{Platform: "mtn", Account: "a1"}},
		{"", "mtn", operator.Pin{Platform: "mtn"}},
		{"ci/2024", "mtn", operator.Pin{Platform: "mtn", Account: "ci/2024"}},
		{"mtn-momo", "mtn", operator.Pin{Platform: "mtn", Account: "mtn-momo"}},
		{"/mtn-momo", "mtn", operator.Pin{Platform: "mtn", Account: "/mtn-momo"}},
		{"wave-checkout/w", "", operator.Pin{Platform: "wave-checkout", Account: "w"}},
		{"no-such/w", "", operator.Pin{Account: "no-such/w"}},
	} {
		if got := operator.ParsePin(c.text, c.operator); got != c.want {
			t.Errorf("ParsePin(%q, %q) = %+v, want %+v", c.text, c.operator, got, c.want)
		}
		e := &ledger.Entry{Route: ledger.Route{Operator: c.operator, Account: c.text}}
		if got := operator.PinOf(e); got != c.want {
			t.Errorf("PinOf(%q, %q) = %+v, want %+v", c.text, c.operator, got, c.want)
		}
		if got := operator.CapabilitiesOf(e).Platform; got != c.want.Platform {
			t.Errorf("CapabilitiesOf(%q, %q) is the row of %q", c.text, c.operator, got)
		}
	}
}

func TestNewCall(t *testing.T) {
	e := &ledger.Entry{
		Key:   ledger.Key{Kind: ledger.Payment, ID: "DemoShop_1"},
		Route: ledger.Route{Operator: "mtn", Account: "mtn-momo/ci", UpstreamKey: "k-1", Country: "CI"},
		Call:  ledger.Call{DriverData: "m-1", EverUnknown: true},
	}
	want := operator.Call{
		Platform: "mtn-momo", AccountID: "ci", Operator: "mtn", UpstreamKey: "k-1", OrderID: "DemoShop_1",
		DriverData: "m-1", MCO: "OCI", Country: "CI", // MayRepeat is for the caller to set
	}
	if diff := cmp.Diff(want, operator.NewCall(e)); diff != "" {
		t.Errorf("a routed payment (-want +got):\n%s", diff)
	}
	e.Kind, e.Route.Account, e.DriverData = ledger.SMS, "a1", ""
	want.Platform, want.AccountID, want.OrderID, want.DriverData = "mtn", "a1", "", ""
	if diff := cmp.Diff(want, operator.NewCall(e)); diff != "" {
		t.Errorf("a message without a route (-want +got):\n%s", diff)
	}
}

// failingRoutes is a deployment whose routes cannot be read.
type failingRoutes struct{ err error }

func (f failingRoutes) Routes(context.Context) (operator.Routes, error) {
	return operator.Routes{}, f.err
}

func TestRoutesOfDirectory(t *testing.T) {
	if got, err := operator.NewDriverDirectory(nil, nil).Routes(t.Context()); err != nil || got.ByOperator != nil {
		t.Errorf("without routes: %+v, %v", got, err)
	}
	cause := errors.New("unreadable")
	if _, err := operator.NewDriverDirectory(nil, failingRoutes{cause}).Routes(t.Context()); !errors.Is(err, cause) {
		t.Errorf("unreadable routes: %v", err)
	}
}
