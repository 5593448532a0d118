package orangewebpay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func TestLookup(t *testing.T) {
	body := func(status string) operatortest.Responder {
		return operatortest.Respond(201, `{"status":"`+status+`","order_id":"DemoShop_42","txnid":""}`)
	}
	cases := []struct {
		name string
		step operatortest.Responder
		want ledger.Status
	}{
		{"initiated", body("INITIATED"), ledger.Pending},
		{"pending", body("PENDING"), ledger.Pending},
		{"success", body("SUCCESS"), ledger.Successful},
		{"failed", body("FAILED"), ledger.Failed},
		{"expired", body("EXPIRED"), ledger.Expired},
		{"unknown", body("PAID"), ""},
		{"lower case", body("success"), ""},
		{"no status", operatortest.Respond(201, `{"order_id":"DemoShop_42"}`), ""},
		{"no order", operatortest.Respond(201, `{"status":"SUCCESS"}`), ""},
		{"another order", operatortest.Respond(201, `{"status":"SUCCESS","order_id":"DemoShop_4"}`), ""},
		{"status twice", operatortest.Respond(201, `{"status":"X","status":"SUCCESS","order_id":"DemoShop_42"}`), ""},
		{"success with 400", operatortest.Respond(400, `{"status":"SUCCESS","order_id":"DemoShop_42"}`), ""},
		{"wrong amount", orangeError(400, "23"), ""},
		{"not found", orangeError(404, "60"), ""},
		{"HTML", operatortest.Respond(200, "<html>"), ""},
		{"cut", operatortest.CloseConnection(), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			stub := operatortest.NewStubOperator(t, token(firstToken, "3600"), c.step)
			got := newDriver(t, account(stub.URL), newClock()).LookUpPayment(t.Context(), statusCall())
			if got.Status != c.want || (got.Cause == nil) != (c.want != "") || got.OrderNotFound {
				t.Errorf("status %q, not found %v, cause %v; want %q", got.Status, got.OrderNotFound, got.Cause, c.want)
			}
		})
	}
}

// A lookup goes to the segment of its account. operator check names the platform's first country for each account.
func TestLookupUsesTheAccountsSegment(t *testing.T) {
	stub := operatortest.NewStubOperator(t, token(firstToken, "3600"),
		operatortest.Respond(201, operatortest.ReadFile(t, "status-response.json")))
	fields := account(stub.URL)
	fields["segment"] = "bf"
	call := statusCall()
	call.DriverData = call.OrderID
	got := newDriver(t, fields, newClock()).LookUpPayment(t.Context(), call)
	const path = "/orange-money-webpay/bf/v1/transactionstatus"
	if requests := stub.Requests(); got.Status != ledger.Successful || requests[len(requests)-1].Path != path {
		t.Errorf("status %q, %v", got.Status, got.Cause)
	}
}

func TestLookupRenewsToken(t *testing.T) {
	stub := operatortest.NewStubOperator(t, token(firstToken, "3600"), orangeError(401, "42"), token(nextToken, "3600"),
		operatortest.Respond(201, operatortest.ReadFile(t, "status-response.json")))
	got := newDriver(t, account(stub.URL), newClock()).LookUpPayment(t.Context(), statusCall())
	if got.Status != ledger.Successful || got.Cause != nil {
		t.Errorf("status %q, %v", got.Status, got.Cause)
	}
}

func TestReadPaymentCallback(t *testing.T) {
	const notifToken = "dd497bda3b250e536186fc0663f32f40"
	read := func(status ledger.Status, reference string) operator.CallbackReport {
		return operator.CallbackReport{NotifToken: notifToken, StatusReport: operator.StatusReport{
			Status: status, OperatorReference: reference,
		}}
	}
	body := func(status string) string { return `{"status":"` + status + `","notif_token":"` + notifToken + `"}` }
	cases := []struct {
		name, body string
		want       operator.CallbackReport
	}{
		{"success", operatortest.ReadFile(t, "callback.json"), read(ledger.Successful, "MP150709.1341.A00073")},
		{"failed", body("FAILED"), read(ledger.Failed, "")},
		{"expired", body("EXPIRED"), read(ledger.Expired, "")},
		{"pending", body("PENDING"), read(ledger.Pending, "")},
		{"unknown status", body("FAILURE"), read("", "")},
		{"no status", `{"notif_token":"` + notifToken + `"}`, read("", "")},
		{"no token", `{"status":"SUCCESS","txnid":"MP1"}`, operator.CallbackReport{}},
		{"empty token", `{"status":"SUCCESS","notif_token":""}`, operator.CallbackReport{}},
		{"token twice", `{"status":"SUCCESS","notif_token":"a","notif_token":"b"}`, operator.CallbackReport{}},
		{"HTML", `<html>`, operator.CallbackReport{}},
		{"empty", ``, operator.CallbackReport{}},
	}
	driver := newDriver(t, account("https://api.orange.com"), newClock())
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, driver.ReadPaymentCallback([]byte(c.body))); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}
