package simulate

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

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/platforms"
)

// platformHost serves the stubs of all platforms. platformSecret ends the addresses of their static callbacks.
// platformBaseURL is the gateway's address in their worlds: one of them takes only short callback addresses.
const (
	platformHost    = "platforms.operator.example.net"
	platformBaseURL = "https://gateway.example.net"
	platformSecret  = "0123456789abcdefSTATICSECRET0123456789"
)

// platformRow declares the wire of a platform: where its stub is, and where a payment has its facts in the body.
type platformRow struct {
	name, prefix, payPath            string
	key, upstreamKey, order          string // key is the stub's; mtn-momo has it in a header
	payer, payerPrefix, onlyCurrency string
	// reportKey is the upstream key in a static callback. success and failure are the words in a callback for a payment
	// that ended; without failure there is no such word. A callback with unconfirmed in it says no success.
	reportKey, success, failure, unconfirmed string

	isMinor bool // the amount is in minor units
	expires bool // it ends payments itself before our lifetime (invariant 1 is weaker)
}

var platformRows = []platformRow{
	{name: "mtn-momo", prefix: "/mtn", payPath: "/collection/v1_0/requesttopay", order: "externalId",
		payer: "payer.partyId", success: "SUCCESSFUL", failure: "FAILED"},
	{name: "pawapay", prefix: "/pawapay", payPath: "/v2/deposits", key: "depositId", upstreamKey: "depositId",
		order: "clientReferenceId", payer: "payer.accountDetails.phoneNumber", reportKey: "depositId",
		success: "COMPLETED", failure: "FAILED"},
	{name: "orange-cm", prefix: "/orangecm", payPath: "/omcoreapis/1.0.2/mp/pay", key: "payToken",
		upstreamKey: "orderId", order: "orderId", payer: "subscriberMsisdn", payerPrefix: "237", onlyCurrency: "XAF",
		expires: true, success: "SUCCESSFULL", failure: "FAILED", //nolint:misspell // the platform's
		unconfirmed: `"confirmtxnstatus":null`},
	{name: "wave-checkout", prefix: "/wave", payPath: "/v1/checkout/sessions", key: "client_reference",
		upstreamKey: "client_reference", order: "client_reference", payer: "restrict_payer_mobile", expires: true,
		reportKey: "data.client_reference", success: "checkout.session.completed"},
	{name: "orange-webpay", prefix: "/orangewebpay", payPath: "/webpayment", key: "order_id",
		upstreamKey: "order_id", order: "order_id", expires: true, success: "SUCCESS", failure: "FAILED"},
	{name: "flouci-checkout", prefix: "/flouci", payPath: "/generate_payment", key: "developer_tracking_id",
		upstreamKey: "developer_tracking_id", order: "developer_tracking_id", onlyCurrency: "TND", isMinor: true,
		expires: true},
	{name: smsPlatform, prefix: "/orangesms", payPath: "/requests", reportKey: "deliveryInfoNotification.callbackData"},
}

// platform is the stubs of the real operators' platforms, which run inside the kernel: they work in calls and timers
// only. All share one host, so that an order has one effect over all of them.
type platform struct {
	world    *World
	config   platforms.Config
	handler  http.Handler
	rate     int                       // of faults, per mille
	sent     map[string]outside.Effect // what was requested, by the stub's key
	bodies   map[string][]byte         // the first ones, by the stub's key
	orders   map[string]string         // the merchant's order_id, by the stub's key
	effects  map[string]outside.Effect // by upstream key
	byOrder  map[string]int            // number of effects by order_id
	reported map[string]int            // effects that were reported to the checker, by prefix
	messages messages
	// hasSandbox is false if charges and SMS go to orange, whose SMS have a platform here.
	hasSandbox bool
}

// addPlatforms adds the platforms to a world.
func (w *World) addPlatforms(rate int) {
	p := &platform{
		world: w, rate: rate, sent: map[string]outside.Effect{}, bodies: map[string][]byte{},
		orders: map[string]string{}, effects: map[string]outside.Effect{}, byOrder: map[string]int{},
		reported: map[string]int{}, messages: newMessages(),
	}
	p.config = platforms.Config{
		URL: "https://" + platformHost, GatewayURL: platformBaseURL, CallbackSecret: platformSecret,
		Kit: kit.Config{
			Now: time.Now, After: p.after, Rand: w.Tape, Client: &http.Client{Transport: p},
		},
	}
	p.handler = p.config.Handler()
	p.drawQuirks()
	w.platforms = map[string]*platform{platformHost: p}
	p.hasSandbox = w.Tape.Choose("SMS by a platform", 2) == 0
	secrets := []string{"api_key", "subscription_key", "access_token", "client_secret", "consumer_secret",
		"api_password", "callback_secret", "merchant_key", "private_key"}
	for _, accounts := range p.config.Accounts() {
		for _, account := range accounts {
			for _, field := range secrets {
				if text, found := account[field].(string); found {
					w.checker.addSecrets(text)
				}
			}
		}
	}
	w.secrets.Set(history.Start.Add(-time.Hour), operatorSecret, p.credentials(false))
}

// credentials are the operators' credentials with the accounts and routes of the platforms. After a change of routes,
// pawaPay serves what MTN MoMo served before.
func (p *platform) credentials(rerouted bool) []byte {
	all := operatorAccounts(operatorToken)
	for name, accounts := range p.config.Accounts() {
		current := slices.Sorted(maps.Keys(accounts))[0]
		if name == "pawapay" || name == smsPlatform {
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
	return must(json.Marshal(all))
}

// after runs a timer of a stub as an event of the kernel.
func (p *platform) after(wait time.Duration, run func()) {
	p.world.Kernel.At(time.Now().Add(wait), "platform", func() {
		run()
		p.reportEffects()
	})
}

// rowOf is the row of a path's platform.
func rowOf(path string) platformRow {
	return platformRows[slices.IndexFunc(platformRows, func(r platformRow) bool {
		return strings.HasPrefix(path, r.prefix+"/")
	})]
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
	result  exchange
}{
	{"connection refused", false, exchange{Failure: outside.ConnectionRefused}},
	{"no response, not applied", false, exchange{Failure: outside.NoResponse}},
	{"no response, applied", true, exchange{Failure: outside.NoResponse}},
	{appliedLate, false, exchange{Failure: outside.NoResponse}},
	{"503, not applied", false, exchange{Status: http.StatusServiceUnavailable}},
	{"500, not applied", false, exchange{Status: http.StatusInternalServerError}},
	{"500, applied", true, exchange{Status: http.StatusInternalServerError}},
	{"429", false, exchange{Status: http.StatusTooManyRequests}},
	{"garbage, applied", true, exchange{Status: http.StatusOK, Body: []byte("<html>OK{{")}},
}

// serve passes a call to the stub, with at most one fault.
func (p *platform) serve(request *http.Request, body []byte) exchange {
	w := p.world
	if !w.FaultsOn() || !w.Tape.Happens("platform fault", p.rate) {
		return p.call(request, body)
	}
	at := w.Tape.Choose("kind of platform fault", len(platformFaults)+1)
	if at == len(platformFaults) {
		w.Count("platform: tokens revoked")
		p.control(http.MethodPost, rowOf(request.URL.Path).prefix+"/stub/v1/revoke-tokens", nil)
		return p.call(request, body)
	}
	fault := platformFaults[at]
	w.Count("platform: " + fault.name)
	w.Logf("platform: %s %s: %s", request.Method, request.URL.Path, fault.name)
	if fault.name == appliedLate {
		late, wait := request.Clone(context.Background()), lateArrival
		capabilities, _ := operator.FindCapabilities(rowOf(request.URL.Path).name)
		if capabilities.NotFound != operator.NotFoundNeverSent && w.Tape.Choose("lateness of the call", 2) == 1 {
			wait = veryLateArrival
		}
		w.Kernel.At(time.Now().Add(wait), "late call", func() { p.call(late, body) })
	}
	if fault.applied {
		p.call(request, body)
	}
	return fault.result
}

// call passes a call to the stub without a fault.
func (p *platform) call(request *http.Request, body []byte) exchange {
	row := rowOf(request.URL.Path)
	switch isOrder := request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, row.payPath); {
	case isOrder && row.name == smsPlatform:
		p.messages.begin(p.world, body)
	case isOrder:
		p.remember(row, request.Header.Get("X-Reference-Id"), body)
	}
	served := request.Clone(request.Context())
	served.Header = http.Header{} // a server reads the names in their canonical spelling
	for name, values := range request.Header {
		served.Header[http.CanonicalHeaderKey(name)] = values
	}
	served.Body = io.NopCloser(bytes.NewReader(body))
	served.Header.Set("Content-Length", fmt.Sprint(len(body)))
	recorder := p.do(served)
	p.reportEffects()
	p.world.Logf("platform: %s %s: %d", request.Method, request.URL.Path, recorder.Code)
	// Orange Web Payment responds 404 to the token of another account.
	isForeign := recorder.Code == http.StatusNotFound && row.name == "orange-webpay"
	if p.world.isSmooth && (isForeign || recorder.Code == http.StatusUnauthorized) {
		p.world.checker.fail(6, "%s refused the token of %s, which has expired or is another account's: %s", row.name,
			request.URL.Path, recorder.Body)
	}
	return exchange{Status: recorder.Code, Header: recorder.Header(), Body: recorder.Body.Bytes()}
}

// control makes a request to a control path of a stub.
func (p *platform) control(method, path string, body []byte) []byte {
	request := httptest.NewRequestWithContext(context.Background(), method, path, bytes.NewReader(body))
	return p.do(request).Body.Bytes()
}

func (p *platform) do(request *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	p.handler.ServeHTTP(recorder, request)
	return recorder
}

// remember keeps what was requested under a key, and checks that a repeat has the same body (invariant 3).
func (p *platform) remember(row platformRow, reference string, body []byte) {
	text := fieldsOf(body)
	key, upstreamKey, currency := reference, reference, cmp.Or(row.onlyCurrency, text("currency"))
	if row.key != "" {
		key, upstreamKey = text(row.key), text(row.upstreamKey)
	}
	if first, found := p.bodies[row.prefix+key]; found {
		if !bytes.Equal(first, body) {
			p.world.checker.otherContent(outside.KindPayment, key)
		}
		return
	}
	exponent := 0
	for _, country := range market.All() {
		if country.Currency == currency && !row.isMinor {
			exponent = country.Exponent
		}
	}
	minor, err := money.Parse(text("amount"), exponent)
	if err != nil {
		p.world.Fail("a request to %s has the amount %q: %s", row.name, text("amount"), err)
		return
	}
	order, payer := text(row.order), strings.TrimPrefix(text(row.payer), "+")
	if payer != "" {
		payer = "+" + row.payerPrefix + payer
	}
	name, _, _ := strings.Cut(order, "_")
	p.bodies[row.prefix+key], p.orders[row.prefix+key] = body, order
	p.sent[row.prefix+key] = outside.Effect{
		Kind: outside.KindPayment, Key: upstreamKey, AmountMinor: minor, Currency: currency, Merchant: name,
		MSISDN: payer,
	}
}

// fieldsOf returns a reader of a JSON object's texts and numbers by their paths.
func fieldsOf(body []byte) func(path string) string {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	_ = decoder.Decode(&fields) // a stub refuses what is not JSON
	return func(path string) string {
		var value any = fields
		for part := range strings.SplitSeq(path, ".") {
			object, _ := value.(map[string]any)
			value = object[part]
		}
		if value == nil {
			return ""
		}
		return fmt.Sprint(value)
	}
}

// reportEffects passes new effects to the checker, and checks that an order has one under all its keys (invariant 1).
func (p *platform) reportEffects() {
	for _, row := range platformRows {
		var all []kit.Effect
		if err := json.Unmarshal(p.control(http.MethodGet, row.prefix+"/stub/v1/effects", nil), &all); err != nil {
			p.world.Fail("the effects of %s: %s", row.name, err)
			return
		}
		for _, happened := range all[p.reported[row.prefix]:] {
			p.reported[row.prefix]++
			p.reportEffect(row, happened)
		}
	}
}

func (p *platform) reportEffect(row platformRow, happened kit.Effect) {
	checker := p.world.checker
	effect, order := p.sent[row.prefix+happened.Key], p.orders[row.prefix+happened.Key]
	if row.name == smsPlatform {
		effect, order = p.messages.sent(p.world, happened.Key)
	}
	p.byOrder[order]++
	effect.Count, effect.At, effect.LastAt = p.byOrder[order], happened.At, happened.At
	e := checker.entries[checker.byUpstream[effect.Kind+" "+effect.Key]]
	if e != nil && effect.MSISDN == "" {
		effect.MSISDN = e.Request.MSISDN // the payer paid on a page
	}
	p.effects[effect.Key] = effect
	p.world.Logf("platform %s: effect %d of %s", row.name, effect.Count, order)
	checker.effect(&outside.Operator{Name: row.name}, effect)
}

// visit lets the payer of an order use a page that the merchant got: pay, refuse, or cancel.
func (p *platform) visit(o *order, body string) {
	address, found := strings.CutPrefix(fieldsOf([]byte(body))("payment_url"), "https://"+platformHost)
	if !found {
		return
	}
	w := p.world
	wait := tape.Draw(w.Tape, "time at the page", 10*time.Second, 5*time.Minute, time.Hour)
	action := tape.Draw(w.Tape, "act at the page", "confirm", "cancel", "close")
	payer := cmp.Or(o.wanted.Payer,
		tape.Draw(w.Tape, "payer at the page", "2250700000001", "2250700001001", "2250700001003", "2250700001007"))
	form := url.Values{"action": {action}, "msisdn": {payer}, "code": {"123456"}}.Encode()
	w.Kernel.At(time.Now().Add(wait), "page", func() {
		visited := httptest.NewRequestWithContext(context.Background(), http.MethodPost, address,
			strings.NewReader(form))
		w.Logf("platform: the payer visits a page (%s): %d", action, p.do(visited).Code)
		p.reportEffects()
	})
}

// platformOf is the stubs of the platform that an entry is pinned to, nil for a model.
func (w *World) platformOf(e *ledger.Entry) *platform {
	if _, found := platformRowOf(e); !found {
		return nil
	}
	return w.platforms[platformHost]
}

// platformRowOf is the row of the platform that an entry is pinned to.
func platformRowOf(e *ledger.Entry) (platformRow, bool) {
	at := slices.IndexFunc(platformRows, func(r platformRow) bool { return r.name == operator.PinOf(e).Platform })
	if at < 0 {
		return platformRow{}, false
	}
	return platformRows[at], true
}
