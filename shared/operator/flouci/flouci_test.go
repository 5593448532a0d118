package flouci_test

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
	"mobilegateway/shared/operator/flouci"
	"mobilegateway/shared/operator/upstream"
)

const (
	platform   = "flouci-checkout"
	privateKey = "private-key-very-private"
)

// start is the time of the payment, and driverData what the driver stores then.
var start = time.Unix(1795345200, 0)

const driverData = "AgCKuBm0S5uLPghBo571MQ 1795346400"

func newDriver(t testing.TB, baseURL, publicKey string, at time.Time) *flouci.Driver {
	t.Helper()
	fields := map[string]string{"base_url": baseURL, "public_key": publicKey, "private_key": privateKey}
	now := func() time.Time { return at }
	accounts := credentials.NewReader(operatortest.Secret(platform, "tn", fields), now, operator.CheckBaseURL)
	return flouci.New(accounts, upstream.NewClient(nil), now)
}

func payCall() operator.PayCall {
	call := operatortest.SamplePay(platform, "tn", "web")
	call.Amount = "1500.5"
	return call
}

func statusCall() operator.StatusCall {
	call := operatortest.SampleStatus(platform, "tn")
	call.DriverData = driverData
	return call
}

// lookUp makes a lookup at a time after the start of the payment.
func lookUp(t *testing.T, after time.Duration, step operatortest.Responder) operator.StatusResponse {
	t.Helper()
	stub := operatortest.NewStubOperator(t, step)
	return newDriver(t, stub.URL, "app-1", start.Add(after)).LookUpPayment(t.Context(), statusCall())
}

func TestGoldenRequests(t *testing.T) {
	stub := operatortest.NewStubOperator(t, operatortest.Respond(200, operatortest.ReadFile(t, "pay-response.json")),
		operatortest.Respond(200, operatortest.ReadFile(t, "status-response.json")))
	driver := newDriver(t, stub.URL, "app-1", start)
	want := operator.PayResponse{
		Result: operator.Result{Outcome: operator.Succeeded, HTTPStatus: 200}, DriverData: driverData,
		PayToken: "AgCKuBm0S5uLPghBo571MQ", PaymentURL: "https://checkout.flouci.com/shop/AgCKuBm0S5uLPghBo571MQ",
		NotifToken: "700d041e0d167eeda55f90a4a0979fbb", // derived: stored with payments, so it never changes
	}
	if diff := cmp.Diff(want, driver.Pay(t.Context(), payCall())); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	report := operator.StatusReport{Status: ledger.Successful, Amount: "1500.500"}
	status := driver.LookUpPayment(t.Context(), statusCall())
	if diff := cmp.Diff(operator.StatusResponse{StatusReport: report}, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	var lines []string
	for _, r := range stub.Requests() {
		lines = append(lines, r.Method+" "+r.Path+" "+r.Header.Get("Authorization"))
	}
	wantLines := []string{
		"POST /api/v2/generate_payment Bearer app-1:" + privateKey,
		"GET /api/v2/verify_payment/AgCKuBm0S5uLPghBo571MQ Bearer app-1:" + privateKey,
	}
	if diff := cmp.Diff(wantLines, lines); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(operatortest.ReadFile(t, "pay-request.json"), stub.Requests()[0].Body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestOutcomes(t *testing.T) {
	const failure = `{"result":{"status":0,"message":"very-private"}}`
	page := func(text, with string) string {
		return strings.Replace(operatortest.ReadFile(t, "pay-response.json"), text, with, 1)
	}
	cases := []struct {
		name, body string
		status     int
		outcome    operator.Outcome
		kind       fault.Kind
	}{
		{"page with 201", page("", ""), 201, operator.Succeeded, 0},
		{"page without our key", page(`"developer_tracking_id"`, `"other"`), 200, operator.Succeeded, 0},
		{"page of another key", page("DemoShop_42", "DemoShop_4"), 200, operator.Unknown, fault.OutcomeUnknown},
		{"page with 400", page("", ""), 400, operator.Unknown, fault.OutcomeUnknown},
		{"no id", page(`"payment_id"`, `"other"`), 200, operator.Unknown, fault.OutcomeUnknown},
		{"id with a space", page("AgCK", "Ag CK"), 200, operator.Unknown, fault.OutcomeUnknown},
		{"no link", page(`"link"`, `"other"`), 200, operator.Unknown, fault.OutcomeUnknown},
		{"failure with 200", failure, 200, operator.Unknown, fault.OutcomeUnknown},
		{"page without a flag", page(`"success"`, `"other"`), 200, operator.Succeeded, 0},
		{"page with a flag of null", page(`"success":true`, `"success":null`), 200, operator.Succeeded, 0},
		{"page of a failure", page(`"success":true`, `"success":false`), 200, operator.Unknown, fault.OutcomeUnknown},
		{"page of a failure at the root", page(`"name"`, `"success":false,"name"`), 200, operator.Unknown,
			fault.OutcomeUnknown},
		{"page with a flag as a text", page(`"success":true`, `"success":"false"`), 200, operator.Unknown,
			fault.OutcomeUnknown},
		{"link of a failure with 400", page(`"success":true,"payment_id"`, `"success":false,"message"`), 400,
			operator.Unknown, fault.OutcomeUnknown},
		{"400", failure, 400, operator.NotApplied, fault.IntegrationRejected},
		{"401", failure, 401, operator.NotApplied, fault.IntegrationRejected},
		{"403", failure, 403, operator.NotApplied, fault.IntegrationRejected},
		{"404", failure, 404, operator.Unknown, fault.OutcomeUnknown},
		{"409", failure, 409, operator.Unknown, fault.OutcomeUnknown},
		{"429", failure, 429, operator.NotApplied, fault.OperatorUnavailable},
		{"429 of a firewall", "", 429, operator.Unknown, fault.OutcomeUnknown},
		{"500", failure, 500, operator.Unknown, fault.OutcomeUnknown},
		{"503", failure, 503, operator.Unknown, fault.OutcomeUnknown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, operatortest.Respond(c.status, c.body))
			got := newDriver(t, stub.URL, "app-1", start).Pay(t.Context(), payCall())
			if got.Outcome != c.outcome || (got.DriverData != "") != (c.outcome == operator.Succeeded) {
				t.Fatalf("outcome %d, data of the driver %q, want outcome %d", got.Outcome, got.DriverData, c.outcome)
			}
			if got.Fault != nil && (got.Fault.Kind != c.kind || strings.Contains(got.Fault.Error(), "very-private")) {
				t.Errorf("fault %v, want kind %v without private text", got.Fault, c.kind)
			}
		})
	}
}

func TestUnsentCalls(t *testing.T) {
	stub := operatortest.NewStubOperator(t)
	otherCurrency := payCall()
	otherCurrency.Currency = "XOF"
	lost := statusCall()
	lost.DriverData = ""
	driver, colon := newDriver(t, stub.URL, "app-1", start), newDriver(t, stub.URL, "app:1", start)
	for name, result := range map[string]operator.Result{
		"another currency": driver.Pay(t.Context(), otherCurrency).Result,
		"a colon in a key": colon.Pay(t.Context(), payCall()).Result,
	} {
		if result.Outcome != operator.NotApplied || result.Fault.Kind != fault.IntegrationRejected {
			t.Errorf("%s: outcome %d, %v", name, result.Outcome, result.Fault)
		}
	}
	if got := driver.LookUpPayment(t.Context(), lost); got.Cause == nil || got.Responded() {
		t.Errorf("a lookup without an id: %+v", got)
	}
	if sent := stub.Requests(); len(sent) != 0 {
		t.Errorf("%d requests were sent", len(sent))
	}
}

// A failure and an expiry count only when the page has certainly ended.
func TestLookup(t *testing.T) {
	body := func(status string) string {
		return fmt.Sprintf(`{"success":true,"result":{"status":%q,"amount":"1500500"}}`, status)
	}
	const end = 20 * time.Minute
	cases := []struct {
		name, body string
		status     int
		after      time.Duration
		want       ledger.Status
	}{
		{"pending", body("PENDING"), 200, end, ledger.Pending},
		{"paid", body("SUCCESS"), 200, time.Minute, ledger.Successful},
		{"failed in time", body("FAILURE"), 200, end - time.Second, ledger.Pending},
		{"failed", body("FAILURE"), 200, end, ledger.Failed},
		{"expired in time", body("EXPIRED"), 200, end - time.Second, ledger.Pending},
		{"expired", body("EXPIRED"), 200, end, ledger.Expired},
		{"pre-authorized", body("PREAUTH_SUCCESS"), 200, end, ""},
		{"system failure", body("SYSTEM_FAILURE"), 200, end, ""},
		{"lower case", body("success"), 200, end, ""},
		{"no flag", `{"result":{"status":"SUCCESS","amount":1}}`, 200, end, ""},
		{"false flag", `{"success":false,"result":{"status":"SUCCESS","amount":1}}`, 200, end, ""},
		{"flag as a text", `{"success":"true","result":{"status":"SUCCESS","amount":1}}`, 200, end, ""},
		{"flag twice", `{"success":false,"success":true,"result":{"status":"SUCCESS","amount":1}}`, 200, end, ""},
		{"no amount", `{"success":true,"result":{"status":"SUCCESS"}}`, 200, end, ""},
		{"part of a thousandth", `{"success":true,"result":{"status":"SUCCESS","amount":1.5}}`, 200, end, ""},
		{"another key",
			strings.Replace(operatortest.ReadFile(t, "status-response.json"), "_42", "_4", 1), 200, end, ""},
		{"paid with 404", body("SUCCESS"), 404, end, ""},
		{"not found", `{"result":{"status":404,"message":"Payment not found"}}`, 404, end, ""},
		{"HTML", "<html>", 200, end, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := lookUp(t, c.after, operatortest.Respond(c.status, c.body))
			if got.Status != c.want || (got.Cause == nil) != (c.want != "") || got.OrderNotFound {
				t.Errorf("status %q, %v, want %q", got.Status, got.Cause, c.want)
			}
		})
	}
}

// The check of an account looks up an id that Flouci never made, without a time.
func TestLookupOfCheck(t *testing.T) {
	for body, want := range map[string]bool{
		`{"result":{"status":404,"message":"Payment not found"}}`: true,
		"<html>not found</html>":                                  false,
	} {
		stub := operatortest.NewStubOperator(t, operatortest.Respond(404, body))
		call := statusCall()
		call.DriverData = call.OrderID
		got := newDriver(t, stub.URL, "app-1", start).LookUpPayment(t.Context(), call)
		if got.OrderNotFound != want || got.Status != "" || got.Cause == nil {
			t.Errorf("%s: not found %v, status %q, %v", body, got.OrderNotFound, got.Status, got.Cause)
		}
	}
}
