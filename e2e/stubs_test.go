package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/proof/kits/localtest"
)

// stubWait bounds the wait for a payment's end at the speed of TestStubs.
const stubWait = 90 * time.Second

// stubEnd is the end of a payment: the response to the first request, the status, and whether money moved.
type stubEnd struct {
	response int
	status   string
	effects  int
}

// stubPlatform is an operator's platform behind its stub. ends has the ends that differ from those of stubCases.
type stubPlatform struct {
	prefix, operator, country, channel, currency string
	numbers                                      string // the payer's number without its last four digits
	pageNumbers                                  string // the number is typed on the page only
	otp                                          string
	only                                         string // the stories; "" for all
	ends                                         map[string]stubEnd
}

// approvals are the ends where the operator reports that the payer refused. A 503 is never sent again. deposits are
// those where the operator's rejection proves that nothing was applied.
var (
	approvals = map[string]stubEnd{
		"1001": {http.StatusCreated, "cancelled", 0}, "1009": {http.StatusCreated, "pending", 0},
	}
	deposits = map[string]stubEnd{
		"1001": approvals["1001"], "1009": {http.StatusServiceUnavailable, "successful", 1},
	}
)

// openSessions are the ends where a payer whose payment failed may try again for 30 minutes.
var openSessions = map[string]stubEnd{
	"1001": {http.StatusCreated, "pending", 0}, "1002": {http.StatusCreated, "pending", 0},
	"1005": {http.StatusGatewayTimeout, "successful", 1},
	"1009": {http.StatusGatewayTimeout, "successful", 1}, "1010": {http.StatusGatewayTimeout, "successful", 1},
}

// someStories are enough where another country of the platform has all.
const someStories = "2000 1001 1005"

var stubPlatforms = []stubPlatform{
	{prefix: "mtn", operator: "mtn", country: "CI", channel: "ussd", currency: "XOF", numbers: "+225050000",
		ends: approvals},
	{prefix: "mtn", operator: "mtn", country: "CM", channel: "tpe", currency: "XAF", numbers: "+23767000",
		ends: approvals},
	{prefix: "pawapay", operator: "moov", country: "BF", channel: "ussd", currency: "XOF", numbers: "+2267000",
		ends: deposits},
	{prefix: "pawapay", operator: "airtel", country: "CD", channel: "ussd", currency: "USD", numbers: "+24397000",
		ends: deposits},
	{prefix: "pawapay", operator: "free", country: "SN", channel: "tpe", currency: "XOF", numbers: "+22176000",
		ends: deposits},
	{prefix: "orangecm", operator: "orange", country: "CM", channel: "ussd", currency: "XAF", numbers: "+23769000",
		ends: map[string]stubEnd{
			"1002": {http.StatusForbidden, "failed", 0}, // refused at once
			"1009": approvals["1009"],
		}},
	{prefix: "wave", operator: "wave", country: "SN", channel: "web", currency: "XOF", numbers: "+22177000",
		ends: openSessions},
	{prefix: "orangewebpay", operator: "orange", country: "BF", channel: "web", currency: "XOF",
		pageNumbers: "+2267000"},
	{prefix: "orangewebpay", operator: "orange", country: "CI", channel: "web", currency: "XOF",
		pageNumbers: "+225070000"},
	{prefix: "orangewebpay", operator: "orange", country: "SN", channel: "web", currency: "XOF",
		pageNumbers: "+22177000", only: someStories},
	{prefix: "orangewebpay", operator: "orange", country: "CM", channel: "web", currency: "XAF",
		pageNumbers: "+23769000", only: someStories},
	{prefix: "pawapay", operator: "orange", country: "BF", channel: "ussd", currency: "XOF", numbers: "+2267000",
		otp: "123456", ends: deposits, only: someStories},
	{prefix: "pawapay", operator: "orange", country: "CD", channel: "ussd", currency: "USD", numbers: "+24389000",
		ends: deposits, only: someStories},
	{prefix: "pawapay", operator: "vodacom", country: "CD", channel: "tpe", currency: "USD", numbers: "+24381000",
		ends: deposits, only: someStories},
	{prefix: "flouci", operator: "flouci", country: "TN", channel: "web", currency: "TND", pageNumbers: "+2162000",
		ends: map[string]stubEnd{ // a failure counts 20 minutes after the request
			"1001": {http.StatusCreated, "pending", 0}, "1002": {http.StatusCreated, "pending", 0},
		}},
}

// stubCases are the stories by the last four digits of the payer's number.
var stubCases = map[string]stubEnd{
	"2000": {http.StatusCreated, "successful", 1},
	"1001": {http.StatusCreated, "failed", 0},     // refused by the payer
	"1002": {http.StatusCreated, "failed", 0},     // no funds
	"1003": {http.StatusCreated, "pending", 0},    // never decided: after its lifetime a person decides
	"1005": {http.StatusCreated, "successful", 1}, // the response is lost
	"1006": {http.StatusCreated, "successful", 1}, // the callback comes three times
	"1007": {http.StatusCreated, "successful", 1}, // a contradicting callback follows
	"1008": {http.StatusCreated, "successful", 1}, // the callback comes before the response
	"1009": {http.StatusCreated, "successful", 1}, // 503 at first
	"1010": {http.StatusCreated, "successful", 1}, // the response is garbage
	"1011": {http.StatusCreated, "successful", 1}, // the callback is lost
}

// stubScript is a story in which the call of an operation has a mode. The platform gets the payer's number without
// callingCode.
type stubScript struct {
	prefix, operation, mode, callingCode string
	end                                  stubEnd
}

// stubScripts are the duplicates at the platform, and lost pages. "twice" is a request that arrives twice.
var stubScripts = []stubScript{
	{"mtn", "requesttopay", "twice", "+", stubEnd{http.StatusCreated, "successful", 1}},           // 409
	{"pawapay", "deposit", "twice", "+", stubEnd{http.StatusCreated, "successful", 1}},            // DUPLICATE_IGNORED
	{"orangecm", "pay", "twice", "+237", stubEnd{http.StatusCreated, "successful", 1}},            // 422
	{"orangewebpay", "webpayment", "twice", "", stubEnd{http.StatusGatewayTimeout, "pending", 0}}, // 1204
	{"orangewebpay", "webpayment", "cut-applied", "", stubEnd{http.StatusGatewayTimeout, "pending", 0}},
	{"flouci", "create", "cut-applied", "", stubEnd{http.StatusGatewayTimeout, "pending", 0}},
}

// TestStubs sends the payments of each operator's platform and messages of Orange through the drivers. At the end the
// journal of each stub reconciles with the ledger.
func TestStubs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a gateway")
	}
	t.Parallel()
	g, session := openStubTarget(t)
	began := time.Now().UTC()
	t.Run("stories", func(t *testing.T) {
		for _, p := range stubPlatforms {
			for ending, end := range stubCases {
				if own, found := p.ends[ending]; found {
					end = own
				}
				if p.only != "" && !strings.Contains(p.only, ending) {
					continue
				}
				t.Run(p.prefix+"-"+p.country+"-"+ending, func(t *testing.T) {
					t.Parallel()
					stubStory{t, g, p}.pay(ending, end)
				})
			}
		}
		for _, c := range stubScripts {
			t.Run(c.prefix+"-"+c.mode, func(t *testing.T) {
				t.Parallel()
				at := slices.IndexFunc(stubPlatforms, func(p stubPlatform) bool { return p.prefix == c.prefix })
				stubStory{t, g, stubPlatforms[at]}.follow(c)
			})
		}
		t.Run("orangesms", func(t *testing.T) {
			t.Parallel()
			stubStory{t, g, stubPlatform{prefix: "orangesms"}}.sendMessages()
		})
	})
	if session != nil {
		session.withT(t).reconcileStubs(began)
	}
}

// openStubTarget opens the run that E2E_RUN_JSON names, if its operators are stubs, or starts a local run with a
// session. The only operator of its second merchant is Orange.
func openStubTarget(t *testing.T) (*target, *ctlSession) {
	t.Helper()
	if os.Getenv("E2E_RUN_JSON") != "" {
		g := openTarget(t)
		if g.StubsURL == "" {
			t.Skip("the target has no stubs of operators' platforms")
		}
		return g, nil
	}
	e := newCtlSession(t, localtest.Options{
		Speed: speed, Stubs: true, EnvOverrides: map[string]string{"PAYMENT_LIFETIME": "15m"},
	})
	e.mustRun("merchant change "+e.target.SecondMerchant.Merchant+" --operator orange"+confirmFlags, nil)
	return e.target, e
}

// stubStory is one payment at a stub.
type stubStory struct {
	*testing.T
	target   *target
	platform stubPlatform
}

// newPayment returns a payment of the platform. number may be "".
func (s stubStory) newPayment(order, number string) *requestBuilder {
	payment := newPayment(s.target.MerchantCredentials, order, s.platform.channel, number)
	payment.header["mno-name"], payment.header["country-code"] = s.platform.operator, s.platform.country
	payment.body["currency"] = s.platform.currency
	if s.platform.otp != "" {
		payment.body["otp_code"] = s.platform.otp
	}
	return payment
}

func (s stubStory) pay(ending string, want stubEnd) {
	order, number := s.target.Merchant+"_"+s.target.newID(), ""
	if s.platform.numbers != "" {
		number = s.platform.numbers + ending
	}
	payment := s.newPayment(order, number)
	created := s.send(payment, want.response)
	if created.status >= http.StatusServiceUnavailable { // 503, or 504 without a page: the same request again
		created = s.send(payment, http.StatusCreated)
	}
	if s.platform.channel == "web" {
		s.confirm(created, cmp.Or(s.platform.pageNumbers, s.platform.numbers)+ending)
	}
	eventuallyNoError(s, stubWait, func() error { return s.target.checkStatus(order, want.status) })
	if callbacks := map[string]int{"1006": 3, "1007": 2}[ending]; callbacks > 0 {
		eventuallyNoError(s, stubWait, func() error { return s.checkCallbacks(order, callbacks) })
	}
	if created.status == http.StatusCreated {
		if want.status != "pending" {
			eventuallyNoError(s, stubWait, func() error { return s.checkNotified(order, want.status) })
		}
		if repeated := s.send(payment, http.StatusCreated); repeated.header.Get("Idempotent-Replayed") != "true" {
			s.Error(repeated.errorf("the repeated request is not a replay"))
		}
	}
	for _, err := range []error{s.target.checkStatus(order, want.status), s.checkEffects(order, want.effects)} {
		if err != nil {
			s.Error(err)
		}
	}
}

func (s stubStory) send(a *requestBuilder, want int) observation {
	s.Helper()
	response, err := s.target.send(a)
	if err != nil || response.status != want {
		s.Fatal(response.errorf("status %d, want %d: %v", response.status, want, err))
	}
	return response
}

// confirm confirms the payment on its page as the payer does. The stub may cut the connection.
func (s stubStory) confirm(created observation, number string) {
	s.Helper()
	page, err := created.textValue("payment_url")
	if err != nil {
		s.Fatal(err)
	}
	form := url.Values{"msisdn": {number}, "code": {"123456"}, "action": {"confirm"}}.Encode()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, page, strings.NewReader(form))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.Logf("the page: %v", err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode == http.StatusServiceUnavailable { // 1009: the payer presses the button again
		s.confirm(created, number)
		return
	}
	if response.StatusCode >= http.StatusBadRequest {
		s.Fatalf("the page of the payment responded %d", response.StatusCode)
	}
}

func (s stubStory) checkNotified(order, want string) error {
	messages, err := s.target.inboxMessages(order)
	if err != nil {
		return err
	}
	if got := statusesOf(messages, "status"); !slices.Equal(got, []string{want}) {
		return fmt.Errorf("the merchant got %q for %s, want %s once", got, order, want)
	}
	return nil
}

// readControl reads a list of the stub's control port.
func readControl[T any](s stubStory, path string) (list []T, err error) {
	address := s.target.StubsURL + "/" + s.platform.prefix + "/stub/v1/" + path
	text, _, err := harness.Call(context.Background(), http.MethodGet, address, "", nil)
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(text, &list)
}

// effects lists the effects of an order.
func (s stubStory) effects(order string) ([]effect, error) {
	return readControl[effect](s, "effects?key="+order)
}

func (s stubStory) checkEffects(order string, want int) error {
	found, err := s.effects(order)
	if err != nil {
		return err
	}
	if len(found) != want {
		return fmt.Errorf("%d effects of %s at the operator, want %d", len(found), order, want)
	}
	return nil
}

// checkCallbacks checks that our side took this many callbacks of a paid order.
func (s stubStory) checkCallbacks(order string, want int) error {
	found, err := s.effects(order)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no effect of %s", order)
	}
	calls, err := readControl[struct {
		Operation string
		Status    int
	}](s, "calls?key="+found[0].Key)
	if err != nil {
		return err
	}
	taken := 0
	for _, c := range calls {
		if c.Operation == "callback" && c.Status == http.StatusOK {
			taken++
		}
	}
	if taken != want {
		return fmt.Errorf("%d callbacks of %s got 200, want %d", taken, order, want)
	}
	return nil
}

// follow scripts the call of a payment, whose response then proves nothing. A page that was lost is not sent again.
func (s stubStory) follow(c stubScript) {
	order, key, number := s.target.Merchant+"_"+s.target.newID(), "", ""
	if s.platform.numbers != "" {
		number = s.platform.numbers + "2999" // no other story has it
		key = strings.TrimPrefix(number, c.callingCode)
	}
	script := fmt.Sprintf(`{"key":%q,"operation":%q,"calls":[%q]}`, cmp.Or(key, order), c.operation, c.mode)
	address := s.target.StubsURL + "/" + s.platform.prefix + "/stub/v1/script"
	if _, _, err := harness.Call(s.Context(), http.MethodPost, address, script, nil); err != nil {
		s.Fatal(err)
	}
	payment := s.newPayment(order, number)
	s.send(payment, c.end.response)
	s.send(payment, c.end.response)
	eventuallyNoError(s, stubWait, func() error {
		return errors.Join(s.target.checkStatus(order, c.end.status), s.checkEffects(order, c.end.effects))
	})
}
