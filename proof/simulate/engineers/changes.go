package engineers

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/keyring"
)

// change is one kind of change that an engineer makes with gatewayctl while merchants and operators are at work.
type change struct {
	name string
	make func(e *Engineers, s *fixture.Shop, i *deployment.Instance)
}

// changes are all kinds. Each ends well by itself: what it limits or revokes does not keep an order from its end.
var changes = []change{
	{"a new webhook secret", (*Engineers).rotateWebhookSecret},
	{"a new token", (*Engineers).rotateToken},
	{"a rate limit", (*Engineers).LimitRequests},
	{"a new key", (*Engineers).addKey},
	{"another host", (*Engineers).addHost},
	{"a replay of one delivery", (*Engineers).replayDelivery},
	{"a suspension", (*Engineers).SuspendShortly},
	{"a short-lived token", (*Engineers).useShortLivedToken},
}

// DrawChanges draws changes by an engineer.
func (e *Engineers) DrawChanges(length time.Duration) {
	for range 1 + e.Tape.Choose("changes", 4) {
		drawn := tape.Draw(e.Tape, "kind of change", changes...)
		s := tape.Draw(e.Tape, "shop", e.merchants.Shops...)
		at := e.DrawStart(length).Add(time.Duration(e.Tape.Choose("minute of a change", 30)) * time.Minute)
		e.Kernel.At(at, "change by an engineer", func() {
			e.Count("change: " + drawn.name)
			e.start(func(i *deployment.Instance) { drawn.make(e, s, i) })
		})
	}
}

// later runs another command of a change after some time.
func (e *Engineers) later(wait time.Duration, task func(i *deployment.Instance)) {
	e.BrokenUntil(time.Now().Add(wait))
	e.At(time.Now().Add(wait), "rest of a change", task)
}

// drawOverlap draws how long the old and the new version of something are both valid.
func (e *Engineers) drawOverlap() time.Duration {
	return tape.Draw(e.Tape, "overlap of a change", time.Hour, 5*time.Minute, 30*time.Hour)
}

// issued is what a command has issued.
type issued struct {
	Version      int    `json:"version"`
	Secret       string `json:"webhook_secret"`
	ClientSecret string `json:"client_secret"`
	Number       int    `json:"number"`
	AccessToken  string `json:"access_token"`
}

// issue runs a command that issues something, which is a secret from now on. It returns false if the command failed.
func (e *Engineers) issue(i *deployment.Instance, command ...string) (issued, bool) {
	output, done := e.Run(i, append(command, "--json")...)
	if !done {
		return issued{}, false
	}
	var read issued
	if err := json.Unmarshal(output, &read); err != nil {
		e.Fail("read what was issued: %s", err)
		return read, false
	}
	e.observer.Confide(read.Secret + read.ClientSecret + read.AccessToken)
	return read, true
}

// rotateWebhookSecret issues a new webhook secret of a merchant, and revokes the old one later. The merchant's server
// then refuses the old one.
func (e *Engineers) rotateWebhookSecret(s *fixture.Shop, i *deployment.Instance) {
	issued, done := e.issue(i, "webhook-secret", "rotate", s.Name)
	if !done {
		return
	}
	server := e.merchants.Servers[s.Host]
	server.Secrets = append(server.Secrets, issued.Secret)
	e.later(e.drawOverlap(), func(i *deployment.Instance) {
		if _, done := e.Run(i, "webhook-secret", "revoke", s.Name, strconv.Itoa(issued.Version-1)); !done {
			return
		}
		const inFlight = 10 * time.Minute // longer than a freeze
		e.Kernel.At(history.Latest(time.Now(), e.CalmFrom).Add(inFlight), "end of the old webhook secret", func() {
			server.Secrets = server.Secrets[1:]
		})
	})
}

// rotateToken issues a new access token of a merchant, and revokes the old one later. Half of the merchant's requests
// then have the new one. A request with the old one must be refused.
func (e *Engineers) rotateToken(s *fixture.Shop, i *deployment.Instance) {
	issued, done := e.issue(i, "token", "issue", s.Name)
	if !done {
		return
	}
	e.merchants.Account(s).Token = issued.AccessToken
	old := issued.Number - 1
	e.later(e.drawOverlap(), func(i *deployment.Instance) {
		if _, done := e.Run(i, "token", "revoke", s.Name, strconv.Itoa(old)); done && old == 1 {
			e.merchants.Refuse(s.Token)
		}
	})
}

// useShortLivedToken lets a merchant use a short-lived token. An engineer revokes it, or its lifetime ends.
func (e *Engineers) useShortLivedToken(s *fixture.Shop, _ *deployment.Instance) {
	e.Kernel.At(time.Now(), "token request", func() { e.merchants.RequestToken(s) })
	if e.Tape.Choose("the short-lived token is revoked", 2) == 0 {
		return
	}
	e.later(e.drawOverlap(), func(i *deployment.Instance) {
		began := time.Now()
		if _, done := e.Run(i, "token", "revoke", s.Name, "--short-lived"); done {
			e.merchants.RefuseShortLived(s, began)
		}
	})
}

// EndClientSecret issues a new client secret of a merchant, and ends the old one at once.
func (e *Engineers) EndClientSecret(s *fixture.Shop, i *deployment.Instance) {
	if _, done := e.issue(i, "client-secret", "rotate", s.Name, "--overlap", "0s"); done {
		e.merchants.Refuse(s.ClientSecret)
	}
}

// RevokeTokenKey revokes the key of all short-lived tokens.
func (e *Engineers) RevokeTokenKey(_ *fixture.Shop, i *deployment.Instance) {
	began := time.Now()
	ring, _ := e.Secrets.Current(fixture.TokenSecret)
	isOnly := len(fixture.Must(keyring.Parse(ring)).Keys()) == 1 // no token of a merchant has another key
	if _, done := e.Run(i, "keys", "revoke", "tokens", "1", "--compromised"); !done || !isOnly {
		return
	}
	e.later(keyring.SigningDelay, func(*deployment.Instance) {
		for _, s := range e.merchants.Shops {
			e.merchants.RefuseShortLived(s, began)
		}
	})
}

// RequestRate is the rate, and the burst, of a limited merchant.
const RequestRate = 1

// LimitRequests limits a merchant to one request a second for some time.
func (e *Engineers) LimitRequests(s *fixture.Shop, i *deployment.Instance) {
	rate, state := strconv.Itoa(RequestRate), e.merchants.Account(s)
	if _, done := e.Run(i, "merchant", "change", s.Name, "--requests-per-second", rate, "--burst", rate); done {
		state.LimitedAt = time.Now()
	}
	e.later(e.drawOverlap(), func(i *deployment.Instance) {
		state.LimitedAt = time.Time{}
		e.Run(i, "merchant", "change", s.Name, "--requests-per-second", "0")
	})
}

// addKey adds a key to one of the rings.
func (e *Engineers) addKey(_ *fixture.Shop, i *deployment.Instance) {
	e.Run(i, "keys", "add", tape.Draw(e.Tape, "ring", "callbacks", "webhooks", "tokens"))
}

// addHost registers another host of a merchant.
func (e *Engineers) addHost(s *fixture.Shop, i *deployment.Instance) {
	e.Run(i, "host", "add", s.Name, "second."+strings.ToLower(s.Name)+".example.com")
}

// replayDelivery sends the notifications of one transaction again, also those that were delivered.
func (e *Engineers) replayDelivery(s *fixture.Shop, i *deployment.Instance) {
	for entry := range e.Entries.All() {
		if entry.Merchant.ID == s.Profile.ID && len(entry.Outbox.Delivered) > 0 {
			e.Run(i, "deliveries", "replay", entry.ID)
			return
		}
	}
}

// SuspendShortly suspends a merchant, and ends the suspension later.
func (e *Engineers) SuspendShortly(s *fixture.Shop, i *deployment.Instance) {
	e.Suspend(s, i)
	e.later(e.drawOverlap(), func(i *deployment.Instance) { e.Resume(s, i) })
}

// Suspend suspends a merchant. All of its tokens are refused a minute later.
func (e *Engineers) Suspend(s *fixture.Shop, i *deployment.Instance) {
	began := time.Now()
	if _, done := e.Run(i, "merchant", "suspend", s.Name); done {
		e.merchants.Account(s).SuspendedAt = time.Now()
		e.merchants.RefuseShortLived(s, began)
	}
}

// Resume ends a suspension.
func (e *Engineers) Resume(s *fixture.Shop, i *deployment.Instance) {
	e.merchants.Account(s).SuspendedAt = time.Time{}
	defer func() { e.merchants.Account(s).SuspendedAt = time.Time{} }()
	e.Run(i, "merchant", "resume", s.Name)
}
