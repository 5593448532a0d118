package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/strictjson"
)

// equal reports a broken rule with the difference between the values.
func equal(t testing.TB, rule string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", rule, diff)
	}
}

// contains reports the texts that are missing in a longer one.
func contains(t testing.TB, rule, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", rule, want, text)
		}
	}
}

func checkSummary(t testing.TB, rule string, response testResponse, want string) {
	t.Helper()
	equal(t, rule, response.summary(), want)
}

func testPageTexts(t testing.TB) map[string]pageText {
	t.Helper()
	texts, err := parsePageTexts()
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// testSandbox is a sandbox behind a real server, with a fake clock and an inbox.
type testSandbox struct {
	*testing.T
	sandbox *Sandbox
	clock   *fakeClock
	inbox   *inbox
	url     string
	client  *http.Client
	log     *strings.Builder
}

// startSandbox runs a sandbox over a folder ("": memory); the clock and the inbox may be those of an earlier one.
func startSandbox(t *testing.T, dir string, clock *fakeClock, in *inbox, seed byte,
	changes ...func(*Config)) *testSandbox {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	var mu sync.Mutex
	log := &strings.Builder{}
	config := Config{
		Dir: dir, Tokens: []string{"current", "previous"}, BaseURL: "http://" + server.Listener.Addr().String(),
		Now: clock.Now, After: clock.After, Rand: rand.NewChaCha8([32]byte{seed}),
		Logf: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(log, format+"\n", args...)
		},
	}
	for _, change := range changes {
		change(&config)
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = s.Handler()
	server.Start()
	r := &testSandbox{T: t, sandbox: s, clock: clock, inbox: in, url: server.URL, log: log, client: &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	t.Cleanup(func() {
		equal(t, "error of Close", s.Close(), nil)
		r.client.CloseIdleConnections()
		server.Close()
	})
	return r
}

func newTestSandbox(t *testing.T, changes ...func(*Config)) *testSandbox {
	return startSandbox(t, "", newFakeClock(), newInbox(t), 1, changes...)
}

// testResponse is a response, or cut if the connection was closed before it.
type testResponse struct {
	status int
	header http.Header
	body   string
	cut    bool
}

// summary is the status and the message id of a requestError, or "cut".
func (g testResponse) summary() string {
	if g.cut {
		return "cut"
	}
	text := fmt.Sprint(g.status)
	if _, after, ok := strings.Cut(g.body, `"messageId":"`); ok {
		id, _, _ := strings.Cut(after, `"`)
		text += " " + id
	}
	return text
}

func (r *testSandbox) do(method, path, body string, headers map[string]string) testResponse {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for name, value := range headers {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	httpResponse, err := r.client.Do(request)
	if err != nil {
		return testResponse{cut: true}
	}
	defer httpResponse.Body.Close()
	response, err := io.ReadAll(httpResponse.Body)
	if err != nil {
		return testResponse{cut: true}
	}
	return testResponse{status: httpResponse.StatusCode, header: httpResponse.Header, body: string(response)}
}

// startCall starts a call with a late response, and returns when the sandbox has set its timer.
func (r *testSandbox) startCall(f func() testResponse) <-chan testResponse {
	response, before := make(chan testResponse, 1), r.clock.count()
	go func() { response <- f() }()
	r.clock.await(before)
	return response
}

func withHeaders(base map[string]string, changes ...string) map[string]string {
	headers := maps.Clone(base)
	for pair := range slices.Chunk(changes, 2) {
		headers[pair[0]] = pair[1]
	}
	return headers
}

var chargeHeaders = map[string]string{
	"Authorization": "Bearer current", "Content-Type": "application/json", "gw-token": "t", "gw-alias": "alias-5555",
}

const chargePath = "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"

func chargeJSON(correlator, reference, amount string) string {
	return `{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{"chargingInformation":{` +
		`"amount":` + amount + `,"currency":"XOF","description":"Ring tone"},` +
		`"chargingMetaData":{"onBehalfOf":"Shop","serviceId":"S1"}},` +
		`"transactionOperationStatus":"Charged","referenceCode":"` + reference + `","clientCorrelator":"` + correlator +
		`"}}`
}

func (r *testSandbox) charge(key, digits string) testResponse {
	r.Helper()
	return r.do("POST", chargePath, chargeJSON(key, "ref-1", `"500"`),
		withHeaders(chargeHeaders, "gw-alias", "alias-"+digits))
}

var payHeaders = map[string]string{
	"Authorization": "Bearer previous", "Content-Type": "application/json; charset=utf-8",
	"mno-name": "Orange", "country-code": "ci", "channel": "tpe", "lang": "fr",
}

func (r *testSandbox) payJSON(order, msisdn, otp string) string {
	body := map[string]any{
		"currency": "XOF", "order_id": order, "amount": json.Number("1500.00"), "reference": "Shop <Ltd>",
		"return_url": "https://shop.example/back?a=1&b=2", "cancel_url": "https://shop.example/cancel",
		"notif_url": r.inbox.server.URL + "/callbacks", "state": "a%20<b>&é",
	}
	if msisdn != "" {
		body["user_msisdn"] = msisdn
	}
	if otp != "" {
		body["otp_code"] = otp
	}
	return string(strictjson.Marshal(body))
}

func (r *testSandbox) pay(channel, order, msisdn string) testResponse {
	r.Helper()
	return r.do("POST", "/mobilemoney/v1", r.payJSON(order, msisdn, ""), withHeaders(payHeaders, "channel", channel))
}

var smsHeaders = map[string]string{
	"Authorization": "Bearer current", "Content-Type": "application/json", "gw-token": "t", "gw-alias": "a",
	"X-OAPI-Application-Id": "app", "X-OAPI-Contact-Id": "contact", "X-OAPI-Resource-Type": "SMS_OSM",
	"X-Operator-MCO": "OCI", "X-Operator-ISE2": "+2250700005555",
}

const smsPath = "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"

func (r *testSandbox) smsJSON(correlator, message string) string {
	return `{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],"senderAddress":"tel:+2250000",` +
		`"outboundSMSTextMessage":{"message":"` + message + `"},"senderName":"Shop","clientCorrelator":"` + correlator +
		`","receiptRequest":{"notifyURL":"` + r.inbox.server.URL + `/receipts","callbackData":"c1"}}}`
}

func (r *testSandbox) sms(key, digits string) testResponse {
	r.Helper()
	return r.do("POST", smsPath, r.smsJSON(key, "Hello%20you"),
		withHeaders(smsHeaders, "X-Operator-ISE2", "+225070000"+digits))
}

func (r *testSandbox) effects(key string) []Effect {
	r.Helper()
	var effects []Effect
	r.control("GET /effects?key="+key, "", 200, &effects)
	return effects
}

func (r *testSandbox) checkEffects(key string, count int) {
	r.Helper()
	if effects := r.effects(key); len(effects) != count {
		r.Errorf("%d effects under %s, want %d: %+v", len(effects), key, count, effects)
	}
}

// checkCallbacks compares the statuses of all callbacks so far, in order.
func (r *testSandbox) checkCallbacks(want string) {
	r.Helper()
	equal(r, "callbacks", r.inbox.statuses(r.T), want)
}

// checkPage checks a response's status and a text in its body.
func (r *testSandbox) checkPage(rule string, page testResponse, status int, text string) {
	r.Helper()
	equal(r, rule+": status", page.status, status)
	contains(r, rule, page.body, text)
}

func (r *testSandbox) close() {
	r.Helper()
	if err := r.sandbox.Close(); err != nil {
		r.Fatal(err)
	}
}

func (r *testSandbox) lookup(order string) testResponse {
	r.Helper()
	return r.do("GET", "/mobilemoney/v1/getStatus/"+order, "", payHeaders)
}

func (r *testSandbox) status(order string) string {
	r.Helper()
	response := r.lookup(order)
	var body paymentPayload
	if response.status == 200 {
		if err := json.Unmarshal([]byte(response.body), &body); err != nil {
			r.Fatal(err)
		}
		return body.Status
	}
	return response.summary()
}

// control makes a call of the control port, such as "GET /effects", and decodes its response into v unless v is nil.
func (r *testSandbox) control(call, body string, status int, v any) {
	r.Helper()
	method, path, _ := strings.Cut(call, " ")
	response := r.do(method, "/sandbox/v1"+path, body, nil)
	if response.status != status {
		r.Fatalf("%s %s: %d %s, want %d", call, body, response.status, response.body, status)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal([]byte(response.body), v); err != nil {
		r.Fatalf("%s: %v in %s", call, err, response.body)
	}
}

func (r *testSandbox) transactions(key string) []transactionView {
	r.Helper()
	var views []transactionView
	r.control("GET /transactions?key="+key, "", 200, &views)
	return views
}
