package orangewebpay_test

import (
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func TestLookup(t *testing.T) {
	suite(t).CheckLookups(t, statusCall(), operatortest.Lookups{
		operatortest.Unread: {
			"no status":        respond(201, `{"order_id":"DemoShop_42"}`),
			"no order":         respond(201, `{"status":"SUCCESS"}`),
			"another order":    respond(201, `{"status":"SUCCESS","order_id":"DemoShop_4"}`),
			"status twice":     respond(201, `{"status":"X","status":"SUCCESS","order_id":"DemoShop_42"}`),
			"success with 400": respond(400, `{"status":"SUCCESS","order_id":"DemoShop_42"}`),
			"wrong amount":     orangeError(400, "23"),
			"not found":        orangeError(404, "60"),
		},
	})
}

// A lookup goes to the segment of its account. operator check names the platform's first country for each account.
func TestLookupUsesTheAccountsSegment(t *testing.T) {
	bench := suite(t).With(map[string]any{"segment": "bf"})
	stub := bench.Stub(t, respond(201, operatortest.ReadFile(t, "status-response.json")))
	call := statusCall()
	call.DriverData = call.OrderID
	got := bench.LookUp(t, stub, call)
	const path = "/orange-money-webpay/bf/v1/transactionstatus"
	if got.Status != ledger.Successful || stub.Requests()[0].Path != path {
		t.Errorf("status %q, %v", got.Status, got.Cause)
	}
}

func TestReadPaymentCallback(t *testing.T) {
	suite(t).CheckCallbacks(t, map[operator.CallbackReport]map[string]string{
		{NotifToken: notifToken, StatusReport: operator.StatusReport{
			Status: ledger.Successful, OperatorReference: "MP150709.1341.A00073",
		}}: {"success": operatortest.ReadFile(t, "callback.json")},
		{NotifToken: notifToken}: {"no status": `{"notif_token":"` + notifToken + `"}`},
		{}: {
			"no token":    `{"status":"SUCCESS","txnid":"MP1"}`,
			"empty token": `{"status":"SUCCESS","notif_token":""}`,
			"token twice": `{"status":"SUCCESS","notif_token":"a","notif_token":"b"}`,
		},
	})
}
