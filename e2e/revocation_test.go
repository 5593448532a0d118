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
	// revokedWithin is when a revocation has to hold everywhere (decision "authentication").
	revokedWithin = 60 * time.Second
	// watchedFor is how long after that nothing may be accepted again.
	watchedFor = 5 * time.Second
	// warmUp is how long before it is revoked each credential is tried: every process has its profile in its cache then.
	warmUp = 5 * time.Second
	// askedEvery is how often each credential is tried at each function, and askedAtOnce how many processes of it are kept
	// busy with that.
	askedEvery  = time.Second
	askedAtOnce = 2
)

// credential is a token that is revoked, with what it opened last.
type credential struct {
	name  string
	token string

	mu   sync.Mutex
	last map[string]time.Time // by function: when it was accepted last
}

// doors are requests that nothing is done for: who may come in is told that they are wrong, everybody else 401.
func doors(from shop) map[string]*ask {
	found := map[string]*ask{
		"charge": newAsk(from, http.MethodPost, chargePath),
		"pay":    newAsk(from, http.MethodPost, "/mobilemoney/v1"),
		"sms":    newAsk(from, http.MethodPost, "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"),
		"status": newAsk(from, http.MethodGet, "/mobilemoney/v1/getStatus/Nobody_1"),
	}
	found["status"].body = nil
	return found
}

// TestRevocation revokes tokens of each kind in each way, on a run at its true speed with its true caches, and tries them
// all the while at every function (decision "authentication").
func TestRevocation(t *testing.T) {
	needsLocal(t)
	if testing.Short() {
		t.Skip("it waits for a minute")
	}
	t.Parallel()
	e := newEngineer(t, localtest.Options{})
	notify := newMoody(t).URL + "/hook"
	long, short, both, secret := e.onboards("LongLived", notify), e.onboards("ShortLived", notify), e.onboards("Suspended", notify), e.onboards("Secret", notify)
	fetched := func(o onboarded) string {
		token, status, err := e.fetches(o.ClientID, o.ClientSecret)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d, %v", o.Merchant, status, err)
		}
		return token
	}
	revoked := []*credential{
		{name: "a long-lived token that is revoked", token: long.AccessToken}, {name: "a short-lived one that is revoked", token: fetched(short)},
		{name: "a long-lived one of a suspended merchant", token: both.AccessToken}, {name: "a short-lived one of a suspended merchant", token: fetched(both)},
	}
	kept := []*credential{
		{name: "the same merchant's short-lived token", token: fetched(long)}, {name: "the same merchant's long-lived token", token: short.AccessToken},
	}
	for _, c := range append(revoked, kept...) {
		c.last = map[string]time.Time{}
		if err := e.tries(c); err != nil || len(c.last) != len(doors(e.g.shop)) {
			t.Fatalf("%s before the revocation: %v, accepted by %v", c.name, err, c.last)
		}
	}
	stop := e.watches(append(revoked, kept...))
	time.Sleep(warmUp)
	for _, line := range []string{"token revoke LongLived 1", "token revoke ShortLived --short", "merchant suspend Suspended", "client-secret revoke Secret 1"} {
		e.does(line+because, nil)
	}
	at := time.Now()
	time.Sleep(revokedWithin + watchedFor)
	stop()
	for _, c := range revoked {
		for function, last := range c.last {
			t.Logf("%s: %s accepted it last %s after the revocation", c.name, function, last.Sub(at).Round(100*time.Millisecond))
			if last.Sub(at) > revokedWithin {
				t.Errorf("%s: %s accepts it %s after the revocation", c.name, function, last.Sub(at))
			}
		}
	}
	for _, c := range kept {
		for function, last := range c.last {
			if last.Sub(at) < revokedWithin {
				t.Errorf("%s: %s accepted it last %s after the revocation, and it was not revoked", c.name, function, last.Sub(at))
			}
		}
	}
	for _, o := range []onboarded{secret, both} {
		if _, status, err := e.fetches(o.ClientID, o.ClientSecret); err != nil || status != http.StatusUnauthorized {
			t.Errorf("%s: the client secret fetches: %d, %v", o.Merchant, status, err)
		}
	}
}

// watches tries credentials again and again until it is stopped.
func (e *engineer) watches(all []*credential) (stop func()) {
	var watchers sync.WaitGroup
	stopped := make(chan struct{})
	for _, c := range all {
		for range askedAtOnce {
			watchers.Go(func() {
				for {
					if err := e.tries(c); err != nil {
						e.t.Error(err)
						return
					}
					select {
					case <-stopped:
						return
					case <-time.After(askedEvery):
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

// tries knocks with a credential at every function.
func (e *engineer) tries(c *credential) error {
	from := e.g.shop
	from.AccessToken = c.token
	for function, a := range doors(from) {
		asked := time.Now()
		got, err := answers(a, e.g.BaseURL)
		switch {
		case err != nil:
			return err
		case got == http.StatusUnauthorized:
		case got == http.StatusBadRequest, got == http.StatusNotFound:
			c.mu.Lock()
			if asked.After(c.last[function]) {
				c.last[function] = asked
			}
			c.mu.Unlock()
		default:
			return fmt.Errorf("%s: %s answers %d", c.name, function, got)
		}
	}
	return nil
}
