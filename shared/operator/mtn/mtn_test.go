package mtn_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/mtn"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/secret"
)

const (
	platform  = "mtn-momo"
	apiUser   = "c72025f5-5cd1-4630-99e4-8ba4722fad56"
	reference = "0f0e6a4c-7c33-4a7e-9f3b-2f6f6a0f5d11"
	callback  = "https://gateway.example.com/callbacks/v1/payments/mtn/DemoShop_42/signed-path"
)

// secrets are texts that no fault may contain.
func secrets() []string {
	return []string{
		"api-key-very-private", "subscription-very-private", "first-token-very-private", "second-token-very-private",
		"0707070707", operatortest.SampleOTP, "very-private",
	}
}

func respond(status int, body string) operatortest.Responder {
	return operatortest.Respond(status, body)
}

// goodAccount returns the fields of an account in Ivory Coast.
func goodAccount(baseURL string) map[string]string {
	return map[string]string{
		"base_url": baseURL, "api_user": apiUser, "api_key": "api-key-very-private",
		"subscription_key": "subscription-very-private", "target_environment": "mtnivorycoast",
	}
}

func newDriver(account map[string]string, now func() time.Time) *mtn.Driver {
	return newDriverOf(secret.Static(marshalAccount(account)), now)
}

func newDriverOf(reader secret.Reader, now func() time.Time) *mtn.Driver {
	accounts := credentials.NewReader(reader, now, operator.CheckBaseURL)
	return mtn.New(accounts, upstream.NewClient(nil), upstream.NewTokens(now, nil))
}

func marshalAccount(account map[string]string) []byte {
	return operatortest.Secret(platform, "ci", account)
}

// stub starts MTN's platform: it responds with tokens, and with the responders to business calls.
func stub(t *testing.T, business ...operatortest.Responder) *operatortest.StubOperator {
	t.Helper()
	operations := operatortest.NewStubOperator(t)
	token, next := operatortest.ReadFile(t, "token.json"), 0
	var mu sync.Mutex
	operations.SetResponses(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		step := business[min(next, len(business)-1)]
		if r.URL.Path == "/collection/token/" {
			step = respond(200, token)
			token = strings.Replace(token, "first-", "second-", 1)
		} else {
			next++
		}
		mu.Unlock()
		step(w, r)
	})
	return operations
}

func businessRequests(s *operatortest.StubOperator) []operatortest.Request {
	var found []operatortest.Request
	for _, r := range s.Requests() {
		if !strings.HasPrefix(r.Path, "/collection/token/") {
			found = append(found, r)
		}
	}
	return found
}

func samplePay() operator.PayCall {
	call := operatortest.SamplePay("mtn", "ci", "tpe")
	call.Platform, call.UpstreamKey, call.OrderID = platform, reference, "DemoShop_42"
	call.Amount, call.NotifyURL = "500.00", callback
	return call
}

func sampleLookup() operator.StatusCall {
	return operator.StatusCall{Call: samplePay().Call, Channel: "tpe", Lang: "fr", Amount: "500.00", Currency: "XOF"}
}

func TestGoldenPayment(t *testing.T) {
	platformStub := stub(t, respond(202, ""))
	result := newDriver(goodAccount(platformStub.URL), time.Now).Pay(t.Context(), samplePay())
	if diff := cmp.Diff(operator.PayResponse{Result: operator.Result{
		Outcome: operator.Succeeded, HTTPStatus: 202,
	}}, result); diff != "" {
		t.Fatalf("response (-want +got):\n%s", diff)
	}
	requests := platformStub.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(apiUser+":api-key-very-private"))
	checkRequest(t, requests[0], "POST /collection/token/", map[string]string{
		"Authorization": basic, "Ocp-Apim-Subscription-Key": "subscription-very-private",
		"X-Target-Environment": "mtnivorycoast", "Content-Length": "0", "Content-Type": "",
	})
	checkRequest(t, requests[1], "POST /collection/v1_0/requesttopay", map[string]string{
		"Authorization": "Bearer first-token-very-private", "X-Reference-Id": reference, "X-Callback-Url": callback,
		"Ocp-Apim-Subscription-Key": "subscription-very-private", "X-Target-Environment": "mtnivorycoast",
		"Content-Type": "application/json",
	})
	want := compact(t, operatortest.ReadFile(t, "request.json"))
	if diff := cmp.Diff(want, compact(t, requests[1].Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestGoldenLookup(t *testing.T) {
	platformStub := stub(t, respond(200, operatortest.ReadFile(t, "successful.json")))
	newDriver(goodAccount(platformStub.URL), time.Now).LookUpPayment(t.Context(), sampleLookup())
	request := businessRequests(platformStub)[0]
	checkRequest(t, request, "GET /collection/v1_0/requesttopay/"+reference, map[string]string{
		"Authorization":             "Bearer first-token-very-private",
		"Ocp-Apim-Subscription-Key": "subscription-very-private", "X-Target-Environment": "mtnivorycoast",
	})
	if request.Body != "" {
		t.Errorf("a lookup with the body %q", request.Body)
	}
}

func checkRequest(t *testing.T, got operatortest.Request, line string, header map[string]string) {
	t.Helper()
	if got.Method+" "+got.Path != line {
		t.Errorf("request %s %s, want %s", got.Method, got.Path, line)
	}
	for name, value := range header {
		if got.Header.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), value)
		}
	}
}

// compact parses JSON, so that only its fields and values are compared.
func compact(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestFindAccount(t *testing.T) {
	with := func(field, value string) map[string]string {
		account := goodAccount("https://proxy.momoapi.mtn.com")
		account[field] = value
		return account
	}
	sandbox := with("target_environment", "sandbox")
	sandbox["currency"] = "EUR"
	cases := []struct {
		name    string
		account map[string]string
		field   string // named by the error; "" for a usable account
	}{
		{"complete", goodAccount("https://proxy.momoapi.mtn.com"), ""},
		{"sandbox with a currency", sandbox, ""},
		{"production with a currency, which is not used", with("currency", "EUR"), ""},
		{"no address", with("base_url", ""), "base_url"},
		{"user of another form", with("api_user", "user:name"), "api_user"},
		{"no key", with("api_key", ""), "api_key"},
		{"subscription key with a line end", with("subscription_key", "a\n"), "subscription_key"},
		{"Congo-Brazzaville", with("target_environment", "mtncongo"), "target_environment"},
		{"no environment", with("target_environment", ""), "target_environment"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id, err := newDriver(c.account, time.Now).FindAccount(t.Context(), platform, "")
			if c.field == "" {
				if err != nil || id != "ci" {
					t.Fatalf("account %q, %v", id, err)
				}
				return
			}
			if f := fault.FromError(err); f == nil || f.Kind != fault.IntegrationRejected || id != "" ||
				!strings.Contains(err.Error(), c.field) {
				t.Fatalf("account %q, %v", id, err)
			}
			operatortest.CheckPrivate(t, err, secrets())
		})
	}
}

// A call that no account can make is not sent.
func TestUnsentPayments(t *testing.T) {
	change := func(f func(*operator.PayCall)) operator.PayCall {
		call := samplePay()
		f(&call)
		return call
	}
	const ours, merchants = fault.IntegrationRejected, fault.InvalidPart
	cases := []struct {
		name string
		kind fault.Kind
		call operator.PayCall
	}{
		{"another country", ours, change(func(c *operator.PayCall) { c.Country, c.MSISDN = "CM", "670000000" })},
		{"no number", merchants, change(func(c *operator.PayCall) { c.MSISDN = "" })},
		{"number of elsewhere", merchants, change(func(c *operator.PayCall) { c.MSISDN = "+237670000000" })},
		{"decimals", merchants, change(func(c *operator.PayCall) { c.Amount = "500.5" })},
		{"unknown account", ours, change(func(c *operator.PayCall) { c.AccountID = "gone" })},
		{"platform without one", ours, change(func(c *operator.PayCall) { c.Platform = "orange-cm" })},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			platformStub := stub(t, respond(202, ""))
			result := newDriver(goodAccount(platformStub.URL), time.Now).Pay(t.Context(), c.call)
			if result.Outcome != operator.NotApplied || result.Fault.Kind != c.kind {
				t.Fatalf("outcome %d, %v", result.Outcome, result.Fault)
			}
			if len(platformStub.Requests()) != 0 {
				t.Error("a request was sent")
			}
			operatortest.CheckPrivate(t, result.Fault, secrets())
		})
	}
}

// In the sandbox every country is sent in EUR, and a lookup reports the merchant's currency.
func TestSandbox(t *testing.T) {
	euros := strings.ReplaceAll(operatortest.ReadFile(t, "successful.json"), `"XOF"`, `"EUR"`)
	successful := operatortest.ReadFile(t, "successful.json")
	platformStub := stub(t, respond(202, ""), respond(200, euros), respond(200, successful))
	account := maps.Clone(goodAccount(platformStub.URL))
	account["target_environment"], account["currency"] = "sandbox", "EUR"
	driver := newDriver(account, time.Now)
	call := samplePay()
	call.Country, call.MSISDN, call.Currency = "CM", "670000000", "XAF"
	if result := driver.Pay(t.Context(), call); result.Outcome != operator.Succeeded {
		t.Fatalf("outcome %d, %v", result.Outcome, result.Fault)
	}
	request := businessRequests(platformStub)[0]
	if !strings.Contains(request.Body, `"currency":"EUR"`) || !strings.Contains(request.Body, `"237670000000"`) ||
		request.Header.Get("X-Target-Environment") != "sandbox" {
		t.Errorf("request %v", request)
	}
	if found := driver.LookUpPayment(t.Context(), sampleLookup()); found.Currency != "XOF" {
		t.Errorf("currency %q, want the merchant's", found.Currency)
	}
	lookup := sampleLookup()
	lookup.Currency = "XAF"
	if found := driver.LookUpPayment(t.Context(), lookup); found.Currency != "XOF" {
		t.Errorf("another currency became %q", found.Currency)
	}
	if report := driver.ReadPaymentCallback([]byte(euros)); report.Currency != "" || report.Status == "" {
		t.Errorf("callback %+v", report)
	}
}
