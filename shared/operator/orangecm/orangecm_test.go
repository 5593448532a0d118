package orangecm_test

import (
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

const (
	platform = "orange-cm"
	payToken = "MP2201010123456789ABCDEF0123"
	token    = `{"access_token":"secret-token-1","scope":"default","token_type":"Bearer","expires_in":2496}`
	prepared = `{"message":"Payment request successfully initiated","data":{"payToken":"` + payToken + `"}}`
)

// fields are an account's fields without its address.
func fields() map[string]string {
	return map[string]string{
		"consumer_key": "ck", "consumer_secret": "secret-cs", "api_user": "apiuser", "api_password": "secret-api",
		"channel_msisdn": "691000001", "pin": "8642",
	}
}

func secretOf(t *testing.T, baseURL string, account map[string]string) secret.Static {
	t.Helper()
	account["base_url"] = baseURL
	return operatortest.Secret(platform, "main", account)
}

func newDriver(t *testing.T, baseURL string, account map[string]string) *orangecm.Driver {
	t.Helper()
	now := time.Now
	accounts := credentials.NewReader(secretOf(t, baseURL, account), now, operator.CheckBaseURL)
	return orangecm.New(accounts, upstream.NewClient(nil), upstream.NewTokens(now, nil))
}

func payCall() operator.PayCall {
	return operator.PayCall{
		Call: operator.Call{
			Platform: platform, AccountID: "main", Operator: "orange", Country: "CM", MCO: "OCM",
			OrderID: "ORD1", UpstreamKey: "ORD1", DriverData: payToken,
		},
		Channel: "ussd", Lang: "fr", Amount: "100.00", Currency: "XAF", Reference: "Demo Shop",
		NotifyURL: "https://gateway.example.com/callbacks/v1/payments/orange/ORD1/token",
		MSISDN:    "+237690000002", OTP: operatortest.SampleOTP, State: "cart-7",
	}
}

func statusCall() operator.StatusCall {
	return operator.StatusCall{Call: payCall().Call, Channel: "ussd", Amount: "100.00", Currency: "XAF"}
}

// private are texts that no fault may contain.
var private = []string{"secret-", "8642", "690000002", operatortest.SampleOTP, "NGUEMA"}

func checkResult(t *testing.T, got operator.Result, outcome operator.Outcome, kind fault.Kind) {
	t.Helper()
	operatortest.CheckResult(t, got, outcome, kind, private)
}

// The requests of a payment and its lookup, byte for byte, as the examples of Orange's document have them. It masks the
// numbers and the PIN, and leaves out the texts.
func TestDocumentedExamples(t *testing.T) {
	stub := operatortest.NewStubOperator(t, operatortest.Respond(200, token), operatortest.Respond(200, prepared),
		operatortest.Respond(200, operatortest.ReadFile(t, "pay-response.json")),
		operatortest.Respond(200, operatortest.ReadFile(t, "status-success.json")))
	driver := newDriver(t, stub.URL, fields())
	driverData, result := driver.Prepare(t.Context(), payCall())
	if driverData != payToken {
		t.Fatalf("data of the driver %q: %v", driverData, result.Fault)
	}
	response := driver.Pay(t.Context(), payCall())
	checkResult(t, response.Result, operator.Succeeded, 0)
	if response.DriverData != payToken || response.OperatorReference != "MP260101.1000.B00001" {
		t.Errorf("response %+v", response)
	}
	want := operator.StatusResponse{StatusReport: operator.StatusReport{
		Status: ledger.Successful, Amount: "100", MSISDN: "690000002", OperatorReference: "MP260101.1000.B00001",
	}}
	if diff := cmp.Diff(want, driver.LookUpPayment(t.Context(), statusCall())); diff != "" {
		t.Errorf("lookup (-want +got):\n%s", diff)
	}
	headers := []string{"Authorization", "X-Auth-Token", "Content-Type", "Content-Length"}
	operatortest.CheckRequests(t, stub, headers, "token.http", "init.http", "pay.http", "paymentstatus.http")
}

// Every form of the payer's number and of the amount that the platform takes, and the parts that it does not.
func TestMerchantParts(t *testing.T) {
	cases := []struct {
		name string
		edit func(*operator.PayCall)
		part string // "" for a request that is sent
	}{
		{"national", func(c *operator.PayCall) { c.MSISDN = "690000002" }, ""},
		{"trunk zero", func(c *operator.PayCall) { c.MSISDN = "0690000002" }, ""},
		{"double zero", func(c *operator.PayCall) { c.MSISDN = "00237690000002" }, ""},
		{"no plus", func(c *operator.PayCall) { c.MSISDN = "237690000002" }, ""},
		{"leading zeros", func(c *operator.PayCall) { c.Amount = "0100" }, ""},
		{"no number", func(c *operator.PayCall) { c.MSISDN = "" }, "user_msisdn"},
		{"another country", func(c *operator.PayCall) { c.MSISDN = "+2250707070707" }, "user_msisdn"},
		{"too short", func(c *operator.PayCall) { c.MSISDN = "69000000" }, "user_msisdn"},
		{"decimals", func(c *operator.PayCall) { c.Amount = "100.50" }, "amount"},
		{"zero", func(c *operator.PayCall) { c.Amount = "0" }, "amount"},
		{"another currency", func(c *operator.PayCall) { c.Currency = "USD" }, "currency"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, operatortest.Respond(200, token),
				operatortest.Respond(200, operatortest.ReadFile(t, "pay-response.json")))
			driver := newDriver(t, stub.URL, fields())
			call := payCall()
			c.edit(&call)
			response := driver.Pay(t.Context(), call)
			if c.part == "" {
				checkResult(t, response.Result, operator.Succeeded, 0)
				if body := stub.Requests()[1].Body; !strings.Contains(body, `"690000002"`) ||
					!strings.Contains(body, `"amount":"100"`) {
					t.Errorf("body %s", body)
				}
				return
			}
			_, preparation := driver.Prepare(t.Context(), call)
			for _, result := range []operator.Result{response.Result, preparation} {
				if result.Outcome != operator.NotApplied || result.Fault.Part != c.part {
					t.Errorf("outcome %d, %v", result.Outcome, result.Fault)
				}
				operatortest.CheckPrivate(t, result.Fault, private)
			}
			if sent := stub.Requests(); len(sent) != 0 {
				t.Errorf("%d requests", len(sent))
			}
		})
	}
}

// Unusable fields refuse the account, and nothing is sent.
func TestAccounts(t *testing.T) {
	stub := operatortest.NewStubOperator(t)
	for _, field := range newDriver(t, stub.URL, fields()).AccountFields() {
		if field.Path == "base_url" {
			continue
		}
		account := fields()
		account[field.Path] = "a: secret-b\n"
		driver := newDriver(t, stub.URL, account)
		_, err := driver.FindAccount(t.Context(), platform, "")
		if f := fault.FromError(err); f == nil || f.Kind != fault.IntegrationRejected ||
			!strings.Contains(f.Error(), field.Path) {
			t.Errorf("%s: %v", field.Path, err)
		}
		operatortest.CheckPrivate(t, err, private)
		checkResult(t, driver.Pay(t.Context(), payCall()).Result, operator.NotApplied, fault.IntegrationRejected)
		_, result := driver.Prepare(t.Context(), payCall())
		checkResult(t, result, operator.NotApplied, fault.IntegrationRejected)
		if found := driver.LookUpPayment(t.Context(), statusCall()); found.Responded() {
			t.Errorf("a lookup without an account: %+v", found)
		}
	}
	driver := newDriver(t, stub.URL, fields())
	if id, err := driver.FindAccount(t.Context(), platform, ""); id != "main" || err != nil {
		t.Errorf("current account %q, %v", id, err)
	}
	if _, err := driver.FindAccount(t.Context(), platform, "gone"); err == nil {
		t.Error("an unknown account is usable")
	}
	unprepared := payCall()
	unprepared.DriverData = ""
	checkResult(t, driver.Pay(t.Context(), unprepared).Result, operator.NotApplied, fault.OperatorUnavailable)
	if sent := stub.Requests(); len(sent) != 0 {
		t.Errorf("%d requests were sent", len(sent))
	}
}
