package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"mobilegateway/internal/localtest"
)

const (
	// revocationTimeout is when a revocation has to hold everywhere (decision "authentication").
	revocationTimeout = 60 * time.Second
	// probeDuration is how long after that nothing may be accepted again.
	probeDuration = 5 * time.Second
	// warmUp is how long before it is revoked each credential is tried: every process has its profile in its cache then.
	warmUp = 5 * time.Second
	// probeInterval is how often each credential is tried at each function, and parallelProbes how many processes of it are kept
	// busy with that.
	probeInterval  = time.Second
	parallelProbes = 2
)

// probedToken is a token that is revoked, with what it opened last.
type probedToken struct {
	name  string
	token string

	mu           sync.Mutex
	lastAccepted map[string]time.Time // by function: when it was accepted last
}

// probeRequests are requests that nothing is done for: who may come in is told that they are wrong, everybody else 401.
func probeRequests(from merchantCredentials) map[string]*requestBuilder {
	found := map[string]*requestBuilder{
		"charge": newRequestBuilder(from, http.MethodPost, chargePath),
		"pay":    newRequestBuilder(from, http.MethodPost, "/mobilemoney/v1"),
		"sms":    newRequestBuilder(from, http.MethodPost, "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"),
		"status": newRequestBuilder(from, http.MethodGet, "/mobilemoney/v1/getStatus/Nobody_1"),
	}
	found["status"].body = nil
	return found
}

// TestRevocation revokes tokens of each kind in each way, on a run at its true speed with its true caches, and tries them
// all the while at every function (decision "authentication").
func TestRevocation(t *testing.T) {
	requireLocalRun(t)
	if testing.Short() {
		t.Skip("it waits for a minute")
	}
	t.Parallel()
	e := newCtlSession(t, localtest.Options{})
	notify := newFaultyServer(t).URL + "/hook"
	long, short, both, secret := e.createMerchant("LongLived", notify), e.createMerchant("ShortLived", notify), e.createMerchant("Suspended", notify), e.createMerchant("Secret", notify)
	fetched := func(o createdMerchant) string {
		token, status, err := e.fetchToken(o.ClientID, o.ClientSecret)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d, %v", o.Merchant, status, err)
		}
		return token
	}
	revoked := []*probedToken{
		{name: "a long-lived token that is revoked", token: long.AccessToken}, {name: "a short-lived one that is revoked", token: fetched(short)},
		{name: "a long-lived one of a suspended merchant", token: both.AccessToken}, {name: "a short-lived one of a suspended merchant", token: fetched(both)},
	}
	kept := []*probedToken{
		{name: "the same merchant's short-lived token", token: fetched(long)}, {name: "the same merchant's long-lived token", token: short.AccessToken},
	}
	for _, c := range append(revoked, kept...) {
		c.lastAccepted = map[string]time.Time{}
		if err := e.probeFunctions(c); err != nil || len(c.lastAccepted) != len(probeRequests(e.target.merchantCredentials)) {
			t.Fatalf("%s before the revocation: %v, accepted by %v", c.name, err, c.lastAccepted)
		}
	}
	stop := e.probeContinuously(append(revoked, kept...))
	time.Sleep(warmUp)
	for _, line := range []string{"token revoke LongLived 1", "token revoke ShortLived --short-lived", "merchant suspend Suspended", "client-secret revoke Secret 1"} {
		e.mustRun(line+confirmFlags, nil)
	}
	at := time.Now()
	time.Sleep(revocationTimeout + probeDuration)
	stop()
	for _, c := range revoked {
		for function, last := range c.lastAccepted {
			t.Logf("%s: %s accepted it last %s after the revocation", c.name, function, last.Sub(at).Round(100*time.Millisecond))
			if last.Sub(at) > revocationTimeout {
				t.Errorf("%s: %s accepts it %s after the revocation", c.name, function, last.Sub(at))
			}
		}
	}
	for _, c := range kept {
		for function, last := range c.lastAccepted {
			if last.Sub(at) < revocationTimeout {
				t.Errorf("%s: %s accepted it last %s after the revocation, and it was not revoked", c.name, function, last.Sub(at))
			}
		}
	}
	for _, o := range []createdMerchant{secret, both} {
		if _, status, err := e.fetchToken(o.ClientID, o.ClientSecret); err != nil || status != http.StatusUnauthorized {
			t.Errorf("%s: the client secret fetches: %d, %v", o.Merchant, status, err)
		}
	}
}

// probeContinuously tries credentials again and again until it is stopped.
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

// probeFunctions knocks with a credential at every function.
func (e *ctlSession) probeFunctions(c *probedToken) error {
	from := e.target.merchantCredentials
	from.AccessToken = c.token
	for function, a := range probeRequests(from) {
		sentAt := time.Now()
		got, err := sendForStatus(a, e.target.BaseURL)
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
			return fmt.Errorf("%s: %s answers %d", c.name, function, got)
		}
	}
	return nil
}
