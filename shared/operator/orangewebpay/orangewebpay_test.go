package orangewebpay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/orangewebpay"
	"mobilegateway/shared/operator/upstream"
)

const (
	platform    = "orange-webpay"
	merchantKey = "merchant-key-very-private"
	clientKey   = "client-secret-very-private"
	payerNumber = "0707070707"
)

// clock is a clock that a test moves.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.at }

func account(baseURL string) map[string]string {
	return map[string]string{
		"base_url": baseURL, "segment": "ci", "merchant_key": merchantKey,
		"client_id": "client-1", "client_secret": clientKey,
	}
}

func newDriver(t testing.TB, fields map[string]string, c *clock) *orangewebpay.Driver {
	t.Helper()
	reader := credentials.NewReader(operatortest.Secret(platform, "ci", fields), c.now, operator.CheckBaseURL)
	return orangewebpay.New(reader, upstream.NewClient(nil), upstream.NewTokens(c.now, nil))
}

func commonCall() operator.Call {
	return operator.Call{
		Platform: platform, AccountID: "ci", Operator: "orange", Country: "CI", MCO: "OCI",
		UpstreamKey: "DemoShop_42", OrderID: "DemoShop_42",
	}
}

func payCall() operator.PayCall {
	return operator.PayCall{
		Call: commonCall(), Channel: "web", Lang: "fr", Amount: "1200.00", Currency: "XOF",
		ReturnURL: "https://shop.example/back?a=1&b=2", CancelURL: "https://shop.example/cancel",
		NotifyURL: "https://gw.example/callbacks/v1/payments/orange/DemoShop_42/token",
		Reference: "Demo Shop", MSISDN: payerNumber, State: "s",
	}
}

func statusCall() operator.StatusCall {
	call := operator.StatusCall{Call: commonCall(), Channel: "web", Lang: "fr", Amount: "1200.00", Currency: "XOF"}
	call.DriverData = "v1f5720d"
	return call
}

// token is the response to a token exchange.
func token(value, lifetime string) operatortest.Responder {
	return operatortest.Respond(200, fmt.Sprintf(`{"token_type":"Bearer","access_token":%q,"expires_in":%s}`,
		value, lifetime))
}

func orangeError(status int, code string) operatortest.Responder {
	body := fmt.Sprintf(`{"code":%s,"message":"very-private","description":"%s"}`, code, payerNumber)
	return operatortest.Respond(status, body)
}

// lines lists the requests as method, path and Authorization.
func lines(stub *operatortest.StubOperator) []string {
	var list []string
	for _, r := range stub.Requests() {
		list = append(list, r.Method+" "+r.Path+" "+r.Header.Get("Authorization"))
	}
	return list
}

const (
	tokenLine  = "POST /oauth/v3/token Basic Y2xpZW50LTE6Y2xpZW50LXNlY3JldC12ZXJ5LXByaXZhdGU="
	payLine    = "POST /orange-money-webpay/ci/v1/webpayment Bearer "
	statusLine = "POST /orange-money-webpay/ci/v1/transactionstatus Bearer "
	firstToken = "token-1-very-private"
	nextToken  = "token-2-very-private"
)

// checkResult checks an outcome, and that its fault has no private text.
func checkResult(t *testing.T, r operator.Result, outcome operator.Outcome, kind fault.Kind, duplicate bool) {
	t.Helper()
	if r.DuplicateKey != duplicate {
		t.Errorf("duplicate %v: %v; want %v", r.DuplicateKey, r.Fault, duplicate)
	}
	operatortest.CheckResult(t, r, outcome, kind, []string{"very-private", payerNumber, "v1f5720d"})
}

func TestGoldenRequests(t *testing.T) {
	exchange := operatortest.Respond(200, operatortest.ReadFile(t, "token-response.json"))
	stub := operatortest.NewStubOperator(t, exchange,
		operatortest.Respond(201, operatortest.ReadFile(t, "pay-response.json")),
		operatortest.Respond(201, operatortest.ReadFile(t, "status-response.json")))
	driver := newDriver(t, account(stub.URL), newClock())
	page := driver.Pay(t.Context(), payCall())
	want := operator.PayResponse{
		Result:     operator.Result{Outcome: operator.Succeeded, HTTPStatus: 201},
		DriverData: "v1f5720d", PayToken: "v1f5720d", NotifToken: "dd497bda3b250e536186fc0663f32f40",
		PaymentURL: "https://webpayment.orange-money.com/payment/pay_token/v1f5720d",
	}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	status := driver.LookUpPayment(t.Context(), statusCall())
	wantReport := operator.StatusReport{Status: ledger.Successful, OperatorReference: "MP150709.1341.A00073"}
	if diff := cmp.Diff(operator.StatusResponse{StatusReport: wantReport}, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	wantLines := []string{tokenLine, payLine + firstToken, statusLine + firstToken}
	if diff := cmp.Diff(wantLines, lines(stub)); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	bodies := []string{
		"grant_type=client_credentials", operatortest.ReadFile(t, "pay-request.json"),
		operatortest.ReadFile(t, "status-request.json"),
	}
	for i, r := range stub.Requests() {
		if diff := cmp.Diff(bodies[i], r.Body); diff != "" {
			t.Errorf("body %d (-want +got):\n%s", i, diff)
		}
	}
	if form := stub.Requests()[0].Header.Get("Content-Type"); form != "application/x-www-form-urlencoded" {
		t.Errorf("the token exchange has the type %q", form)
	}
}

func TestTestEnvironmentHasItsOwnCurrency(t *testing.T) {
	stub := operatortest.NewStubOperator(t, token(firstToken, "3600"), operatortest.Respond(201, "{}"))
	fields := account(stub.URL)
	fields["segment"] = "dev"
	newDriver(t, fields, newClock()).Pay(t.Context(), payCall())
	r := stub.Requests()[1]
	if r.Path != "/orange-money-webpay/dev/v1/webpayment" || !strings.Contains(r.Body, `"currency":"OUV"`) {
		t.Errorf("request %s %s", r.Path, r.Body)
	}
}

func TestPayOutcomes(t *testing.T) {
	without := func(field string) operatortest.Responder {
		page := operatortest.ReadFile(t, "pay-response.json")
		return operatortest.Respond(201, strings.Replace(page, field, "other", 1))
	}
	const unknown = fault.OutcomeUnknown
	cases := []struct {
		name      string
		step      operatortest.Responder
		outcome   operator.Outcome
		kind      fault.Kind
		duplicate bool
	}{
		{"200", operatortest.Respond(200, operatortest.ReadFile(t, "pay-response.json")), operator.Succeeded, 0, false},
		{"no pay_token", without("pay_token"), operator.Unknown, unknown, false},
		{"no payment_url", without("payment_url"), operator.Unknown, unknown, false},
		{"no notif_token", without("notif_token"), operator.Unknown, unknown, false},
		{"page is not an address", without("https://webpayment"), operator.Unknown, unknown, false},
		{"missing field", orangeError(400, "23"), operator.NotApplied, fault.IntegrationRejected, false},
		{"code as a text", orangeError(400, `"23"`), operator.NotApplied, fault.IntegrationRejected, false},
		{"nested code", operatortest.Respond(400, `{"error":{"error":{"code":23}}}`),
			operator.NotApplied, fault.IntegrationRejected, false},
		{"invalid field", orangeError(400, "22"), operator.Unknown, unknown, false},
		{"23 with another status", orangeError(500, "23"), operator.Unknown, unknown, false},
		{"repeated order_id", orangeError(400, "1204"), operator.Unknown, unknown, true},
		{"repeated order_id, 409", orangeError(409, "1204"), operator.Unknown, unknown, true},
		{"repeated order_id, 500", orangeError(500, "1204"), operator.Unknown, unknown, true},
		{"conflict", operatortest.Respond(409, ""), operator.Unknown, unknown, true},
		{"invalid token", orangeError(401, "41"), operator.Unknown, unknown, false},
		{"401 of a firewall", operatortest.Respond(401, "<html>"), operator.Unknown, unknown, false},
		{"forbidden", orangeError(403, "50"), operator.Unknown, unknown, false},
		{"no such resource", orangeError(404, "60"), operator.NotApplied, fault.IntegrationRejected, false},
		{"bare 404", operatortest.Respond(404, ""), operator.Unknown, unknown, false},
		{"rate", orangeError(429, "53"), operator.NotApplied, fault.OperatorUnavailable, false},
		{"rate of a firewall", operatortest.Respond(429, "<html>"), operator.Unknown, unknown, false},
		{"503", orangeError(503, "5"), operator.Unknown, unknown, false},
		{"500", orangeError(500, "1"), operator.Unknown, unknown, false},
		{"redirect", operatortest.Respond(302, "{}", "Location", "/"), operator.Unknown, unknown, false},
		{"HTML with 200", operatortest.Respond(200, "<html>OK</html>"), operator.Unknown, unknown, false},
		{"empty object", operatortest.Respond(201, "{}"), operator.Unknown, unknown, false},
		{"truncated", operatortest.RespondTruncated(201, operatortest.ReadFile(t, "pay-response.json")),
			operator.Unknown, unknown, false},
		{"cut", operatortest.CloseConnection(), operator.Unknown, unknown, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, token(firstToken, "3600"), c.step)
			got := newDriver(t, account(stub.URL), newClock()).Pay(t.Context(), payCall())
			checkResult(t, got.Result, c.outcome, c.kind, c.duplicate)
			if (got.DriverData != "") != (c.outcome == operator.Succeeded) || len(stub.Requests()) != 2 {
				t.Errorf("data of the driver %q after %d requests", got.DriverData, len(stub.Requests()))
			}
		})
	}
}

func TestUnsentCalls(t *testing.T) {
	stub := operatortest.NewStubOperator(t)
	driver := newDriver(t, account(stub.URL), newClock())
	incomplete := account(stub.URL)
	delete(incomplete, "merchant_key")
	unusable := newDriver(t, incomplete, newClock())
	_, err := unusable.FindAccount(t.Context(), platform, "")
	if f := fault.FromError(err); f == nil || f.Kind != fault.IntegrationRejected {
		t.Errorf("an account without merchant_key: %v", err)
	}
	if id, err := driver.FindAccount(t.Context(), platform, ""); id != "ci" || err != nil {
		t.Errorf("current account %q, %v", id, err)
	}
	changed := func(change func(call *operator.PayCall)) operator.Result {
		call := payCall()
		change(&call)
		return driver.Pay(t.Context(), call).Result
	}
	longURL := "https://gw.example/" + strings.Repeat("x", 120-len("https://gw.example/")+1)
	cases := []struct {
		name   string
		result operator.Result
		kind   fault.Kind
	}{
		{"account", unusable.Pay(t.Context(), payCall()).Result, fault.IntegrationRejected},
		{"amount", changed(func(c *operator.PayCall) { c.Amount = "10.5" }), fault.IntegrationRejected},
		{"another country", changed(func(c *operator.PayCall) { c.Country = "BF" }), fault.IntegrationRejected},
		{"notif_url", changed(func(c *operator.PayCall) { c.NotifyURL = longURL }), fault.IntegrationRejected},
		{"return_url", changed(func(c *operator.PayCall) { c.ReturnURL = longURL }), fault.InvalidPart},
		{"cancel_url", changed(func(c *operator.PayCall) { c.CancelURL = longURL }), fault.InvalidPart},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			checkResult(t, c.result, operator.NotApplied, c.kind, false)
			if c.kind == fault.InvalidPart && c.result.Fault.Part != c.name {
				t.Errorf("refused with %+v", c.result.Fault)
			}
		})
	}
	lost := statusCall()
	lost.DriverData = ""
	if response := driver.LookUpPayment(t.Context(), lost); response.Cause == nil || response.Status != "" {
		t.Errorf("a lookup without data of the driver: %+v", response)
	}
	if sent := len(stub.Requests()); sent != 0 {
		t.Errorf("%d requests, want 0", sent)
	}
	stub.SetResponses(token(firstToken, "60"), operatortest.Respond(201, operatortest.ReadFile(t, "pay-response.json")))
	longest := changed(func(c *operator.PayCall) { c.NotifyURL, c.ReturnURL = longURL[:120], longURL[:120] })
	checkResult(t, longest, operator.Succeeded, 0, false)
	stub.Close()
	driver = newDriver(t, account(stub.URL), newClock())
	checkResult(t, driver.Pay(t.Context(), payCall()).Result, operator.NotApplied, fault.OperatorUnavailable, false)
}

func TestAccountFields(t *testing.T) {
	cases := []struct {
		path, value string
		usable      bool
	}{
		{"segment", "ci", true}, {"segment", "dev", true}, {"segment", "CI", false}, {"segment", "cd", false},
		{"segment", "", false}, {"client_id", "abc", true}, {"client_id", "a:b", false}, {"client_id", "", false},
		{"client_secret", "a b", true}, {"merchant_key", " a", false}, {"base_url", "http://api.orange.com", false},
	}
	driver := newDriver(t, account("https://api.orange.com"), newClock())
	for _, c := range cases {
		for _, field := range driver.AccountFields() {
			if err := field.Check(c.value); field.Path == c.path && (err == nil) != c.usable {
				t.Errorf("%s %q: %v", c.path, c.value, err)
			}
		}
	}
}
