package wave_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/wave"
)

const (
	platform       = "wave-checkout"
	apiKey         = "wave_sn_prod_very-private"
	callbackSecret = "callback-secret-very-private-0123456"
	notifToken     = "9368dc41a547febc0ccaf22428696720" // derived: stored with payments, so it never changes
)

var now = time.Date(2026, 11, 22, 10, 14, 0, 0, time.UTC)

// suite is the bench of the driver: an account in Senegal.
func suite(t testing.TB) operatortest.Suite {
	open := strings.Replace(operatortest.ReadFile(t, "session-open.json"), `"1000"`, `"1500"`, 1)
	session := strings.NewReplacer(`"1000"`, `"AMOUNT"`, `"XOF"`, `"CURRENCY"`, `"succeeded"`, `"STATUS"`).
		Replace(operatortest.ReadFile(t, "session-paid.json"))
	report := func(body string, processing ledger.Status) *operatortest.Reports {
		return &operatortest.Reports{
			Body: body, Amount: "1500", OtherAmount: "15",
			Statuses: map[string]ledger.Status{
				"succeeded": ledger.Successful, "cancelled": ledger.Cancelled, "processing": processing, "reversed": "",
			},
		}
	}
	return operatortest.Suite{
		Platform:             platform,
		Account:              map[string]any{"access_token": apiKey, "callback_secret": callbackSecret},
		Renewed:              map[string]any{"access_token": "wave_sn_prod_renewed-very-private"},
		Now:                  func() time.Time { return now },
		SuccessResponse:      operatortest.Always(respond(200, open)),
		NotAppliedResponse:   operatortest.Always(respond(400, errorBody("request-validation-error"))),
		TokenRefusedResponse: respond(401, `{"error":`+errorBody("api-key-revoked")+`}`),
		DuplicateResponse:    respond(200, listOf(strings.Replace(open, "open", "expired", 1))),
		NotFoundResponse:     respond(200, listOf()),
		Lookup:               report(listOf(session), ledger.Pending),
		Callback:             report(event("checkout.session.completed", session), ""),
		Signature: &operatortest.Signature{
			Header: "Wave-Signature",
			Sign:   signature,
			Fields: func(keys []string) map[string]any {
				all := map[string]any{}
				for i, key := range keys {
					all[[]string{"first", "second"}[i]] = key
				}
				return map[string]any{"webhook_secrets": all}
			},
		},
		Secrets: []string{"770000000"},
	}
}

func TestConformance(t *testing.T) { operatortest.Run(t, suite(t)) }

func respond(status int, body string) operatortest.Responder {
	return operatortest.Respond(status, body)
}

func newDriver(t *testing.T, baseURL string) *wave.Driver {
	t.Helper()
	return operatortest.New[*wave.Driver](t, suite(t), baseURL)
}

func payCall() operator.PayCall {
	call := operatortest.SamplePay(platform, "", "web")
	call.Amount, call.MSISDN = "1000.00", "770000000"
	call.ReturnURL, call.CancelURL = "https://shop.example/back?a=1&b=2", "https://shop.example/cancel"
	return call
}

func statusCall() operator.StatusCall {
	return operator.StatusCall{Call: payCall().Call, Channel: "web", Lang: "fr", Amount: "1000.00", Currency: "XOF"}
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

func errorBody(code string) string { return fmt.Sprintf(`{"code":%q,"message":"m"}`, code) }

func listOf(sessions ...string) string { return `{"result":[` + strings.Join(sessions, ",") + `]}` }

func TestGoldenCreate(t *testing.T) {
	stub := suite(t).Stub(t, respond(200, operatortest.ReadFile(t, "session-open.json")))
	got := newDriver(t, stub.URL).Pay(t.Context(), payCall())
	want := operator.PayResponse{
		Result:     operator.Result{Outcome: operator.Succeeded, HTTPStatus: 200},
		PayToken:   "cos-1example",
		PaymentURL: "https://pay.wave.com/c/cos-1example?a=1000&c=XOF&m=Demo%20Shop",
		NotifToken: notifToken,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	wantText := "POST /v1/checkout/sessions\nAuthorization: Bearer " + apiKey + "\n\n" +
		operatortest.ReadFile(t, "create-request.json")
	if diff := cmp.Diff(wantText, stub.Requests()[0].Text("Authorization")); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestPayerIsOptional(t *testing.T) {
	stub := suite(t).Stub(t, respond(200, operatortest.ReadFile(t, "session-open.json")))
	call := payCall()
	call.MSISDN = ""
	newDriver(t, stub.URL).Pay(t.Context(), call)
	if body := stub.Requests()[0].Body; strings.Contains(body, "restrict_payer_mobile") {
		t.Errorf("body %s restricts the payer", body)
	}
}

func TestCreateOutcomes(t *testing.T) {
	open := func(field, value string) operatortest.Responder {
		return respond(200, changed(t, "session-open.json", field, value))
	}
	suite(t).CheckPayments(t, payCall(), operatortest.Outcomes{
		operatortest.Succeeded: {"amount as a number": open("amount", "1000")},
		operatortest.OurFault: {
			"validation":   respond(400, errorBody("request-validation-error")),
			"revoked key":  respond(401, errorBody("api-key-revoked")),
			"nested error": respond(401, `{"error":`+errorBody("invalid-auth")+`}`),
			"no scope":     respond(403, errorBody("insufficient-scope")),
		},
		operatortest.Unavailable: {"rate": respond(429, errorBody("too-many-requests"))},
		operatortest.KnownKey:    {"mismatch": respond(409, errorBody("idempotency-mismatch"))},
		operatortest.Unknown: {
			"other 400":          respond(400, errorBody("new-code")),
			"other 401":          respond(401, `{"message":"very-private"}`),
			"firewall":           respond(403, "<html>very-private</html>"),
			"not found":          respond(404, errorBody("checkout-session-not-found")),
			"rate of a firewall": respond(429, ""),
			"500":                respond(500, errorBody("internal")),
			"503":                respond(503, errorBody("service-unavailable")),
			"other amount":       open("amount", `"100"`),
			"other currency":     open("currency", `"XAF"`),
			"other order":        open("client_reference", `"DemoShop_4"`),
			"no page":            open("wave_launch_url", "null"),
			"already paid":       respond(200, operatortest.ReadFile(t, "session-paid.json")),
			"unknown status":     open("payment_status", `"new"`),
		},
	})
}

func TestRetrySearchesFirst(t *testing.T) {
	open, paid := operatortest.ReadFile(t, "session-open.json"), operatortest.ReadFile(t, "session-paid.json")
	other := func(field, value string) string { return changed(t, "session-open.json", field, value) }
	expired := other("checkout_status", `"expired"`)
	call := payCall()
	call.MayRepeat = true
	found := func(sessions ...string) operatortest.Responder { return respond(200, listOf(sessions...)) }
	for want, searches := range (operatortest.Outcomes{
		operatortest.Succeeded: {
			"no session":      found(),
			"no session, 404": respond(404, errorBody("checkout-session-not-found")),
		},
		operatortest.Succeeded.Sent(0): {
			"open session":     found(open),
			"expired and open": found(expired, open),
		},
		operatortest.KnownKey.Sent(0): {
			"expired session":          found(expired),
			"paid and open":            found(open, paid),
			"open with another amount": found(other("amount", `"7"`)),
			"unreadable session":       found("{}"),
		},
		operatortest.Unknown.Sent(0): {
			"sessions of another order": found(other("client_reference", `"DemoShop_421"`)),
			"no list":                   respond(200, "{}"),
			"null":                      respond(200, `{"result":null}`),
			"text":                      respond(200, `{"result":""}`),
			"list of texts":             found(`"x"`),
			"HTML":                      respond(200, "<html>"),
			"other 404":                 respond(404, "{}"),
			"key":                       respond(401, errorBody("invalid-auth")),
			"down":                      respond(503, ""),
			"cut":                       operatortest.CloseConnection(),
		},
	}) {
		for name, search := range searches {
			bench := suite(t)
			bench.Preparatory = func(r *http.Request) operatortest.Responder {
				if r.Method+" "+r.RequestURI == "GET /v1/checkout/sessions/search?client_reference=DemoShop_42" {
					return search
				}
				return nil
			}
			bench.CheckPayments(t, call, operatortest.Outcomes{want: {name: respond(200, open)}})
		}
	}
}

func TestUnsentCalls(t *testing.T) {
	suite(t).CheckUnsent(t, payCall(), map[operatortest.Proof]map[string]func(*operator.PayCall){
		operatortest.OurFault: {
			"amount":  func(c *operator.PayCall) { c.Amount = "10.5" },
			"number":  func(c *operator.PayCall) { c.MSISDN = "12" },
			"country": func(c *operator.PayCall) { c.Country, c.MSISDN = "CI", "" },
		},
	})
}

func TestLookup(t *testing.T) {
	session := func(payment, checkout string) string {
		return changed(t, "session-paid.json", "payment_status", `"`+payment+`"`, "checkout_status", `"`+checkout+`"`)
	}
	report := func(status ledger.Status, reference string) operator.StatusResponse {
		return operatortest.WithStatus(operator.StatusReport{
			Status: status, Amount: "1000", Currency: "XOF", OperatorReference: reference,
		})
	}
	found := func(sessions ...string) operatortest.Responder { return respond(200, listOf(sessions...)) }
	const reference = "TCN4Y4ZC3FM"
	open, paid := operatortest.ReadFile(t, "session-open.json"), operatortest.ReadFile(t, "session-paid.json")
	suite(t).CheckLookups(t, statusCall(), operatortest.Lookups{
		report(ledger.Successful, reference): {
			"paid":             found(paid),
			"paid late":        found(session("succeeded", "expired")),
			"expired and paid": found(session("processing", "expired"), paid),
		},
		report(ledger.Pending, ""): {
			"open":             found(open),
			"expired and open": found(session("processing", "expired"), open),
		},
		report(ledger.Pending, reference): {
			"in progress":        found(session("processing", "complete")),
			"cancelled but open": found(session("cancelled", "open")),
		},
		report(ledger.Expired, reference): {"expired": found(session("processing", "expired"))},
		report(ledger.Cancelled, reference): {
			"cancelled":             found(session("cancelled", "complete")),
			"cancelled and expired": found(session("processing", "expired"), session("cancelled", "expired")),
		},
		operatortest.UnknownStatus: {
			"expired and unknown":    found(session("processing", "expired"), session("new", "open")),
			"paid without an amount": found(changed(t, "session-paid.json", "amount", "null")),
			"unknown":                found(session("reversed", "complete")),
		},
		operatortest.OrderNotFound: {"none": found()},
	})
}
