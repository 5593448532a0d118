package drivers_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
)

func TestEveryOperatorHasADriver(t *testing.T) {
	directory := drivers.NewDirectory(secret.Static(nil), nil, time.Now)
	for _, name := range operator.Platforms() {
		driver, row, found := directory.Driver(name)
		if !found {
			t.Errorf("%s: there is no driver %q", name, row.DriverName)
		}
		if _, prepares := driver.(operator.Preparer); prepares != row.Prepares {
			t.Errorf("%s: the row declares that it prepares: %v; the driver does: %v", name, row.Prepares, prepares)
		}
		e := &ledger.Entry{
			Route: ledger.Route{Operator: "x", Account: name + "/a"}, Call: ledger.Call{DriverData: "m"},
		}
		if _, offered := directory.StatusLookup(e); offered != row.HasStatusLookup {
			t.Errorf("%s: the row declares a lookup: %v; the driver has one: %v", name, row.HasStatusLookup, offered)
		}
		if _, _, offered := directory.UserSMSSender(e); offered == row.SendsUserSMS {
			t.Errorf("%s: either the operator or its driver must send the payer's SMS", name)
		}
	}
}

// A row offers what its driver implements. Another operation is certainly not applied, and the fault is ours.
func TestOtherOperations(t *testing.T) {
	directory := drivers.NewDirectory(secret.Static(nil), nil, time.Now)
	for _, name := range operator.Platforms() {
		driver, row, _ := directory.Driver(name)
		for operation, result := range map[string]operator.Result{
			operator.AccountCharge: operator.Charge(t.Context(), driver, operatortest.SampleCharge(name, "")),
			operator.AccountPay:    operator.Pay(t.Context(), driver, operatortest.SamplePay(name, "", "ussd")).Result,
			operator.AccountSMS:    operator.SendSMS(t.Context(), driver, operatortest.SampleSMS(name, "")),
		} {
			if result.Outcome != operator.NotApplied || result.Fault.Kind != fault.IntegrationRejected {
				t.Fatalf("outcome %d, %v", result.Outcome, result.Fault)
			}
			isOffered := !strings.Contains(result.Fault.Error(), "the platform does not offer the operation")
			if isOffered != slices.Contains(row.Operations, operation) {
				t.Errorf("%s of %s: offered %v: %v", operation, name, isOffered, result.Fault)
			}
		}
	}
}

// A function that is not deployed calls an operator in a private network.
func TestPrivateNetworks(t *testing.T) {
	secrets := secret.Static(`{"sandbox":{"current":"a","accounts":{"a":{"base_url":"http://10.0.0.1",` +
		`"access_token":"t"}}}}`)
	for _, accepted := range []bool{false, true} {
		called := false
		transport := operatortest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			called = r.URL.Host == "10.0.0.1"
			return nil, errors.New("no response")
		})
		outside := drivers.Outside{Transport: transport, Now: time.Now, AcceptsPrivateNetworks: accepted}
		driver, _, _ := drivers.New(secrets, outside).Driver("sandbox")
		operator.Pay(t.Context(), driver, operatortest.SamplePay("sandbox", "a", "tpe"))
		if called != accepted {
			t.Errorf("called %v, want %v", called, accepted)
		}
	}
}
