package simulate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
)

// profileAge is the greatest age of a profile that a function uses, and a margin for the difference of two clocks.
const profileAge = time.Minute + history.MaxSkew

// change is one kind of change that an engineer makes with gatewayctl while merchants and operators are at work.
type change struct {
	name string
	make func(w *World, s *shop, i *instance)
}

// changes are all kinds. Each ends well by itself: what it limits or revokes does not keep an order from its end.
var changes = []change{
	{"a new webhook secret", (*World).rotateWebhookSecret},
	{"a new token", (*World).rotateToken},
	{"a rate limit", (*World).limitRequests},
	{"a new key", (*World).addKey},
	{"another host", (*World).addHost},
	{"a replay of one delivery", (*World).replayDelivery},
	{"a suspension", (*World).suspendShortly},
	{"a short-lived token", (*World).useShortLivedToken},
}

// planChanges draws changes by an engineer.
func (w *World) planChanges(length time.Duration) {
	for range 1 + w.Tape.Choose("changes", 4) {
		drawn := tape.Draw(w.Tape, "kind of change", changes...)
		s := tape.Draw(w.Tape, "shop", w.shops...)
		at := w.DrawStart(length).Add(time.Duration(w.Tape.Choose("minute of a change", 30)) * time.Minute)
		w.Kernel.At(at, "change by an engineer", func() {
			w.Count("change: " + drawn.name)
			w.runEngineer(func(i *instance) { drawn.make(w, s, i) })
		})
	}
}

// later runs another command of a change after some time.
func (w *World) later(wait time.Duration, task func(i *instance)) {
	w.BrokenUntil(time.Now().Add(wait))
	w.engineerAt(time.Now().Add(wait), "rest of a change", task)
}

// drawOverlap draws how long the old and the new version of something are both valid.
func (w *World) drawOverlap() time.Duration {
	return tape.Draw(w.Tape, "overlap of a change", time.Hour, 5*time.Minute, 30*time.Hour)
}

// issued is what a command, or the token function, has issued.
type issued struct {
	Version     int    `json:"version"`
	Secret      string `json:"webhook_secret"`
	Number      int    `json:"number"`
	AccessToken string `json:"access_token"`
}

// issue runs a command that issues something. It returns false if the command failed.
func (w *World) issue(i *instance, command ...string) (issued, bool) {
	output, done := w.runCommand(i, append(command, "--json")...)
	if !done {
		return issued{}, false
	}
	return w.readIssued(output)
}

// readIssued reads what was issued. It is a secret from now on.
func (w *World) readIssued(output []byte) (read issued, ok bool) {
	if err := json.Unmarshal(output, &read); err != nil {
		w.Fail("read what was issued: %s", err)
		return read, false
	}
	w.checker.addSecrets(read.Secret + read.AccessToken)
	return read, true
}

// rotateWebhookSecret issues a new webhook secret of a merchant, and revokes the old one later. The merchant's server
// then refuses the old one.
func (w *World) rotateWebhookSecret(s *shop, i *instance) {
	issued, done := w.issue(i, "webhook-secret", "rotate", s.Name)
	if !done {
		return
	}
	server := w.servers[s.host]
	server.Secrets = append(server.Secrets, issued.Secret)
	w.later(w.drawOverlap(), func(i *instance) {
		if _, done := w.runCommand(i, "webhook-secret", "revoke", s.Name, strconv.Itoa(issued.Version-1)); !done {
			return
		}
		const inFlight = 10 * time.Minute // longer than a freeze
		w.Kernel.At(history.Latest(time.Now(), w.CalmFrom).Add(inFlight), "end of the old webhook secret", func() {
			server.Secrets = server.Secrets[1:]
		})
	})
}

// rotateToken issues a new access token of a merchant, and revokes the old one later. Half of the merchant's requests
// then have the new one. A request with the old one must be refused.
func (w *World) rotateToken(s *shop, i *instance) {
	issued, done := w.issue(i, "token", "issue", s.Name)
	if !done {
		return
	}
	w.changed[s.Name].token = issued.AccessToken
	old := issued.Number - 1
	w.later(w.drawOverlap(), func(i *instance) {
		if _, done := w.runCommand(i, "token", "revoke", s.Name, strconv.Itoa(old)); done && old == 1 {
			w.refused[s.token] = time.Now()
		}
	})
}

// planSends lets an engineer send what waits for a later attempt, or enable all endpoints of a merchant, at any time.
func (w *World) planSends(length time.Duration) {
	for range 1 + w.Tape.Choose("sends", 3) {
		s := tape.Draw(w.Tape, "merchant of a send", w.shops...)
		command := []string{"deliveries", "send", "--merchant", s.Name, "--since", history.Start.Format(time.DateOnly)}
		if w.Tape.Choose("command of a send", 2) == 1 {
			command = []string{"endpoint", "enable", s.Name, "--all"}
		}
		at := w.DrawStart(length).Add(time.Duration(w.Tape.Choose("minutes to a send", 60)) * time.Minute)
		w.Kernel.At(at, "send", func() { w.engineer([][]string{command}) })
	}
}

// shortLife is the lifetime of short-lived tokens.
const shortLife = time.Hour

// requestToken lets a merchant get a short-lived token, which half of its next requests then have.
func (w *World) requestToken(s *shop) {
	mustRefuse := w.mustRefuse(s, s.clientSecret) != ""
	w.invoke(functionToken, outside.TokenEvent(s.profile.ID, s.clientSecret), func(r result) {
		response, _ := w.responseOf(functionToken, r)
		if response.Status != 200 {
			return
		}
		issued, _ := w.readIssued([]byte(response.Body))
		if reason := w.mustRefuse(s, s.clientSecret); mustRefuse && reason != "" {
			w.checker.fail(5, "%s got a token, and was %s", s.Name, reason)
		}
		token := issued.AccessToken
		w.changed[s.Name].token, w.changed[s.Name].shortLived = token, shortLivedToken{token, time.Now()}
		w.refused[token] = time.Now().Add(shortLife)
	})
}

// useShortLivedToken lets a merchant use a short-lived token. An engineer revokes it, or its lifetime ends.
func (w *World) useShortLivedToken(s *shop, _ *instance) {
	w.Kernel.At(time.Now(), "token request", func() { w.requestToken(s) })
	if w.Tape.Choose("the short-lived token is revoked", 2) == 0 {
		return
	}
	w.later(w.drawOverlap(), func(i *instance) {
		began := time.Now()
		if _, done := w.runCommand(i, "token", "revoke", s.Name, "--short-lived"); done {
			w.refuseShortLived(s, began)
		}
	})
}

// shortLivedToken is a token that a merchant got from the token function.
type shortLivedToken struct {
	text     string
	issuedAt time.Time
}

// refuseShortLived records that the last short-lived token of a merchant is revoked, by a command that began at a time.
func (w *World) refuseShortLived(s *shop, began time.Time) {
	token := w.changed[s.Name].shortLived
	if token.issuedAt.Before(began) && w.refused[token.text].After(time.Now()) {
		w.refused[token.text] = time.Now()
	}
}

// limitRequests limits a merchant to one request a second for some time.
func (w *World) limitRequests(s *shop, i *instance) {
	rate, state := strconv.Itoa(requestRate), w.changed[s.Name]
	if _, done := w.runCommand(i, "merchant", "change", s.Name, "--requests-per-second", rate, "--burst", rate); done {
		state.limitedAt = time.Now()
	}
	w.later(w.drawOverlap(), func(i *instance) {
		state.limitedAt = time.Time{}
		w.runCommand(i, "merchant", "change", s.Name, "--requests-per-second", "0")
	})
}

// addKey adds a key to one of the rings.
func (w *World) addKey(_ *shop, i *instance) {
	w.runCommand(i, "keys", "add", tape.Draw(w.Tape, "ring", "callbacks", "webhooks", "tokens"))
}

// addHost registers another host of a merchant.
func (w *World) addHost(s *shop, i *instance) {
	w.runCommand(i, "host", "add", s.Name, "second."+strings.ToLower(s.Name)+".example.com")
}

// replayDelivery sends the notifications of one transaction again, also those that were delivered.
func (w *World) replayDelivery(s *shop, i *instance) {
	for e := range w.checker.all() {
		if e.Merchant.ID == s.profile.ID && len(e.Outbox.Delivered) > 0 {
			w.runCommand(i, "deliveries", "replay", e.ID)
			return
		}
	}
}

// suspendShortly suspends a merchant, and ends the suspension later.
func (w *World) suspendShortly(s *shop, i *instance) {
	w.suspend(s, i)
	w.later(w.drawOverlap(), func(i *instance) { w.resume(s, i) })
}

// suspend suspends a merchant. All of its tokens are refused a minute later.
func (w *World) suspend(s *shop, i *instance) {
	began := time.Now()
	if _, done := w.runCommand(i, "merchant", "suspend", s.Name); done {
		w.changed[s.Name].suspendedAt = time.Now()
		w.refuseShortLived(s, began)
	}
}

// resume ends a suspension.
func (w *World) resume(s *shop, i *instance) {
	w.changed[s.Name].suspendedAt = time.Time{}
	defer func() { w.changed[s.Name].suspendedAt = time.Time{} }()
	w.runCommand(i, "merchant", "resume", s.Name)
}

// mustRefuse returns why a request must be refused, "" if it need not. The reason is older than the greatest age of a
// profile. A request must be refused only if there is a reason at its start and at its end, because the merchant may be
// resumed meanwhile.
func (w *World) mustRefuse(s *shop, token string) string {
	reason, since := "revoked", w.refused[token]
	if issued := w.changed[s.Name].shortLived; issued.text == token && since.Equal(issued.issuedAt.Add(shortLife)) {
		reason = "expired"
	}
	if since.IsZero() || time.Since(since) <= profileAge {
		reason, since = "suspended", w.changed[s.Name].suspendedAt
	}
	if since.IsZero() || time.Since(since) <= profileAge {
		return ""
	}
	return fmt.Sprintf("%s at %s", reason, since.Sub(history.Start))
}
