package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
)

const (
	// revocationTimeout is when a revocation must be effective everywhere (decision "authentication").
	revocationTimeout = 60 * time.Second
	// probeDuration is how long after that the test continues to probe.
	probeDuration = 5 * time.Second
	// warmUp is how long each credential is used before the revocation, so that every process has its profile in the
	// cache.
	warmUp = 5 * time.Second
	// probeInterval is the pause between two probes of a credential; parallelProbes is how many probes run in
	// parallel, to use several processes of a function.
	probeInterval  = time.Second
	parallelProbes = 2
)

// probedToken is a token with the time of its last acceptance.
type probedToken struct {
	name  string
	token string

	mu           sync.Mutex
	lastAccepted map[string]time.Time // by function
}

// probeRequests returns invalid requests, which change nothing. A valid token gets 400 or 404, an invalid one 401.
func probeRequests(from local.MerchantCredentials) map[string]*requestBuilder {
	found := map[string]*requestBuilder{
		"charge": newRequestBuilder(from, http.MethodPost, chargePath),
		"pay":    newRequestBuilder(from, http.MethodPost, "/mobilemoney/v1"),
		"sms":    newRequestBuilder(from, http.MethodPost, "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"),
		"status": newRequestBuilder(from, http.MethodGet, "/mobilemoney/v1/getStatus/Nobody_1"),
	}
	found["status"].body = nil
	return found
}

// TestRevocation revokes tokens of each kind in each way, on a run at normal speed with its normal caches. It probes
// all functions with them meanwhile (decision "authentication").
func TestRevocation(t *testing.T) {
	requireLocalRun(t)
	if testing.Short() {
		t.Skip("the test waits for a minute")
	}
	t.Parallel()
	e := newCtlSession(t, localtest.Options{})
	notify := newFaultyServer(t).URL + "/hook"
	long, short, both, secret := e.createMerchant("LongLived", notify), e.createMerchant("ShortLived", notify),
		e.createMerchant("Suspended", notify), e.createMerchant("Secret", notify)
	fetched := func(o createdMerchant) string {
		token, status, err := e.target.fetchToken(o.ClientID, o.ClientSecret)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d, %v", o.Merchant, status, err)
		}
		return token
	}
	revoked := []*probedToken{
		{name: "a long-lived token that is revoked", token: long.AccessToken},
		{name: "a short-lived token that is revoked", token: fetched(short)},
		{name: "a long-lived token of a suspended merchant", token: both.AccessToken},
		{name: "a short-lived token of a suspended merchant", token: fetched(both)},
	}
	kept := []*probedToken{
		{name: "the same merchant's short-lived token", token: fetched(long)},
		{name: "the same merchant's long-lived token", token: short.AccessToken},
	}
	for _, c := range append(revoked, kept...) {
		c.lastAccepted = map[string]time.Time{}
		if err := e.probeFunctions(c); err != nil ||
			len(c.lastAccepted) != len(probeRequests(e.target.MerchantCredentials)) {
			t.Fatalf("%s before the revocation: %v, accepted by %v", c.name, err, c.lastAccepted)
		}
	}
	stop := e.probeContinuously(append(revoked, kept...))
	time.Sleep(warmUp)
	for _, line := range []string{"token revoke LongLived 1", "token revoke ShortLived --short-lived",
		"merchant suspend Suspended", "client-secret revoke Secret 1"} {
		e.mustRun(line+confirmFlags, nil)
	}
	at := time.Now()
	time.Sleep(revocationTimeout + probeDuration)
	stop()
	for _, c := range revoked {
		for function, last := range c.lastAccepted {
			t.Logf("%s: %s accepted it last %s after the revocation", c.name, function,
				last.Sub(at).Round(100*time.Millisecond))
			if last.Sub(at) > revocationTimeout {
				t.Errorf("%s: %s accepts it %s after the revocation", c.name, function, last.Sub(at))
			}
		}
	}
	for _, c := range kept {
		for function, last := range c.lastAccepted {
			if last.Sub(at) < revocationTimeout {
				t.Errorf("%s: %s accepted it last %s after the revocation, and it was not revoked", c.name, function,
					last.Sub(at))
			}
		}
	}
	for _, o := range []createdMerchant{secret, both} {
		if _, status, err := e.target.fetchToken(o.ClientID, o.ClientSecret); err != nil ||
			status != http.StatusUnauthorized {
			t.Errorf("%s: the token endpoint returned %d, %v, want 401", o.Merchant, status, err)
		}
	}
}

// probeContinuously probes tokens in parallel until stop is called.
func (e *ctlSession) probeContinuously(all []*probedToken) (stop func()) {
	var watchers sync.WaitGroup
	stopped := make(chan struct{})
	for _, c := range all {
		for range parallelProbes {
			watchers.Go(func() {
				for {
					if err := e.probeFunctions(c); err != nil {
						e.t.Error(err)
						return
					}
					select {
					case <-stopped:
						return
					case <-time.After(probeInterval):
					}
				}
			})
		}
	}
	return func() {
		close(stopped)
		watchers.Wait()
	}
}

// probeFunctions probes every function with a token.
func (e *ctlSession) probeFunctions(c *probedToken) error {
	from := e.target.MerchantCredentials
	from.AccessToken = c.token
	for function, a := range probeRequests(from) {
		sentAt := time.Now()
		got, err := e.target.sendForStatus(a)
		switch {
		case err != nil:
			return err
		case got == http.StatusUnauthorized:
		case got == http.StatusBadRequest, got == http.StatusNotFound:
			c.mu.Lock()
			if sentAt.After(c.lastAccepted[function]) {
				c.lastAccepted[function] = sentAt
			}
			c.mu.Unlock()
		default:
			return fmt.Errorf("%s: %s returned %d", c.name, function, got)
		}
	}
	return nil
}
