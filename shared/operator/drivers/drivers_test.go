package drivers_test

import (
	"io"
	"maps"
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
			operatortest.CheckResult(t, result, operator.NotApplied, fault.IntegrationRejected, nil)
			isOffered := !strings.Contains(result.Fault.Error(), "the platform does not offer the operation")
			if isOffered != slices.Contains(row.Operations, operation) {
				t.Errorf("%s of %s: offered %v: %v", operation, name, isOffered, result.Fault)
			}
		}
	}
}

// exchangeCounter is a transport that counts token exchanges, whose tokens have a life of seconds. It responds 503 to
// each other request.
type exchangeCounter struct {
	life  string
	count int
}

func (c *exchangeCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody}
	if strings.HasPrefix(r.Header.Get("Authorization"), "Basic ") {
		c.count++
		response.StatusCode = 200
		response.Body = io.NopCloser(strings.NewReader(`{"access_token":"t","expires_in":` + c.life + `}`))
	}
	return response, nil
}

// MTN recommends a new token 10 minutes before the end of the old one. Orange's tokens are renewed 5 minutes before it.
// The margin is at most half of a token's life.
func TestTokenMargins(t *testing.T) {
	for _, c := range []struct {
		suite  operatortest.Suite
		margin time.Duration
	}{
		{mtnSuite(), 10 * time.Minute},
		{orangeCMSuite(t), 5 * time.Minute},
		{orangeSMSSuite(t), 5 * time.Minute},
		{orangeWebPaySuite(t), 5 * time.Minute},
	} {
		for life, cached := range map[string]time.Duration{"3600": time.Hour - c.margin, "240": 2 * time.Minute} {
			for idle, want := range map[time.Duration]int{cached - time.Millisecond: 1, cached: 2} {
				counter, now := &exchangeCounter{life: life}, time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
				driver := driverOver(t, c.suite, drivers.Outside{
					Transport: counter, Now: func() time.Time { return now },
				})
				call(t, driver, c.suite)
				now = now.Add(idle)
				call(t, driver, c.suite)
				if counter.count != want {
					t.Errorf("%s: %d exchanges of tokens for %s s, the second call after %s; want %d",
						c.suite.Platform, counter.count, life, idle, want)
				}
			}
		}
	}
}

// driverOver makes the driver of a suite's platform with its account.
func driverOver(t *testing.T, suite operatortest.Suite, outside drivers.Outside) operator.Driver {
	t.Helper()
	account := maps.Clone(suite.Account)
	account["base_url"] = "https://operator.example"
	driver, _, _ := drivers.New(operatortest.Secret(suite.Platform, "a1", account), outside).Driver(suite.Platform)
	return driver
}

// call makes one call that needs a token.
func call(t *testing.T, driver operator.Driver, suite operatortest.Suite) {
	t.Helper()
	row, _ := operator.FindCapabilities(suite.Platform)
	if row.Operations[0] == operator.AccountSMS {
		operator.SendSMS(t.Context(), driver, operatortest.SampleSMS(suite.Platform, ""))
		return
	}
	sample := operatortest.SamplePay(suite.Platform, "", row.Channels[0])
	sample.DriverData = suite.DriverData
	operator.Pay(t.Context(), driver, sample)
}
