package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"mobilegateway/shared/operator/gateway"
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
		_, err := gateway.New(secrets, nil, time.Now).CurrentAccountID(t.Context(), "sandbox")
		if got := err == nil; got != want.deployed {
			t.Errorf("a deployed function accepts %s: %v, want %v: %v", address, got, want.deployed, err)
		}
		local := gateway.New(secrets, nil, time.Now)
		local.AcceptPrivateNetworks()
		_, err = local.CurrentAccountID(t.Context(), "sandbox")
		if got := err == nil; got != want.local {
			t.Errorf("a local function accepts %s: %v, want %v: %v", address, got, want.local, err)
		}
	}
}
