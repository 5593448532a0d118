package carrierapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

// TestBaseURLs: a token is sent in plain text only on this machine, and to a private network only if that is accepted.
func TestBaseURLs(t *testing.T) {
	cases := map[string]struct{ deployed, local bool }{
		"https://op.example":     {true, true},
		"http://127.0.0.1:3001":  {true, true},
		"http://[::1]:3001":      {true, true},
		"http://172.17.0.1:3001": {false, true},
		"http://[fd00::1]:3001":  {false, true},
		"http://169.254.169.254": {false, false},
		"http://op.example":      {false, false},
		"http://8.8.8.8":         {false, false},
	}
	for address, want := range cases {
		value := fmt.Sprintf(`{"sandbox":{"current":"a","accounts":{"a":{"base_url":%q,"access_token":"t"}}}}`, address)
		secrets := secret.Static([]byte(value))
		deployed := credentials.NewReader(secrets, time.Now, operator.CheckBaseURL)
		_, err := carrierapi.New(deployed, upstream.NewClient(nil), time.Now).FindAccount(t.Context(), "sandbox", "")
		if got := err == nil; got != want.deployed {
			t.Errorf("a deployed function accepts %s: %v, want %v: %v", address, got, want.deployed, err)
		}
		local := credentials.NewReader(secrets, time.Now, operator.CheckNearBaseURL)
		_, err = carrierapi.New(local, upstream.NewClient(nil), time.Now).FindAccount(t.Context(), "sandbox", "")
		if got := err == nil; got != want.local {
			t.Errorf("a local function accepts %s: %v, want %v: %v", address, got, want.local, err)
		}
	}
}

// A function that is not deployed calls an operator in a private network.
func TestOperatorInPrivateNetworkIsCalled(t *testing.T) {
	called := false
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		called = r.URL.Host == "10.0.0.1"
		return nil, errors.New("no response")
	})
	secrets := secret.Static([]byte(`{"sandbox":{"current":"a","accounts":{"a":{"base_url":"http://10.0.0.1",` +
		`"access_token":"t"}}}}`))
	accounts := credentials.NewReader(secrets, time.Now, operator.CheckNearBaseURL)
	local := carrierapi.New(accounts, upstream.NewClient(transport), time.Now)
	call := operator.Call{Platform: "sandbox", Operator: "sandbox", AccountID: "a", UpstreamKey: "Shop_1"}
	local.Pay(t.Context(), operator.PayCall{Call: call})
	if !called {
		t.Error("the operator was not called")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
