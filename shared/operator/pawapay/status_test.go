package pawapay_test

import (
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func found(data string) string { return `{"status":"FOUND","data":` + data + `}` }

func sampleLookup() operator.StatusCall {
	return operator.StatusCall{Call: samplePay().Call, Channel: "tpe", Lang: "fr", Amount: "1500", Currency: "XOF"}
}

// completed is the report of completed.json.
var completed = operator.StatusReport{
	Status: ledger.Successful, Amount: "1500.00", Currency: "XOF", MSISDN: "2250707070707", OperatorReference: "tx-1",
}

func TestLookup(t *testing.T) {
	only := func(status ledger.Status, reason ledger.FailureReason) operator.StatusResponse {
		return operatortest.WithStatus(operator.StatusReport{Status: status, Reason: reason})
	}
	failed := func(code string) operatortest.Responder {
		return respond(200, found(data("FAILED", `,"failureReason":{"failureCode":"`+code+`","failureMessage":"m"}`)))
	}
	suite(t).CheckLookups(t, sampleLookup(), operatortest.Lookups{
		operatortest.WithStatus(completed): {
			"completed": respond(200, found(operatortest.ReadFile(t, "completed.json"))),
		},
		only(ledger.Cancelled, ""):                 {"not approved": failed("PAYMENT_NOT_APPROVED")},
		only(ledger.Failed, ledger.NotEnoughFunds): {"funds": failed("INSUFFICIENT_BALANCE")},
		only(ledger.Failed, ledger.LimitReached): {
			"limit":        failed("PAYER_LIMIT_REACHED"),
			"wallet limit": failed("WALLET_LIMIT_REACHED"),
		},
		only(ledger.Failed, ledger.WalletUnknown): {"no wallet": failed("PAYER_NOT_FOUND")},
		only(ledger.Failed, ""): {
			"another payment": failed("PAYMENT_IN_PROGRESS"),
			"new code":        failed("SOMETHING_NEW"),
			"unspecified":     failed("UNSPECIFIED_FAILURE"),
			"no reason":       respond(200, found(data("FAILED", `,"failureReason":null`))),
		},
		operatortest.UnknownStatus: {
			"completed without amount": respond(200, found(data("COMPLETED", `,"currency":"XOF"`))),
		},
		operatortest.OrderNotFound: {"not found": respond(200, `{"status":"NOT_FOUND"}`)},
		operatortest.Unread: {
			"404":                  respond(404, `{"status":"NOT_FOUND"}`),
			"another deposit":      respond(200, found(`{"depositId":"x","status":"COMPLETED"}`)),
			"no deposit":           respond(200, `{"status":"FOUND"}`),
			"no data status":       respond(200, found(`{"depositId":"`+depositID+`"}`)),
			"data of another type": respond(200, `{"status":"FOUND","data":[]}`),
			"status twice":         respond(200, `{"status":"FOUND","status":"NOT_FOUND"}`),
			"401":                  respond(401, failure("NO_AUTHENTICATION")),
			"500":                  respond(500, failure("UNKNOWN_ERROR")),
		},
	})
}

func TestCallback(t *testing.T) {
	pending := operator.StatusReport{Status: ledger.Pending}
	suite(t).CheckCallbacks(t, map[operator.CallbackReport]map[string]string{
		{OrderID: "DemoShop_42", UpstreamKey: depositID, StatusReport: completed}: {
			"completed": operatortest.ReadFile(t, "completed.json"),
		},
		{OrderID: "DemoShop_42", UpstreamKey: depositID, StatusReport: pending}: {
			"metadata list":    data("PROCESSING", `,"metadata":[{"a":"b"},{"orderId":"DemoShop_42"}]`),
			"client reference": data("PROCESSING", `,"clientReferenceId":"DemoShop_42"`),
		},
		{UpstreamKey: depositID}: {"no order": data("QUEUED", "")},
		{StatusReport: operator.StatusReport{Amount: "1", Currency: "XOF"}}: {
			"payout": `{"payoutId":"p","status":"COMPLETED","amount":"1","currency":"XOF"}`,
		},
		{}: {"status twice": `{"status":"FAILED","status":"COMPLETED"}`},
	})
}

// No response but a 200 makes a deposit succeed.
func FuzzResponse(f *testing.F) {
	isRefusal := func(status int, body string) bool {
		return (status == 200 || status/100 == 4) && strings.Contains(body, "{")
	}
	suite(f).Fuzz(f, operatortest.Certain{
		Succeeded:  func(status int, _ string) bool { return status == 200 },
		Refused:    isRefusal,
		NotApplied: isRefusal,
	}, found(operatortest.ReadFile(f, "completed.json")), data("ACCEPTED", ""), rejected("INVALID_AMOUNT"),
		failure("AUTHENTICATION_ERROR"))
}

func FuzzCallback(f *testing.F) {
	suite(f).FuzzCallback(f, operatortest.ReadFile(f, "completed.json"),
		data("FAILED", `,"metadata":[{"orderId":"DemoShop_42"}]`))
}
