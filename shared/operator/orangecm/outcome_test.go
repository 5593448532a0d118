package orangecm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/orangecm"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

// word is the word of a successful payment.
const word = "SUCCESSFULL" //nolint:misspell // the platform's own spelling

const (
	expiredJSON = `{"fault":{"code":900901,"message":"Invalid Credentials"}}`
	expiredFlat = `{"code":"900901","message":"Invalid Credentials"}`
	expiredXML  = `<ams:fault xmlns:ams="http://wso2.org/apimanager/security"><ams:code>900901</ams:code></ams:fault>`
	html        = `<html><body>Access denied</body></html>`
)

// data is a response of the application with these fields of "data".
func data(fields string) string { return `{"message":"m of NGUEMA 690000002","data":{` + fields + `}}` }

const ours = `"payToken":"` + payToken + `",`

// Every response to mp/pay. mp/pay is sent once.
func TestPayOutcomes(t *testing.T) {
	const succeeded, refused = operator.Succeeded, operator.Refused
	const notApplied, unknown = operator.NotApplied, operator.Unknown
	const isUnknown, isOurs, isDown = fault.OutcomeUnknown, fault.IntegrationRejected, fault.OperatorUnavailable
	pending, funds := operatortest.ReadFile(t, "pay-response.json"), operatortest.ReadFile(t, "pay-refused.json")
	wallet := strings.ReplaceAll(funds, "60019", "0066111")
	r := operatortest.Respond
	accepted := func(old, new string) string { return strings.Replace(pending, old, new, 1) }
	refusal := func(old, new string) string { return strings.Replace(funds, old, new, 1) }
	simulator := func(code string) string { return data(ours + `"status":"FAILED","inittxnstatus":"` + code + `"`) }
	cases := []struct {
		name    string
		respond operatortest.Responder
		outcome operator.Outcome
		kind    fault.Kind
	}{
		{"accepted", r(200, pending), succeeded, 0},
		{"accepted, amount as a text", r(200, accepted("100,", `"100",`)), succeeded, 0},
		{"initiated", r(200, accepted("PENDING", "INITIATED")), succeeded, 0},
		{"paid at once", r(200, operatortest.ReadFile(t, "status-success.json")), succeeded, 0},
		{"another payToken", r(200, accepted(payToken, "MP9")), unknown, isUnknown},
		{"no payToken", r(200, accepted("payToken", "x")), unknown, isUnknown},
		{"no inittxnstatus", r(200, accepted("inittxnstatus", "x")), unknown, isUnknown},
		{"unknown word", r(200, accepted("PENDING", "MAYBE")), unknown, isUnknown},
		{"accepted and failed", r(200, accepted("PENDING", "FAILED")), unknown, isUnknown},
		{"funds with 200", r(200, funds), refused, fault.OperatorError},
		{"funds with 400", r(400, funds), refused, fault.OperatorError},
		{"wallet with 200", r(200, wallet), refused, fault.OperatorError},
		{"wallet, short form", r(400, data(`"inittxnstatus":"0066111"`)), refused, fault.OperatorError},
		{"funds with 500", r(500, funds), unknown, isUnknown},
		{"funds of another payToken", r(200, refusal(payToken, "MP9")), unknown, isUnknown},
		{"funds with a txnid", r(200, refusal(`"txnid":null`, `"txnid":"MP1"`)), unknown,
			isUnknown},
		{"funds but pending", r(200, refusal("FAILED", "PENDING")), unknown, isUnknown},
		{"code of the account", r(400, simulator("0061")), unknown, isUnknown},
		{"code of the subscriber", r(400, simulator("0062")), unknown, isUnknown},
		{"code of the PIN", r(400, simulator("0068")), unknown, isUnknown},
		{"code like a number", r(400, simulator("690000002")), unknown, isUnknown},
		{"401 of the gateway in front", r(401, expiredJSON), notApplied, isOurs},
		{"401, flat", r(401, expiredFlat), notApplied, isOurs},
		{"401, XML", r(401, expiredXML), notApplied, isOurs},
		{"401 of the application", r(401, `{"status":401}`), unknown, isUnknown},
		{"401, HTML", r(401, html), unknown, isUnknown},
		{"403, not subscribed", r(403, `{"fault":{"code":900908}}`), notApplied, isOurs},
		{"403, other code", r(403, `{"fault":{"code":101503}}`), unknown, isUnknown},
		{"403, bare", r(403, ""), unknown, isUnknown},
		{"429 of the gateway in front", r(429, `{"fault":{"code":900802}}`), notApplied, isDown},
		{"429, bare", r(429, ""), unknown, isUnknown},
		{"409", r(409, `{}`), unknown, isUnknown},
		{"422", r(422, `{}`), unknown, isUnknown},
		{"404", r(404, `{}`), unknown, isUnknown},
		{"500", r(500, expiredJSON), unknown, isUnknown},
		{"503", r(503, html), unknown, isUnknown},
		{"HTML with 200", r(200, html), unknown, isUnknown},
		{"empty", r(200, ""), unknown, isUnknown},
		{"a key twice", r(200, accepted(`"data"`, `"data":{},"data"`)), unknown, isUnknown},
		{"data as a text", r(200, `{"data":"x"}`), unknown, isUnknown},
		{"cut", operatortest.CloseConnection(), unknown, isUnknown},
		{"half", operatortest.RespondTruncated(200, pending), unknown, isUnknown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, r(200, token), c.respond,
				r(400, "")) // an exchange after a 401 fails
			response := newDriver(t, stub.URL, fields()).Pay(t.Context(), payCall())
			checkResult(t, response.Result, c.outcome, c.kind)
			isDuplicate := c.name == "409" || c.name == "422"
			if response.DuplicateKey != isDuplicate {
				t.Errorf("duplicate %v", response.DuplicateKey)
			}
			if sent := countPayments(stub); sent != 1 {
				t.Errorf("%d payments were sent", sent)
			}
			reason := ledger.NotEnoughFunds
			if strings.Contains(c.name, "wallet") {
				reason = ledger.WalletUnknown
			}
			if got := operator.RefusalReason(response.Fault); c.outcome == refused && got != reason {
				t.Errorf("reason %q, want %q", got, reason)
			}
		})
	}
}

func countPayments(stub *operatortest.StubOperator) int {
	count := 0
	for _, r := range stub.Requests() {
		if strings.HasSuffix(r.Path, "/mp/pay") {
			count++
		}
	}
	return count
}

// Every failure of mp/init is NotApplied.
func TestPrepareOutcomes(t *testing.T) {
	r := operatortest.Respond
	for _, c := range []struct {
		name    string
		prepare operatortest.Responder
		kind    fault.Kind
	}{
		{"no payToken", r(200, `{"data":{}}`), fault.OperatorUnavailable},
		{"a payToken with a slash", r(200, `{"data":{"payToken":"../x"}}`), fault.OperatorUnavailable},
		{"500", r(500, prepared), fault.OperatorUnavailable},
		{"403", r(403, `{"status":403}`), fault.IntegrationRejected},
		{"401", r(401, `{"status":401}`), fault.IntegrationRejected},
		{"cut", operatortest.CloseConnection(), fault.OperatorUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, r(200, token), c.prepare, r(400, ""))
			driverData, result := newDriver(t, stub.URL, fields()).Prepare(t.Context(), payCall())
			checkResult(t, result, operator.NotApplied, c.kind)
			if driverData != "" || countPayments(stub) != 0 {
				t.Errorf("data of the driver %q, %d payments", driverData, countPayments(stub))
			}
		})
	}
}

// A token is used until shortly before its end, and replaced after a 401.
func TestTokens(t *testing.T) {
	second := strings.Replace(token, "token-1", "token-2", 1)
	pending := operatortest.Respond(200, operatortest.ReadFile(t, "pay-response.json"))
	found := operatortest.Respond(200, operatortest.ReadFile(t, "status-success.json"))
	respond := operatortest.Respond
	cases := []struct {
		name       string
		responders []operatortest.Responder
		calls      string // p for a payment, s for a lookup
		paths      string // t for an exchange, p and s
	}{
		{"cached", []operatortest.Responder{respond(200, token), pending, found}, "ps", "tps"},
		{"no life", []operatortest.Responder{
			respond(200, strings.Replace(token, "expires_in", "x", 1)), pending, respond(200, second), found,
		}, "ps", "tpts"},
		{"payment: expired in the middle", []operatortest.Responder{
			respond(200, token), respond(401, expiredXML), respond(200, second), pending}, "p", "tptp"},
		{"lookup: expired in the middle", []operatortest.Responder{
			respond(200, token), respond(401, `{}`), respond(200, second), found}, "s", "tsts"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, c.responders...)
			driver := newDriver(t, stub.URL, fields())
			for _, call := range c.calls {
				if call == 'p' {
					checkResult(t, driver.Pay(t.Context(), payCall()).Result, operator.Succeeded, 0)
				} else if found := driver.LookUpPayment(t.Context(), statusCall()); found.Status != ledger.Successful {
					t.Errorf("lookup: %v", found.Cause)
				}
			}
			var paths strings.Builder
			for _, r := range stub.Requests() {
				paths.WriteString(map[bool]string{true: "t"}[r.Path == "/token"])
				paths.WriteString(map[bool]string{true: "p"}[strings.HasSuffix(r.Path, "/pay")])
				paths.WriteString(map[bool]string{true: "s"}[strings.Contains(r.Path, "/paymentstatus/")])
			}
			if paths.String() != c.paths {
				t.Errorf("requests %q, want %q", paths.String(), c.paths)
			}
			if last := stub.Requests()[len(c.paths)-1]; strings.Count(c.paths, "t") == 2 &&
				last.Header.Get("Authorization") != "Bearer secret-token-2" {
				t.Errorf("the last request has the token %q", last.Header.Get("Authorization"))
			}
		})
	}
}

func TestLookups(t *testing.T) {
	success, expired := operatortest.ReadFile(t, "status-success.json"), operatortest.ReadFile(t, "status-expired.json")
	refused := operatortest.ReadFile(t, "pay-refused.json")
	replace := func(old, replacement string) string { return strings.Replace(success, old, replacement, 1) }
	reported := func(status ledger.Status) operator.StatusResponse {
		return operator.StatusResponse{StatusReport: operator.StatusReport{
			Status: status, Amount: "100", MSISDN: "690000002", OperatorReference: "MP260101.1000.B00001",
		}}
	}
	failed := operator.StatusResponse{StatusReport: operator.StatusReport{
		Status: ledger.Failed, Amount: "100", MSISDN: "690000002", Reason: ledger.NotEnoughFunds,
	}}
	unread := operator.StatusResponse{}
	cases := []struct {
		name   string
		status int
		body   string
		want   operator.StatusResponse
	}{
		{word, 200, success, reported(ledger.Successful)},
		{"SUCCESSFUL", 200, replace(word, "SUCCESSFUL"), reported(ledger.Successful)},
		{"SUCCESS", 200, replace(word, "success"), reported(ledger.Successful)},
		{"no confirmtxnstatus", 200, replace("confirmtxnstatus", "x"), unread},
		{"confirmtxnstatus null", 200, replace(`"confirmtxnstatus":"200"`, `"confirmtxnstatus":null`), unread},
		{"confirmtxnstatus as a number", 200, replace(`"confirmtxnstatus":"200"`, `"confirmtxnstatus":200`),
			reported(ledger.Successful)},
		{"amount as a text", 200, replace("100,", `"100",`), reported(ledger.Successful)},
		{"PENDING", 200, operatortest.ReadFile(t, "pay-response.json"), reported(ledger.Pending)},
		{"CANCELLED", 200, replace(word, "CANCELLED"), reported(ledger.Cancelled)},
		{"FAILED", 200, refused, failed},
		{"FAILED with a text only", 200, strings.Replace(refused, "60019", "1", 2), failed},
		{"EXPIRED, null fields", 200, expired, operator.StatusResponse{
			StatusReport: operator.StatusReport{Status: ledger.Expired}}},
		{"null fields", 200, strings.Replace(expired, `"EXPIRED"`, "null", 1), unread},
		{"success without an amount", 200, replace(`"amount":100,`, ""), unread},
		{"success of another code", 200, replace(`"confirmtxnstatus":"200"`, `"confirmtxnstatus":"60019"`), unread},
		{"another payToken", 200, replace(payToken, "MP9"), unread},
		{"unknown word", 200, replace(word, "DONE"), unread},
		{"404", 404, `{}`, unread},
		{"400", 400, success, unread},
		{"500", 500, success, unread},
		{"HTML", 200, html, unread},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t,
				operatortest.Respond(200, token), operatortest.Respond(c.status, c.body))
			got := newDriver(t, stub.URL, fields()).LookUpPayment(t.Context(), statusCall())
			if (got.Status != "") != (got.Cause == nil) || errors.Is(got.Cause, operator.ErrUnknownStatus) !=
				(c.name == "unknown word") {
				t.Errorf("status %q with the cause %v", got.Status, got.Cause)
			}
			operatortest.CheckPrivate(t, got.Cause, private)
			got.Cause = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("lookup (-want +got):\n%s", diff)
			}
		})
	}
	unprepared := statusCall()
	unprepared.DriverData = ""
	stub := operatortest.NewStubOperator(t)
	if got := newDriver(t, stub.URL, fields()).LookUpPayment(t.Context(), unprepared); got.Cause == nil ||
		len(stub.Requests()) != 0 {
		t.Errorf("a lookup without a payToken: %+v", got)
	}
}

func TestCallbacks(t *testing.T) {
	read := newDriver(t, "http://127.0.0.1:1", fields()).ReadPaymentCallback
	report := func(status ledger.Status) operator.CallbackReport {
		return operator.CallbackReport{StatusReport: operator.StatusReport{Status: status}}
	}
	full := report(ledger.Successful)
	full.UpstreamKey, full.Amount, full.MSISDN = "ORD1", "100", "690000002"
	full.OperatorReference = "MP260101.1000.B00001"
	unconfirmed := full
	unconfirmed.Status = ""
	failed := report(ledger.Failed)
	failed.Reason = ledger.WalletUnknown
	success := func(more string) string {
		return `{"payToken":"MP1",` + more + `"status":"` + word + `","message":"m"}`
	}
	cases := map[string]struct {
		body string
		want operator.CallbackReport
	}{
		"like the lookup": {operatortest.ReadFile(t, "status-success.json"), full},
		"like the lookup, not confirmed": {
			strings.Replace(operatortest.ReadFile(t, "status-success.json"),
				`confirmtxnstatus":"200"`, `confirmtxnstatus":null`, 1), unconfirmed,
		},
		"short":            {success(""), report(ledger.Successful)},
		"short, failed":    {`{"payToken":"MP1","status":"FAILED","inittxnstatus":"0066111"}`, failed},
		"short, pending":   {`{"payToken":"MP1","status":"PENDING"}`, report(ledger.Pending)},
		"unknown word":     {`{"payToken":"MP1","status":"DONE"}`, report("")},
		"no status":        {`{"payToken":"MP1"}`, report("")},
		"no payToken":      {`{"status":"` + word + `"}`, report("")},
		"data as a text":   {`{"data":"x","status":"` + word + `"}`, report("")},
		"status as a list": {`{"payToken":"MP1","status":["` + word + `"]}`, report("")},
		"twice":            {success(`"status":"FAILED",`), report("")},
		"HTML":             {html, report("")},
		"empty":            {"", report("")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, read([]byte(c.body))); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

// A platform that never responds: not applied before mp/pay, and unknown after it.
func TestNoResponse(t *testing.T) {
	stub := operatortest.NewStubOperator(t)
	driver := newDriver(t, stub.URL, fields())
	for _, isPay := range []bool{false, true} {
		stub.SetResponses(operatortest.Respond(200, token), stub.NeverRespond())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if isPay {
			stub.SetResponses(stub.NeverRespond()) // the token is cached
			checkResult(t, driver.Pay(ctx, payCall()).Result, operator.Unknown, fault.OutcomeUnknown)
			continue
		}
		_, result := driver.Prepare(ctx, payCall())
		checkResult(t, result, operator.NotApplied, fault.OperatorUnavailable)
	}
}

// changingSecret is a secret whose value a test replaces.
type changingSecret struct{ secret.Static }

func (s *changingSecret) Get(context.Context) ([]byte, error) { return s.Static, nil }

// New credentials get a new token, although the one of the old credentials is still valid.
func TestRotatedCredentials(t *testing.T) {
	stub := operatortest.NewStubOperator(t, operatortest.Respond(200, token),
		operatortest.Respond(200, operatortest.ReadFile(t, "status-success.json")),
		operatortest.Respond(200, strings.Replace(token, "token-1", "token-2", 1)),
		operatortest.Respond(200, operatortest.ReadFile(t, "status-success.json")))
	secrets := &changingSecret{secretOf(t, stub.URL, fields())}
	accounts := credentials.NewReader(secrets, time.Now, operator.CheckBaseURL)
	driver := orangecm.New(accounts, upstream.NewClient(nil), upstream.NewTokens(time.Now, nil))
	for _, key := range []string{"ck", "ck2"} {
		account := fields()
		account["consumer_key"], account["api_password"] = key, "secret-"+key
		secrets.Static = secretOf(t, stub.URL, account)
		if found := driver.LookUpPayment(t.Context(), statusCall()); found.Status != ledger.Successful {
			t.Fatalf("%s: %v", key, found.Cause)
		}
	}
	requests := stub.Requests()
	if len(requests) != 4 {
		t.Fatalf("%d requests, want 4", len(requests))
	}
	for _, name := range []string{"Authorization", "X-Auth-Token"} {
		if requests[1].Header.Get(name) == requests[3].Header.Get(name) {
			t.Errorf("both lookups have the same %s", name)
		}
	}
	if requests[0].Header.Get("Authorization") == requests[2].Header.Get("Authorization") {
		t.Error("both exchanges have the same consumer key")
	}
}
