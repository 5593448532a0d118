package operator_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// minimalStubDriver implements only operator.Driver.
type minimalStubDriver struct{}

func (minimalStubDriver) FindAccount(context.Context, string, string) (string, error) {
	return "a1", nil
}

// stubDriver implements the optional interfaces too.
type stubDriver struct{ minimalStubDriver }

func (stubDriver) LookUpPayment(context.Context, operator.StatusCall) operator.StatusResponse {
	return operator.StatusResponse{}
}
func (stubDriver) SendUserSMS(context.Context, operator.UserSMSCall) operator.Result {
	return operator.Result{}
}

func TestDriverDirectoryFindsDrivers(t *testing.T) {
	drivers := map[string]operator.Driver{"gateway": stubDriver{}}
	directory := operator.NewDriverDirectory(drivers, nil)
	delete(drivers, "gateway") // the directory has its own copy
	driver, row, ok := directory.Driver("ORANGE")
	if !ok || driver == nil || row.Platform != "orange" {
		t.Fatalf("driver of ORANGE: %v, row %q, found %v", driver, row.Platform, ok)
	}
	if _, ok := directory.StatusLookup(&ledger.Entry{Route: ledger.Route{Operator: "mtn", Account: "a1"}}); !ok {
		t.Error("mtn has no status lookup")
	}
	if _, row, ok := directory.UserSMSSender(&ledger.Entry{Route: ledger.Route{Operator: "sandbox"}}); !ok ||
		row.Platform != "sandbox" {
		t.Error("the sandbox has no sender of the payer's SMS")
	}
	if _, _, ok := directory.Driver("unknown"); ok {
		t.Error("an unknown operator has a driver")
	}
}

func TestDriverDirectoryWithoutDriver(t *testing.T) {
	empty := operator.NewDriverDirectory(nil, nil)
	if _, row, ok := empty.Driver("orange"); ok || row.Platform != "orange" {
		t.Error("an empty directory returned a driver, or no row")
	}
	for name, directory := range map[string]*operator.DriverDirectory{
		"no driver":    empty,
		"plain driver": operator.NewDriverDirectory(map[string]operator.Driver{"gateway": minimalStubDriver{}}, nil),
	} {
		if _, ok := directory.StatusLookup(&ledger.Entry{Route: ledger.Route{Operator: "orange"}}); ok {
			t.Errorf("%s: has a status lookup", name)
		}
		if _, _, ok := directory.UserSMSSender(&ledger.Entry{Route: ledger.Route{Operator: "orange"}}); ok {
			t.Errorf("%s: sends the payer's SMS", name)
		}
	}
}

// routeReader reads fixed routes.
type routeReader struct {
	routes operator.Routes
	err    error
}

func (r routeReader) Routes(context.Context) (operator.Routes, error) { return r.routes, r.err }

// brokenDriver has no usable account.
type brokenDriver struct{}

func (brokenDriver) FindAccount(context.Context, string, string) (string, error) {
	return "", errors.New("no account")
}

func TestAccounts(t *testing.T) {
	routes := routed("orange", "mtn-momo")
	for name, c := range map[string]struct {
		operation string
		driver    operator.Driver
		want      []string
	}{
		"routes and a current account": {"pay", stubDriver{}, []string{
			"mtn-momo/ci", "no-such/w", "orange-cm/c", "orange-webpay/w", "orange/a1", "pawapay/p", "wave-checkout",
			"wave-checkout/", "wave-checkout/w",
		}},
		"another operation":     {"sms", stubDriver{}, []string{"orange-sms/s", "orange/a1"}},
		"no account of its own": {"sms", brokenDriver{}, []string{"orange-sms/s"}},
	} {
		drivers := map[string]operator.Driver{"gateway": c.driver}
		directory := operator.NewDriverDirectory(drivers, routeReader{routes: routes})
		got, err := directory.Accounts(t.Context(), c.operation)
		slices.Sort(got)
		got = slices.Compact(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	unreadable := operator.NewDriverDirectory(nil, routeReader{err: errors.New("no secret")})
	if got, err := unreadable.Accounts(t.Context(), "pay"); err == nil || len(got) > 0 {
		t.Errorf("unreadable routes: %q, %v; want the error", got, err)
	}
}
