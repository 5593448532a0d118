package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/world/operators/kit"
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

// clock runs due timers in the goroutine that advances it, so that they have finished when Advance returns.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []timer
}

type timer struct {
	at time.Time
	f  func()
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) After(d time.Duration, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, timer{c.now.Add(d), f})
	slices.SortStableFunc(c.timers, func(a, b timer) int { return a.at.Compare(b.at) })
}

// Advance moves the clock and runs the timers on the way in their order.
func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	target := c.now.Add(d)
	for len(c.timers) > 0 && !c.timers[0].at.After(target) {
		next := c.timers[0]
		c.timers, c.now = c.timers[1:], next.at
		c.mu.Unlock()
		next.f()
		c.mu.Lock()
	}
	c.now = target
}

const inboxURL = "http://merchant.test"

// inbox receives callbacks. It responds with responseStatuses in turn, then with 200.
type inbox struct {
	mu               sync.Mutex
	bodies, urls     []string
	responseStatuses []int
	isDown           bool
	before           func() // runs while a callback is being received
}

func (in *inbox) post(c kit.Outgoing, done func(status int, err error)) {
	in.mu.Lock()
	in.bodies, in.urls = append(in.bodies, string(c.Body)), append(in.urls, c.URL)
	status := http.StatusOK
	if len(in.responseStatuses) > 0 {
		status, in.responseStatuses = in.responseStatuses[0], in.responseStatuses[1:]
	}
	in.mu.Unlock()
	if in.before != nil {
		in.before()
	}
	if in.isDown {
		done(0, errors.New("refused"))
		return
	}
	done(status, nil)
}

// statusPattern finds the status of a payment's callback or of a delivery receipt.
var statusPattern = regexp.MustCompile(`"(?:status|deliveryStatus)":"(\w+)"`)

// statuses are the statuses of the received callbacks, in order.
func (in *inbox) statuses(t *testing.T) string {
	t.Helper()
	var texts []string
	for _, body := range in.bodies {
		found := statusPattern.FindAllStringSubmatch(body, -1)
		if len(found) != 1 || !json.Valid([]byte(body)) {
			t.Fatalf("callback %q has %d statuses, want one", body, len(found))
		}
		texts = append(texts, found[0][1])
	}
	return strings.Join(texts, " ")
}

// testSandbox is a sandbox in virtual time, with an inbox.
type testSandbox struct {
	*testing.T
	sandbox *Sandbox
	clock   *clock
	inbox   *inbox
	url     string
	log     *strings.Builder
	delays  []time.Duration // of the responses that came late
}

// startSandbox runs a sandbox over a folder ("": memory); the clock and the inbox may be those of an earlier one.
func startSandbox(t *testing.T, dir string, c *clock, in *inbox, seed byte, changes ...func(*Config)) *testSandbox {
	t.Helper()
	var mu sync.Mutex
	r := &testSandbox{T: t, clock: c, inbox: in, url: "http://sandbox.test", log: &strings.Builder{}}
	config := Config{
		Dir: dir, Tokens: []string{"current", "previous"}, BaseURL: r.url,
		Config: kit.Config{Now: c.Now, After: c.After, Rand: rand.NewChaCha8([32]byte{seed}), Post: in.post},
	}
	config.Logf = func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(r.log, format+"\n", args...)
	}
	for _, change := range changes {
		change(&config)
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	r.sandbox = s
	t.Cleanup(func() { equal(t, "error of Close", s.Close(), nil) })
	return r
}

func newTestSandbox(t *testing.T, changes ...func(*Config)) *testSandbox {
	return startSandbox(t, "", newClock(), &inbox{}, 1, changes...)
}

// testResponse is a response, or cut if the connection was closed before it.
type testResponse struct {
	status int
	header http.Header
	body   string
	cut    bool
	late   func() kit.Response
}

func newTestResponse(r kit.Response) testResponse {
	header := http.Header{}
	for name, value := range r.Header {
		header.Set(name, value)
	}
	return testResponse{r.Status, header, string(r.Body), r.Close, r.Late}
}

// arrived is a late response when its time has come.
func (g testResponse) arrived() testResponse {
	if g.late == nil {
		return g
	}
	return newTestResponse(g.late())
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

// do makes a call. It does not wait for a late response.
func (r *testSandbox) do(method, path, body string, headers map[string]string) testResponse {
	r.Helper()
	request := httptest.NewRequest(method, r.url+path, nil)
	for name, value := range headers {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response := r.sandbox.Serve(request, []byte(body))
	r.sandbox.Deliver(response, func() {})
	if response.Delay > 0 {
		r.delays = append(r.delays, response.Delay)
	}
	return newTestResponse(response)
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

func payJSON(order, msisdn, otp string) string {
	body := map[string]any{
		"currency": "XOF", "order_id": order, "amount": json.Number("1500.00"), "reference": "Shop <Ltd>",
		"return_url": "https://shop.example/back?a=1&b=2", "cancel_url": "https://shop.example/cancel",
		"notif_url": inboxURL + "/callbacks", "state": "a%20<b>&é",
	}
	if msisdn != "" {
		body["user_msisdn"] = msisdn
	}
	if otp != "" {
		body["otp_code"] = otp
	}
	return string(marshal(body))
}

func (r *testSandbox) pay(channel, order, msisdn string) testResponse {
	r.Helper()
	return r.do("POST", "/mobilemoney/v1", payJSON(order, msisdn, ""), withHeaders(payHeaders, "channel", channel))
}

var smsHeaders = map[string]string{
	"Authorization": "Bearer current", "Content-Type": "application/json", "gw-token": "t", "gw-alias": "a",
	"X-OAPI-Application-Id": "app", "X-OAPI-Contact-Id": "contact", "X-OAPI-Resource-Type": "SMS_OSM",
	"X-Operator-MCO": "OCI", "X-Operator-ISE2": "+2250700005555",
}

const smsPath = "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"

func smsJSON(correlator, message string) string {
	return `{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],"senderAddress":"tel:+2250000",` +
		`"outboundSMSTextMessage":{"message":"` + message + `"},"senderName":"Shop","clientCorrelator":"` + correlator +
		`","receiptRequest":{"notifyURL":"` + inboxURL + `/receipts","callbackData":"c1"}}}`
}

func (r *testSandbox) sms(key, digits string) testResponse {
	r.Helper()
	return r.do("POST", smsPath, smsJSON(key, "Hello%20you"),
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
