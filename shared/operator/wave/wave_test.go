package wave_test

import (
	"encoding/json"
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
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/operator/wave"
)

const (
	platform       = "wave-checkout"
	apiKey         = "wave_sn_prod_very-private"
	callbackSecret = "callback-secret-very-private-0123456"
	payerNumber    = "770000000"
)

var now = time.Date(2026, 11, 22, 10, 14, 0, 0, time.UTC)

// account returns the fields of a complete account.
func account(baseURL string) map[string]any {
	return map[string]any{"base_url": baseURL, "access_token": apiKey, "callback_secret": callbackSecret}
}

func newDriver(t testing.TB, fields map[string]any) *wave.Driver {
	t.Helper()
	clock := func() time.Time { return now }
	accounts := credentials.NewReader(operatortest.Secret(platform, "sn", fields), clock, operator.CheckBaseURL)
	return wave.New(accounts, upstream.NewClient(nil), clock)
}

func commonCall() operator.Call {
	return operator.Call{
		Platform: platform, AccountID: "sn", Operator: "wave", Country: "SN", MCO: "OSN",
		UpstreamKey: "DemoShop_42", OrderID: "DemoShop_42",
	}
}

func payCall() operator.PayCall {
	return operator.PayCall{
		Call: commonCall(), Channel: "web", Lang: "fr", Amount: "1000.00", Currency: "XOF",
		ReturnURL: "https://shop.example/back?a=1&b=2", CancelURL: "https://shop.example/cancel",
		NotifyURL: "https://gateway.example/callbacks/v1/x", Reference: "Demo Shop", MSISDN: payerNumber, State: "s",
	}
}

func statusCall() operator.StatusCall {
	return operator.StatusCall{Call: commonCall(), Channel: "web", Lang: "fr", Amount: "1000.00", Currency: "XOF"}
}

// changed returns a session with other values, as alternating names and JSON values.
func changed(t testing.TB, file string, pairs ...string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(operatortest.ReadFile(t, file)), &fields); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestGoldenCreate(t *testing.T) {
	stub := operatortest.NewStubOperator(t, operatortest.Respond(200, operatortest.ReadFile(t, "session-open.json")))
	got := newDriver(t, account(stub.URL)).Pay(t.Context(), payCall())
	want := operator.PayResponse{
		Result:     operator.Result{Outcome: operator.Succeeded, HTTPStatus: 200},
		PayToken:   "cos-1example",
		PaymentURL: "https://pay.wave.com/c/cos-1example?a=1000&c=XOF&m=Demo%20Shop",
		NotifToken: "9368dc41a547febc0ccaf22428696720", // derived: stored with payments, so it never changes
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	requests := stub.Requests()
	if len(requests) != 1 {
		t.Fatalf("%d requests, want 1", len(requests))
	}
	r := requests[0]
	line, wantLine := r.Method+" "+r.Path+" "+r.Header.Get("Authorization"), "POST /v1/checkout/sessions Bearer "+apiKey
	if line != wantLine {
		t.Errorf("request %s, want %s", line, wantLine)
	}
	if diff := cmp.Diff(operatortest.ReadFile(t, "create-request.json"), r.Body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestPayerIsOptional(t *testing.T) {
	stub := operatortest.NewStubOperator(t, operatortest.Respond(200, operatortest.ReadFile(t, "session-open.json")))
	call := payCall()
	call.MSISDN = ""
	newDriver(t, account(stub.URL)).Pay(t.Context(), call)
	if body := stub.Requests()[0].Body; strings.Contains(body, "restrict_payer_mobile") {
		t.Errorf("body %s restricts the payer", body)
	}
}

func errorBody(code string) string { return fmt.Sprintf(`{"code":%q,"message":"m"}`, code) }

// checkResult checks an outcome, and that its fault has no private text.
func checkResult(t *testing.T, r operator.Result, outcome operator.Outcome, kind fault.Kind, duplicate bool) {
	t.Helper()
	if r.DuplicateKey != duplicate {
		t.Errorf("duplicate %v: %v; want %v", r.DuplicateKey, r.Fault, duplicate)
	}
	private := []string{apiKey, callbackSecret, payerNumber, "very-private"}
	operatortest.CheckResult(t, r, outcome, kind, private)
}

func TestCreateOutcomes(t *testing.T) {
	open := operatortest.ReadFile(t, "session-open.json")
	cases := []struct {
		name      string
		step      operatortest.Responder
		outcome   operator.Outcome
		kind      fault.Kind
		duplicate bool
	}{
		{"amount as a number", operatortest.Respond(200, changed(t, "session-open.json", "amount", "1000")),
			operator.Succeeded, 0, false},
		{"validation", operatortest.Respond(400, errorBody("request-validation-error")),
			operator.NotApplied, fault.IntegrationRejected, false},
		{"other 400", operatortest.Respond(400, errorBody("new-code")), operator.Unknown, fault.OutcomeUnknown, false},
		{"revoked key", operatortest.Respond(401, errorBody("api-key-revoked")),
			operator.NotApplied, fault.IntegrationRejected, false},
		{"nested error", operatortest.Respond(401, `{"error":`+errorBody("invalid-auth")+`}`),
			operator.NotApplied, fault.IntegrationRejected, false},
		{"other 401", operatortest.Respond(401, `{"message":"very-private"}`),
			operator.Unknown, fault.OutcomeUnknown, false},
		{"no scope", operatortest.Respond(403, errorBody("insufficient-scope")),
			operator.NotApplied, fault.IntegrationRejected, false},
		{"firewall", operatortest.Respond(403, "<html>very-private</html>"),
			operator.Unknown, fault.OutcomeUnknown, false},
		{"not found", operatortest.Respond(404, errorBody("checkout-session-not-found")),
			operator.Unknown, fault.OutcomeUnknown, false},
		{"mismatch", operatortest.Respond(409, errorBody("idempotency-mismatch")),
			operator.Unknown, fault.OutcomeUnknown, true},
		{"rate", operatortest.Respond(429, errorBody("too-many-requests")),
			operator.NotApplied, fault.OperatorUnavailable, false},
		{"rate of a firewall", operatortest.Respond(429, ""), operator.Unknown, fault.OutcomeUnknown, false},
		{"500", operatortest.Respond(500, errorBody("internal")), operator.Unknown, fault.OutcomeUnknown, false},
		{"503", operatortest.Respond(503, errorBody("service-unavailable")),
			operator.Unknown, fault.OutcomeUnknown, false},
		{"redirect", operatortest.Respond(302, "{}", "Location", "/"), operator.Unknown, fault.OutcomeUnknown, false},
		{"HTML", operatortest.Respond(200, "<html>"), operator.Unknown, fault.OutcomeUnknown, false},
		{"empty", operatortest.Respond(200, "{}"), operator.Unknown, fault.OutcomeUnknown, false},
		{"truncated", operatortest.RespondTruncated(200, open), operator.Unknown, fault.OutcomeUnknown, false},
		{"cut", operatortest.CloseConnection(), operator.Unknown, fault.OutcomeUnknown, false},
		{"other amount", operatortest.Respond(200, changed(t, "session-open.json", "amount", `"100"`)),
			operator.Unknown, fault.OutcomeUnknown, false},
		{"other currency", operatortest.Respond(200, changed(t, "session-open.json", "currency", `"XAF"`)),
			operator.Unknown, fault.OutcomeUnknown, false},
		{"other order", operatortest.Respond(200, changed(t, "session-open.json", "client_reference", `"DemoShop_4"`)),
			operator.Unknown, fault.OutcomeUnknown, false},
		{"no page", operatortest.Respond(200, changed(t, "session-open.json", "wave_launch_url", "null")),
			operator.Unknown, fault.OutcomeUnknown, false},
		{"already paid", operatortest.Respond(200, operatortest.ReadFile(t, "session-paid.json")),
			operator.Unknown, fault.OutcomeUnknown, false},
		{"unknown status", operatortest.Respond(200, changed(t, "session-open.json", "payment_status", `"new"`)),
			operator.Unknown, fault.OutcomeUnknown, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, c.step)
			got := newDriver(t, account(stub.URL)).Pay(t.Context(), payCall())
			checkResult(t, got.Result, c.outcome, c.kind, c.duplicate)
			if (got.PayToken != "") != (c.outcome == operator.Succeeded) || len(stub.Requests()) != 1 {
				t.Errorf("pay_token %q after %d requests", got.PayToken, len(stub.Requests()))
			}
		})
	}
}

func listOf(sessions ...string) string { return `{"result":[` + strings.Join(sessions, ",") + `]}` }

func TestRetrySearchesFirst(t *testing.T) {
	open, paid := operatortest.ReadFile(t, "session-open.json"), operatortest.ReadFile(t, "session-paid.json")
	create := operatortest.Respond(200, open)
	expired := changed(t, "session-open.json", "checkout_status", `"expired"`)
	cases := []struct {
		name      string
		search    operatortest.Responder
		outcome   operator.Outcome
		duplicate bool
		requests  int
	}{
		{"no session", operatortest.Respond(200, listOf()), operator.Succeeded, false, 2},
		{"no session, 404", operatortest.Respond(404, errorBody("checkout-session-not-found")),
			operator.Succeeded, false, 2},
		{"open session", operatortest.Respond(200, listOf(open)), operator.Succeeded, false, 1},
		{"expired and open", operatortest.Respond(200, listOf(expired, open)), operator.Succeeded, false, 1},
		{"expired session", operatortest.Respond(200, listOf(expired)), operator.Unknown, true, 1},
		{"paid and open", operatortest.Respond(200, listOf(open, paid)), operator.Unknown, true, 1},
		{"open with another amount",
			operatortest.Respond(200, listOf(changed(t, "session-open.json", "amount", `"7"`))),
			operator.Unknown, true, 1},
		{"unreadable session", operatortest.Respond(200, listOf("{}")), operator.Unknown, true, 1},
		{"sessions of another order",
			operatortest.Respond(200, listOf(changed(t, "session-open.json", "client_reference", `"DemoShop_421"`))),
			operator.Unknown, false, 1},
		{"no list", operatortest.Respond(200, "{}"), operator.Unknown, false, 1},
		{"null", operatortest.Respond(200, `{"result":null}`), operator.Unknown, false, 1},
		{"text", operatortest.Respond(200, `{"result":""}`), operator.Unknown, false, 1},
		{"list of texts", operatortest.Respond(200, `{"result":["x"]}`), operator.Unknown, false, 1},
		{"HTML", operatortest.Respond(200, "<html>"), operator.Unknown, false, 1},
		{"other 404", operatortest.Respond(404, "{}"), operator.Unknown, false, 1},
		{"key", operatortest.Respond(401, errorBody("invalid-auth")), operator.Unknown, false, 1},
		{"down", operatortest.Respond(503, ""), operator.Unknown, false, 1},
		{"cut", operatortest.CloseConnection(), operator.Unknown, false, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, c.search, create)
			call := payCall()
			call.MayRepeat = true
			got := newDriver(t, account(stub.URL)).Pay(t.Context(), call)
			checkResult(t, got.Result, c.outcome, fault.OutcomeUnknown, c.duplicate)
			requests := stub.Requests()
			const search = "GET /v1/checkout/sessions/search?client_reference=DemoShop_42"
			if first := requests[0].Method + " " + requests[0].Path; first != search {
				t.Errorf("first request %s", first)
			}
			if len(requests) != c.requests || (got.PaymentURL != "") != (c.outcome == operator.Succeeded) {
				t.Errorf("%d requests, page %q", len(requests), got.PaymentURL)
			}
		})
	}
}

func TestUnsentCalls(t *testing.T) {
	stub := operatortest.NewStubOperator(t)
	driver := newDriver(t, account(stub.URL))
	incomplete := account(stub.URL)
	incomplete["callback_secret"] = "short"
	unusable := newDriver(t, incomplete)
	_, err := unusable.FindAccount(t.Context(), platform, "")
	if f := fault.FromError(err); f == nil || f.Kind != fault.IntegrationRejected {
		t.Errorf("an account with a short callback_secret: %v", err)
	}
	if id, err := driver.FindAccount(t.Context(), platform, ""); id != "sn" || err != nil {
		t.Errorf("current account %q, %v", id, err)
	}
	badAmount, badNumber, otherCountry := payCall(), payCall(), payCall()
	otherCountry.Country, otherCountry.MSISDN = "CI", ""
	badAmount.Amount, badNumber.MSISDN = "10.5", "12"
	for name, result := range map[string]operator.Result{
		"amount": driver.Pay(t.Context(), badAmount).Result, "number": driver.Pay(t.Context(), badNumber).Result,
		"account": unusable.Pay(t.Context(), payCall()).Result,
		"country": driver.Pay(t.Context(), otherCountry).Result,
	} {
		t.Run(name, func(t *testing.T) {
			checkResult(t, result, operator.NotApplied, fault.IntegrationRejected, false)
		})
	}
	if response := unusable.LookUpPayment(t.Context(), statusCall()); response.Cause == nil {
		t.Error("a lookup without an account has no cause")
	}
	if sent := len(stub.Requests()); sent != 0 {
		t.Errorf("%d requests, want 0", sent)
	}
	stub.Close()
	checkResult(t, driver.Pay(t.Context(), payCall()).Result, operator.NotApplied, fault.OperatorUnavailable, false)
}

func TestLookup(t *testing.T) {
	session := func(payment, checkout string) string {
		return changed(t, "session-paid.json", "payment_status", `"`+payment+`"`, "checkout_status", `"`+checkout+`"`)
	}
	report := func(status ledger.Status) operator.StatusReport {
		return operator.StatusReport{Status: status, Amount: "1000", Currency: "XOF", OperatorReference: "TCN4Y4ZC3FM"}
	}
	open := report(ledger.Pending)
	open.OperatorReference = ""
	cases := []struct {
		name     string
		body     string
		want     operator.StatusReport
		notFound bool
	}{
		{"paid", listOf(operatortest.ReadFile(t, "session-paid.json")), report(ledger.Successful), false},
		{"open", listOf(operatortest.ReadFile(t, "session-open.json")), open, false},
		{"expired", listOf(session("processing", "expired")), report(ledger.Expired), false},
		{"in progress", listOf(session("processing", "complete")), report(ledger.Pending), false},
		{"cancelled", listOf(session("cancelled", "complete")), report(ledger.Cancelled), false},
		{"cancelled but open", listOf(session("cancelled", "open")), report(ledger.Pending), false},
		{"paid late", listOf(session("succeeded", "expired")), report(ledger.Successful), false},
		{"expired and open", listOf(session("processing", "expired"), operatortest.ReadFile(t, "session-open.json")),
			open, false},
		{"expired and paid", listOf(session("processing", "expired"), operatortest.ReadFile(t, "session-paid.json")),
			report(ledger.Successful), false},
		{"cancelled and expired", listOf(session("processing", "expired"), session("cancelled", "expired")),
			report(ledger.Cancelled), false},
		{"expired and unknown", listOf(session("processing", "expired"), session("new", "open")),
			operator.StatusReport{}, false},
		{"paid without an amount", listOf(changed(t, "session-paid.json", "amount", "null")),
			operator.StatusReport{}, false},
		{"unknown", listOf(session("reversed", "complete")), operator.StatusReport{}, false},
		{"none", listOf(), operator.StatusReport{}, true},
		{"no list", `{}`, operator.StatusReport{}, false},
		{"HTML", `<html>`, operator.StatusReport{}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, operatortest.Respond(200, c.body))
			got := newDriver(t, account(stub.URL)).LookUpPayment(t.Context(), statusCall())
			if (got.Cause == nil) != (c.want.Status != "") || got.OrderNotFound != c.notFound {
				t.Fatalf("not found %v, cause %v", got.OrderNotFound, got.Cause)
			}
			if diff := cmp.Diff(c.want, got.StatusReport); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}
