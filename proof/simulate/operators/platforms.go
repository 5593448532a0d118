package operators

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/operator"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/platforms"
)

// platformHost serves the stubs of all platforms. platformBaseURL is the gateway's address in their histories: one of
// them takes only short callback addresses.
const (
	platformHost    = "platforms.operator.example.net"
	platformBaseURL = "https://gateway.example.net"
)

// Platforms are the stubs of the real operators' platforms. An order has one effect over all of them.
type Platforms struct {
	*gateway
	Messages *Messages
	// IsSmooth is true in a history without faults.
	IsSmooth bool
	// SlowLookups is how long the response to a lookup takes.
	SlowLookups time.Duration

	stubs      stubs
	requests   *requests
	rate       int  // of faults, per mille
	hasSandbox bool // else charges and SMS go to orange, whose SMS have a platform here
}

// newPlatforms makes the platforms, and stores their credentials. rate is that of faults, per mille.
func newPlatforms(g *gateway, rate int, isSmooth bool) *Platforms {
	m := newMessages()
	p := &Platforms{gateway: g, Messages: m, IsSmooth: isSmooth, requests: newRequests(g, m), rate: rate}
	g.BaseURL = platformBaseURL
	p.stubs.config = platforms.Config{
		URL: "https://" + platformHost, GatewayURL: platformBaseURL, CallbackSecret: platformSecret,
		Kit: kit.Config{
			Now: time.Now, After: p.after, Rand: g.Tape, Applied: p.requests.applied,
			Client: &http.Client{Transport: &callbacks{
				g, m, rate, g.Tape.ChooseApart("platforms repeat a callback", 4) == 3,
			}},
		},
	}
	p.stubs.handler = p.stubs.config.Handler()
	p.stubs.drawQuirks(g.History)
	p.hasSandbox = g.Tape.Choose("SMS by a platform", 2) == 0
	secrets := []string{"api_key", "subscription_key", "access_token", "client_secret", "consumer_secret",
		"api_password", "callback_secret", "merchant_key", "private_key"}
	for _, accounts := range p.stubs.config.Accounts() {
		for _, account := range accounts {
			for _, field := range secrets {
				if text, found := account[field].(string); found {
					g.observer.Confide(text)
				}
			}
		}
	}
	p.SetRoutes(history.Start.Add(-time.Hour), false)
	return p
}

// SetRoutes stores the operators' credentials with the accounts and routes of the platforms. After a change of routes,
// pawaPay serves what MTN MoMo served before.
func (p *Platforms) SetRoutes(at time.Time, rerouted bool) {
	all := fixture.OperatorAccounts(fixture.OperatorToken)
	for name, accounts := range p.stubs.config.Accounts() {
		current := slices.Sorted(maps.Keys(accounts))[0]
		if name == "pawapay" || name == SMSPlatform {
			delete(accounts[current], "approved_names")
			accounts[otherAccount] = maps.Clone(accounts[current])
			accounts[otherAccount]["callback_secret"] = otherSecret
		}
		all[name] = map[string]any{"current": current, "accounts": accounts}
	}
	routes := platforms.Routes()
	for i := range routes["mtn"] {
		if rerouted {
			routes["mtn"][i].To = "pawapay/stub"
		}
	}
	if !p.hasSandbox {
		delete(all, "sandbox")
		routes["sandbox"] = routes["mtn"][:1] // a route that serves nothing
	}
	all["routes"] = routes
	p.Secrets.Set(at, fixture.OperatorSecret, fixture.Must(json.Marshal(all)))
}

// after runs a timer of a stub as an event of the kernel.
func (p *Platforms) after(wait time.Duration, run func()) {
	p.Kernel.At(time.Now().Add(wait), "platform", run)
}

// appliedLate is the fault of a call that reaches the platform after lateArrival: sooner than any platform's row takes
// "not found" for a proof. A platform whose "not found" proves nothing may take longer.
const (
	appliedLate     = "no response, applied late"
	lateArrival     = 5 * time.Minute
	veryLateArrival = 3 * time.Hour
)

// platformFaults are the faults of a call, each before or after its effect.
var platformFaults = []struct {
	name    string
	applied bool
	result  outside.Exchange
}{
	{"connection refused", false, outside.Exchange{Failure: outside.ConnectionRefused}},
	{"no response, not applied", false, outside.Exchange{Failure: outside.NoResponse}},
	{"no response, applied", true, outside.Exchange{Failure: outside.NoResponse}},
	{appliedLate, false, outside.Exchange{Failure: outside.NoResponse}},
	{"503, not applied", false, outside.Exchange{Status: http.StatusServiceUnavailable}},
	{"500, not applied", false, outside.Exchange{Status: http.StatusInternalServerError}},
	{"500, applied", true, outside.Exchange{Status: http.StatusInternalServerError}},
	{"429", false, outside.Exchange{Status: http.StatusTooManyRequests}},
	{"garbage, applied", true, outside.Exchange{Status: http.StatusOK, Body: []byte("<html>OK{{")}},
}

// serve passes a call to the stub, with at most one fault.
func (p *Platforms) serve(request *http.Request, body []byte) outside.Exchange {
	if !p.HappensNow("platform fault", p.rate) {
		return p.call(request, body)
	}
	at := p.Tape.Choose("kind of platform fault", len(platformFaults)+1)
	if at == len(platformFaults) {
		p.Count("platform: tokens revoked")
		p.stubs.control(http.MethodPost, rowOfPath(request.URL.Path).prefix+"/stub/v1/revoke-tokens", nil)
		return p.call(request, body)
	}
	fault := platformFaults[at]
	p.Count("platform: " + fault.name)
	p.Logf("platform: %s %s: %s", request.Method, request.URL.Path, fault.name)
	if fault.name == appliedLate {
		late, wait := request.Clone(context.Background()), lateArrival
		capabilities, _ := operator.FindCapabilities(rowOfPath(request.URL.Path).Name)
		if capabilities.NeverSentAfter == 0 && p.Tape.Choose("lateness of the call", 2) == 1 {
			wait = veryLateArrival
		}
		p.Kernel.At(time.Now().Add(wait), "late call", func() { p.call(late, body) })
	}
	if fault.applied {
		p.call(request, body)
	}
	return fault.result
}

// call passes a call to the stub without a fault.
func (p *Platforms) call(request *http.Request, body []byte) outside.Exchange {
	row := rowOfPath(request.URL.Path)
	switch isOrder := request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, row.payPath); {
	case isOrder && row.Name == SMSPlatform:
		p.Messages.begin(body)
		p.failBinding()
	case isOrder:
		p.requests.remember(row, request.Header.Get("X-Reference-Id"), body)
	}
	served := request.Clone(request.Context())
	served.Header = http.Header{} // a server reads the names in their canonical spelling
	for name, values := range request.Header {
		served.Header[http.CanonicalHeaderKey(name)] = values
	}
	served.Body = io.NopCloser(bytes.NewReader(body))
	served.Header.Set("Content-Length", fmt.Sprint(len(body)))
	recorder := p.stubs.do(served)
	p.Logf("platform: %s %s: %d", request.Method, request.URL.Path, recorder.Code)
	// Orange Web Payment responds 404 to the token of another account.
	isForeign := recorder.Code == http.StatusNotFound && row.Name == "orange-webpay"
	if p.IsSmooth && (isForeign || recorder.Code == http.StatusUnauthorized) {
		p.observer.TokenRefused(row.Name, request.URL.Path, recorder.Body.String())
	}
	response := outside.Exchange{Status: recorder.Code, Header: recorder.Header(), Body: recorder.Body.Bytes()}
	if deployment.CallOf(request) == deployment.CallLookup {
		p.observer.LookedUp(row.Name, served.Header.Get("X-Target-Environment"))
		response.Delay = p.SlowLookups
	}
	return response
}

// failBinding may make the ledger's table read-only after an SMS. That is too long for the write that binds it to the
// platform's id, and too short for the write of its outcome.
func (p *Platforms) failBinding() {
	if p.rate > 0 && p.FaultsOn() && p.Tape.ChooseApart("a failed binding", 4) == 3 {
		p.Count("platform: a message is not bound")
		p.ReadOnly = outside.Window{From: time.Now(), To: time.Now().Add(300 * time.Millisecond)}
	}
}

// visit lets a payer use a page that the merchant got in a response: pay, refuse, or cancel.
func (p *Platforms) visit(payer, body string) {
	page := outside.ParseDocument([]byte(body)).Text("payment_url")
	address, found := strings.CutPrefix(page, "https://"+platformHost)
	if !found {
		return
	}
	wait := tape.Draw(p.Tape, "time at the page", 10*time.Second, 5*time.Minute, time.Hour)
	action := tape.Draw(p.Tape, "act at the page", "confirm", "cancel", "close")
	payer = cmp.Or(payer,
		tape.Draw(p.Tape, "payer at the page", "2250700000001", "2250700001001", "2250700001003", "2250700001007"))
	form := url.Values{"action": {action}, "msisdn": {payer}, "code": {"123456"}}.Encode()
	p.Kernel.At(time.Now().Add(wait), "page", func() {
		visited := httptest.NewRequestWithContext(context.Background(), http.MethodPost, address,
			strings.NewReader(form))
		p.Logf("platform: the payer visits a page (%s): %d", action, p.stubs.do(visited).Code)
	})
}
