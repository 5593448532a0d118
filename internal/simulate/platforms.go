package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"mobilegateway/internal/operatorstub"
	"mobilegateway/internal/operatorstub/mtn"
	"mobilegateway/internal/simulate/outside"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

const (
	mtnPlatform = "mtn-momo"
	mtnPayPath  = "/collection/v1_0/requesttopay"
)

// platform is the stub of a real operator's platform, which runs inside the kernel: it works in calls and timers only.
type platform struct {
	world    *World
	name     string
	handler  http.Handler
	rate     int                       // of faults, per mille
	sent     map[string]outside.Effect // what was requested, by upstream key
	bodies   map[string][]byte         // the first ones, by upstream key
	orders   map[string]string         // the merchant's order_id, by upstream key
	effects  map[string]outside.Effect // by upstream key
	byOrder  map[string]int            // number of effects by order_id
	reported int                       // effects that were reported to the checker
}

// addMTN adds MTN MoMo to a world.
func (w *World) addMTN(rate int) {
	p := &platform{
		world: w, name: mtnPlatform, rate: rate, sent: map[string]outside.Effect{}, bodies: map[string][]byte{},
		orders: map[string]string{}, effects: map[string]outside.Effect{}, byOrder: map[string]int{},
	}
	credentials := mtn.DefaultCredentials()
	p.handler = mtn.New(operatorstub.Config{
		Now: time.Now, After: p.after, Rand: &reader{w.tape}, Client: &http.Client{Transport: p},
	}, credentials).Handler()
	w.platforms = map[string]*platform{operatorHost(p.name): p}
	w.checker.addSecrets(credentials.APIKey, credentials.SubscriptionKeys[0])
	w.secrets.Set(bubbleStart.Add(-time.Hour), operatorSecret, platformCredentials(credentials))
}

// platformCredentials are the operators' credentials with the accounts and routes of MTN MoMo.
func platformCredentials(c mtn.Credentials) []byte {
	var all map[string]any
	if err := json.Unmarshal(operatorCredentials(operatorToken), &all); err != nil {
		panic(err) // they are ours
	}
	account := func(environment string) map[string]any {
		return map[string]any{
			"base_url": "https://" + operatorHost(mtnPlatform), "api_user": c.APIUser, "api_key": c.APIKey,
			"subscription_key": c.SubscriptionKeys[0], "target_environment": environment,
		}
	}
	all[mtnPlatform] = map[string]any{"current": "ci", "accounts": map[string]any{
		"ci": account("mtnivorycoast"), "cm": account("mtncameroon"),
	}}
	all["routes"] = map[string][]operator.Route{"mtn": {
		{Country: "CI", Operation: operator.AccountPay, To: mtnPlatform + "/ci"},
		{Country: "CM", Operation: operator.AccountPay, To: mtnPlatform + "/cm"},
	}}
	encoded, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return encoded
}

// after runs a timer of the stub as an event of the kernel.
func (p *platform) after(wait time.Duration, run func()) {
	p.world.kernel.At(time.Now().Add(wait), p.name, func() {
		run()
		p.reportEffects()
	})
}

// platformFaults are the faults of a call, each before or after its effect.
var platformFaults = []struct {
	name    string
	applied bool
	result  exchange
}{
	{"connection refused", false, exchange{Failure: outside.ConnectionRefused}},
	{"no response, not applied", false, exchange{Failure: outside.NoResponse}},
	{"no response, applied", true, exchange{Failure: outside.NoResponse}},
	{"503, not applied", false, exchange{Status: http.StatusServiceUnavailable}},
	{"500, not applied", false, exchange{Status: http.StatusInternalServerError}},
	{"500, applied", true, exchange{Status: http.StatusInternalServerError}},
	{"429", false, exchange{Status: http.StatusTooManyRequests}},
	{"garbage, applied", true, exchange{Status: http.StatusOK, Body: []byte("<html>OK{{")}},
}

// serve passes a call to the stub, with at most one fault.
func (p *platform) serve(request *http.Request, body []byte) exchange {
	w := p.world
	if !w.faultsOn() || !w.tape.Happens("platform fault", p.rate) {
		return p.call(request, body)
	}
	at := w.tape.Choose("kind of platform fault", len(platformFaults)+1)
	if at == len(platformFaults) {
		w.count("platform: tokens revoked")
		p.do(httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/stub/v1/revoke-tokens", nil))
		return p.call(request, body)
	}
	fault := platformFaults[at]
	w.count("platform: " + fault.name)
	w.logf("platform %s: %s %s: %s", p.name, request.Method, request.URL.Path, fault.name)
	if fault.applied {
		p.call(request, body)
	}
	return fault.result
}

// call passes a call to the stub without a fault.
func (p *platform) call(request *http.Request, body []byte) exchange {
	if request.Method == http.MethodPost && request.URL.Path == mtnPayPath {
		p.remember(request.Header.Get("X-Reference-Id"), body)
	}
	served := request.Clone(request.Context())
	served.Body = io.NopCloser(bytes.NewReader(body))
	served.Header.Set("Content-Length", fmt.Sprint(len(body)))
	recorder := p.do(served)
	p.reportEffects()
	p.world.logf("platform %s: %s %s: %d", p.name, request.Method, request.URL.Path, recorder.Code)
	return exchange{Status: recorder.Code, Header: recorder.Header(), Body: recorder.Body.Bytes()}
}

func (p *platform) do(request *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	p.handler.ServeHTTP(recorder, request)
	return recorder
}

// remember keeps what was requested under a key, and checks that a repeat has the same body (invariant 3).
func (p *platform) remember(key string, body []byte) {
	if first, found := p.bodies[key]; found {
		if !bytes.Equal(first, body) {
			p.world.checker.otherContent(outside.KindPayment, key)
		}
		return
	}
	var sent struct {
		ExternalID string `json:"externalId"`
		Amount     string `json:"amount"`
		Currency   string `json:"currency"`
		Payer      struct {
			ID string `json:"partyId"`
		} `json:"payer"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		p.world.fail("a request to %s is not JSON: %s", p.name, err)
		return
	}
	exponent := 0
	for _, country := range market.All() {
		if country.Currency == sent.Currency {
			exponent = country.Exponent
		}
	}
	minor, err := money.Parse(sent.Amount, exponent)
	if err != nil {
		p.world.fail("a request to %s has the amount %q: %s", p.name, sent.Amount, err)
		return
	}
	name, _, _ := strings.Cut(sent.ExternalID, "_")
	p.bodies[key], p.orders[key] = body, sent.ExternalID
	p.sent[key] = outside.Effect{
		Kind: outside.KindPayment, Key: key, AmountMinor: minor, Currency: sent.Currency, Merchant: name,
		MSISDN: "+" + sent.Payer.ID,
	}
}

// reportEffects passes new effects to the checker, and checks that an order has one, whatever its key is (invariant 1).
func (p *platform) reportEffects() {
	var all []operatorstub.Effect
	listed := p.do(httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/stub/v1/effects", nil))
	if err := json.Unmarshal(listed.Body.Bytes(), &all); err != nil {
		p.world.fail("the effects of %s: %s", p.name, err)
		return
	}
	for _, happened := range all[p.reported:] {
		p.reported++
		effect, order := p.sent[happened.Key], p.orders[happened.Key]
		p.byOrder[order]++
		effect.Count, effect.At, effect.LastAt = p.byOrder[order], happened.At, happened.At
		p.effects[happened.Key] = effect
		p.world.logf("platform %s: effect %d of %s", p.name, effect.Count, order)
		p.world.checker.effect(&outside.Operator{Name: p.name}, effect)
	}
}

// RoundTrip implements http.RoundTripper for the stub's callbacks. It does not wait for the gateway: no timer may.
// So it fits platforms only that call back once, whatever the response is.
func (p *platform) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	w, address := p.world, request.URL.String()
	copies := 1
	wait := time.Duration(0)
	if w.faultsOn() && w.tape.Happens("platform callback fault", p.rate) {
		copies = w.tape.Choose("copies of the callback", 3)
		wait = []time.Duration{0, time.Minute, 3 * time.Hour}[w.tape.Choose("delay of the callback", 3)]
		w.count("platform: callback lost, late or twice")
	}
	for range copies {
		w.kernel.At(time.Now().Add(wait), "platform callback", func() { p.callBack(address, body) })
	}
	return (&exchange{Status: http.StatusOK}).Result(request)
}

// callBack invokes notif. A correct callback never gets 404 (invariant 8).
func (p *platform) callBack(address string, body []byte) {
	w := p.world
	payload, err := outside.CallbackEvent(address, body)
	if err != nil {
		w.fail("%s", err)
		return
	}
	w.invoke(functionNotif, payload, func(r result) {
		if r.lost || r.err != nil {
			return
		}
		response, err := outside.ReadResponse(r.payload)
		w.logf("platform %s: the callback got %d", p.name, response.Status)
		if err != nil || response.Status == http.StatusNotFound {
			w.checker.fail(8, "a correct callback of %s got %d (%v)", p.name, response.Status, err)
		}
	})
}

// platformOf is the platform that an entry is pinned to, nil for a model.
func (w *World) platformOf(e *ledger.Entry) *platform {
	return w.platforms[operatorHost(operator.PinOf(e).Platform)]
}

// platformNumbers select the outcomes: ordinary ones, a refusal, no decision, an early callback,
// more callbacks, 503 and garbage. None is a multiple of 3, so none is on the web channel, which MTN MoMo lacks.
var platformNumbers = []int{1, 2, 4, 5, 1001, 1003, 1004, 1006, 1007, 1009, 1010}

// planPlatforms draws a history of payments by MTN MoMo.
func planPlatforms(w *World) {
	lengths := []time.Duration{10 * time.Minute, 2 * time.Hour, 30 * time.Hour, 4 * 24 * time.Hour}
	length := lengths[w.tape.Choose("length of the faults", len(lengths))]
	w.begin(length)
	w.drawRates()
	w.addMTN([]int{0, 60, 200, 400}[w.tape.Choose("rate of platform faults", 4)])
	first := w.tape.Choose("first number", len(platformNumbers))
	for place := range 1 + w.tape.Choose("orders", 3) {
		s := *w.shops[w.tape.Choose("shop", len(w.shops))]
		s.Operators, s.Countries = []string{"mtn"}, []string{"CI", "CM"}
		o := w.newOrder(&s, functionPay, platformNumbers[(first+place)%len(platformNumbers)])
		o.start = bubbleStart.Add(time.Duration(w.tape.Choose("second of the start", 60)) * time.Second)
		w.kernel.At(o.start, "order", func() { w.request(o, ownBody) })
		for range w.tape.Choose("duplicates", 3) {
			body := []int{ownBody, anotherBody}[w.tape.Choose("another body", 2)]
			wait := retryWaits[w.tape.Choose("time of the duplicate", len(retryWaits))]
			w.kernel.At(o.start.Add(wait), "duplicate", func() { w.request(o, body) })
		}
	}
}
