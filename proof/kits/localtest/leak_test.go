package localtest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
)

// maxRevocation is the longest time from the first command of a runbook until our side neither signs with nor accepts
// what leaked.
const maxRevocation = time.Minute

// leak is something that leaked, and how its runbook in docs/operations.md ends it on our side.
type leak struct {
	name   string
	revoke func()
	// inUse makes our side use what leaked, and reports whether it still does.
	inUse func() bool
	// remains is what merchants, operators and we still must do.
	remains string

	startedAt time.Time // when revoke began
	lastUse   time.Time // when inUse last reported true
}

// TestLeaksEndWithinAMinute leaks all that docs/operations.md has a runbook for, and follows the runbooks on a local
// run. It uses what leaked for a minute from then on, and prints for how long our side did so too.
func TestLeaksEndWithinAMinute(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole gateway")
	}
	s := newLeakStory(t)
	leaks := []*leak{s.tokenKey(), s.callbackKey(), s.webhookKey(), s.operatorToken(), s.merchantToken()}
	for _, l := range leaks {
		if !l.inUse() {
			t.Fatalf("%s: not in use before the revocation", l.name)
		}
	}
	for _, l := range leaks {
		l.startedAt = time.Now()
		l.lastUse = l.startedAt
		l.revoke()
	}
	poll := time.NewTicker(500 * time.Millisecond)
	defer poll.Stop()
	for last := leaks[len(leaks)-1]; time.Since(last.startedAt) < maxRevocation; <-poll.C {
		for _, l := range leaks {
			if l.inUse() {
				l.lastUse = time.Now()
			}
		}
		s.checkNewRequests()
	}
	for name, refused := range s.refused {
		t.Logf("%s: 503 for %s, until the next key signs", name,
			refused.to.Sub(refused.from).Round(100*time.Millisecond))
	}
	if len(s.refused) != 2 {
		t.Error("tokens and payments were never 503: the next keys signed before every function had read them")
	}
	for _, l := range leaks {
		t.Logf("%s: last used %s after the first command; what remains: %s", l.name,
			l.lastUse.Sub(l.startedAt).Round(100*time.Millisecond), l.remains)
		if l.lastUse.Sub(l.startedAt) > maxRevocation || l.inUse() {
			t.Errorf("%s: our side uses it after %s", l.name, maxRevocation)
		}
	}
	s.checkSuccessors()
}

// window is a time in which requests were refused.
type window struct{ from, to time.Time }

// leakStory is a local run with a merchant that is notified and an operator that can end a token.
type leakStory struct {
	*testing.T
	gateway  *localtest.Gateway
	info     local.Info
	operator *tokenOperator
	orders   int               // payments that were requested
	notified string            // the order whose notification is sent again and again
	refused  map[string]window // when new requests were 503, by kind
}

func newLeakStory(t *testing.T) *leakStory {
	gateway := localtest.Start(t, localtest.Options{})
	s := &leakStory{T: t, gateway: gateway, info: gateway.Info(), refused: map[string]window{}}
	s.startOperator()
	s.notified = s.pay()
	return s
}

// tokenFunctions are the paths of the functions that verify tokens, with their response to an invalid request whose
// token is valid.
func tokenFunctions() map[string]int {
	return map[string]int{
		"/mobilemoney/v1/getStatus/DemoShop_absent": http.StatusNotFound,
		"/mobilemoney/v1": http.StatusBadRequest,
		"/payment/v1/acr%3AOperatorAPIToken/transactions/amount": http.StatusBadRequest,
		"/smsmessaging/v1/outbound/tel%3A%2B2250000/requests":    http.StatusBadRequest,
	}
}

// functionsAccepting returns how many functions accept a token. It sends requests that have no effect.
func (s *leakStory) functionsAccepting(token string) (count int) {
	s.Helper()
	header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	for path, accepted := range tokenFunctions() {
		method, body := http.MethodPost, "{}"
		if accepted == http.StatusNotFound {
			method, body = http.MethodGet, ""
		}
		code, _, _ := localtest.Send(s, method, s.info.BaseURL+path, body, header)
		if s.accepts(code, accepted, http.StatusUnauthorized) {
			count++
		}
	}
	return count
}

// accepts reports whether a status is that of a request whose credential is accepted. It must be one of two.
func (s *leakStory) accepts(status, accepted, refused int) bool {
	s.Helper()
	if status != accepted && status != refused {
		s.Errorf("status %d, want %d or %d", status, accepted, refused)
	}
	return status == accepted
}

func (s *leakStory) tokenKey() *leak {
	forged := s.shortLivedToken()
	return &leak{
		name:    "token key",
		revoke:  func() { s.runTool("keys", "revoke", "tokens", "1", "--compromised") },
		inUse:   func() bool { return s.functionsAccepting(forged) > 0 },
		remains: "merchants that get 401 request a new token",
	}
}

func (s *leakStory) callbackKey() *leak {
	forged := s.signedCallbacks()
	return &leak{
		name:   "callback key",
		revoke: func() { s.runTool("keys", "revoke", "callbacks", "1", "--compromised") },
		inUse: func() (accepted bool) { // authentic addresses with a body that nothing can decode
			for _, address := range forged {
				code, _, _ := localtest.Send(s, http.MethodPost, address, "{}", nil)
				accepted = s.accepts(code, http.StatusOK, http.StatusNotFound) || accepted
			}
			return accepted
		},
		remains: "operators report what gatewayctl attention lists",
	}
}

// webhookKey revokes the key as if no merchant could wait for its new secret.
func (s *leakStory) webhookKey() *leak {
	leaked := s.info.WebhookSecret
	return &leak{
		name: "webhook key",
		revoke: func() {
			s.runTool("keys", "revoke", "webhooks", "1", "--compromised")
			s.runTool("keys", "revoke", "webhooks", "1", "--compromised", "--at-once")
		},
		inUse:   func() bool { return signedWith(s.T, s.notifyAgain(), leaked) },
		remains: "each merchant installs its new secret, and refuses the old one",
	}
}

// operatorToken rotates the token, and lets the operator end the old one at once.
func (s *leakStory) operatorToken() *leak {
	file := filepath.Join(s.TempDir(), "token.txt")
	if err := os.WriteFile(file, []byte(s.operator.next), 0o600); err != nil {
		s.Fatal(err)
	}
	return &leak{
		name: "operator's token",
		revoke: func() {
			s.runTool("operator", "rotate-token", "sandbox", file)
			s.operator.ended.Store(true)
		},
		inUse: func() bool {
			before := s.operator.leakedUses.Load()
			s.charge()
			return s.operator.leakedUses.Load() > before
		},
		remains: "the operator ends the old token; until then it accepts that from every caller",
	}
}

func (s *leakStory) merchantToken() *leak {
	leaked := s.info.SecondMerchant
	return &leak{
		name: "merchant's token",
		revoke: func() {
			s.runTool("token", "rotate", leaked.Merchant, "--overlap", "0s")
		},
		inUse:   func() bool { return s.functionsAccepting(leaked.AccessToken) > 0 },
		remains: "the merchant installs its new token",
	}
}

// checkNewRequests requests a token and a payment. They are 503 for less than a minute, until the next keys sign.
func (s *leakStory) checkNewRequests() {
	s.Helper()
	token, _ := s.tryToGetToken()
	_, payment, _ := s.tryToPay()
	for name, code := range map[string]int{"token": token, "payment": payment} {
		switch {
		case code == http.StatusServiceUnavailable:
			if s.refused[name].from.IsZero() {
				s.refused[name] = window{time.Now(), time.Now()}
			}
			s.refused[name] = window{s.refused[name].from, time.Now()}
		case code != http.StatusOK && code != http.StatusCreated && code != http.StatusBadGateway:
			s.Errorf("%s: %d, want to pass or 503", name, code)
		}
	}
}

// checkSuccessors checks that what replaced the leaked credentials is in use, and that nothing else ended.
func (s *leakStory) checkSuccessors() {
	for name, token := range map[string]string{
		"a new token": s.shortLivedToken(), "the long-lived token of another merchant": s.info.AccessToken,
	} {
		if count := s.functionsAccepting(token); count != len(tokenFunctions()) {
			s.Errorf("%s: accepted by %d functions, want %d", name, count, len(tokenFunctions()))
		}
	}
	var replaced struct {
		Secret string `json:"webhook_secret"`
	}
	if text := s.runTool("--json", "webhook-secret", "show", s.info.Merchant); json.Unmarshal(text, &replaced) != nil {
		s.Errorf("no new webhook secret: %d bytes", len(text))
	}
	if !signedWith(s.T, s.notifyAgain(), replaced.Secret) {
		s.Error("the notification is not signed with the new secret")
	}
	before := s.operator.nextUses.Load()
	s.pay()
	if s.operator.nextUses.Load() == before {
		s.Error("the operator does not get the new token")
	}
}
