package mtn_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

func code(text string) string {
	return `{"code":"` + text + `","message":"about 2250707070707 and api-key-very-private"}`
}

const (
	inFront401 = `{"statusCode":401,"message":"Access denied due to invalid subscription key very-private."}`
	html       = `<html><body>Request Rejected</body></html>`
)

// Each row of the documented responses to a request to pay.
func TestPaymentOutcomes(t *testing.T) {
	const (
		rejected    = fault.IntegrationRejected
		unavailable = fault.OperatorUnavailable
		unknown     = fault.OutcomeUnknown
		refused     = fault.OperatorError
	)
	cases := []struct {
		name      string
		status    int
		body      string
		outcome   operator.Outcome
		kind      fault.Kind
		reason    ledger.FailureReason
		duplicate bool
		sends     int
	}{
		{"accepted", 202, "", operator.Succeeded, 0, "", false, 1},
		{"accepted with HTML", 202, html, operator.Unknown, unknown, "", false, 1},
		{"accepted with JSON", 202, "{}", operator.Unknown, unknown, "", false, 1},
		{"200 with HTML", 200, html, operator.Unknown, unknown, "", false, 1},
		{"200 empty", 200, "", operator.Unknown, unknown, "", false, 1},
		{"201", 201, `{"status":"SUCCESSFUL"}`, operator.Unknown, unknown, "", false, 1},
		{"redirect", 302, "", operator.Unknown, unknown, "", false, 1},

		{"bare 400", 400, "", operator.Unknown, unknown, "", false, 1},
		{"400 with HTML", 400, html, operator.Unknown, unknown, "", false, 1},
		{"400 with a code", 400, code("INVALID_INPUT"), operator.NotApplied, rejected, "", false, 1},
		{"400 set-up", 400, code("INVALID_CURRENCY"), operator.NotApplied, rejected, "", false, 1},
		{"400 unknown error", 400, code("UNKNOWN_ERROR"), operator.Unknown, unknown, "", false, 1},
		{"400 in front", 400, `{"statusCode":400,"message":"m"}`, operator.NotApplied, rejected, "", false, 1},
		{"400 known code", 400, code("PAYER_NOT_FOUND"), operator.Refused, refused, ledger.WalletUnknown, false, 1},
		{"400 duplicate", 400, code("RESOURCE_ALREADY_EXIST"), operator.Unknown, unknown, "", true, 1},
		{"400 internal", 400, code("INTERNAL_PROCESSING_ERROR"), operator.Unknown, unknown, "", false, 1},

		{"401 in front", 401, inFront401, operator.NotApplied, rejected, "", false, 2},
		{"401 text number", 401, `{"statusCode":"401"}`, operator.NotApplied, rejected, "", false, 2},
		{"401 of another form", 401, `{"error":"expired"}`, operator.Unknown, unknown, "", false, 2},
		{"401 of another status", 401, `{"statusCode":500}`, operator.Unknown, unknown, "", false, 2},
		{"401 with HTML", 401, html, operator.Unknown, unknown, "", false, 2},
		{"bare 401", 401, "", operator.Unknown, unknown, "", false, 2},
		{"401 with a code", 401, code("NOT_ALLOWED"), operator.Unknown, unknown, "", false, 1},
		{"401 in front with a code", 401, `{"code":"X","statusCode":401}`, operator.NotApplied, rejected, "", false, 2},
		{"403 in front", 403, `{"statusCode":403,"message":"Forbidden"}`, operator.NotApplied, rejected, "", false, 1},
		{"bare 403", 403, "", operator.Unknown, unknown, "", false, 1},
		{"404 in front", 404, `{"statusCode":404,"message":"m"}`, operator.NotApplied, rejected, "", false, 1},
		{"404 with a code", 404, code("RESOURCE_NOT_FOUND"), operator.NotApplied, rejected, "", false, 1},
		{"bare 404", 404, html, operator.Unknown, unknown, "", false, 1},
		{"409", 409, code("RESOURCE_ALREADY_EXIST"), operator.Unknown, unknown, "", true, 1},
		{"bare 409", 409, "", operator.Unknown, unknown, "", true, 1},
		{"429 in front", 429, `{"statusCode":429,"message":"m"}`, operator.NotApplied, unavailable, "", false, 1},
		{"bare 429", 429, "", operator.Unknown, unknown, "", false, 1},

		{"callback host", 500, code("INVALID_CALLBACK_URL_HOST"), operator.NotApplied, rejected, "", false, 1},
		{"currency", 500, code("INVALID_CURRENCY"), operator.NotApplied, rejected, "", false, 1},
		{"not allowed", 500, code("NOT_ALLOWED"), operator.NotApplied, rejected, "", false, 1},
		{"environment", 500, code("NOT_ALLOWED_TARGET_ENVIRONMENT"), operator.NotApplied, rejected, "", false, 1},
		{"payee", 500, code("PAYEE_NOT_FOUND"), operator.NotApplied, rejected, "", false, 1},
		{"payee not allowed", 500, code("PAYEE_NOT_ALLOWED_TO_RECEIVE"), operator.NotApplied, rejected, "", false, 1},
		{"no wallet", 500, code("PAYER_NOT_FOUND"), operator.Refused, refused, ledger.WalletUnknown, false, 1},
		{"inactive wallet", 500, code("SENDER_ACCOUNT_NOT_ACTIVE"), operator.Refused, refused, ledger.WalletUnknown,
			false, 1},
		{"funds", 500, code("NOT_ENOUGH_FUNDS"), operator.Refused, refused, ledger.NotEnoughFunds, false, 1},
		{"limit", 500, code("PAYER_LIMIT_REACHED"), operator.Refused, refused, ledger.LimitReached, false, 1},
		{"rejected", 500, code("APPROVAL_REJECTED"), operator.Refused, refused, ledger.RefusedByPayer, false, 1},
		{"not approved", 500, code("PAYMENT_NOT_APPROVED"), operator.Refused, refused, ledger.RefusedByPayer, false, 1},
		{"cancelled", 500, code("TRANSACTION_CANCELED"), operator.Refused, refused, ledger.RefusedByPayer, false, 1},
		{"expired", 500, code("EXPIRED"), operator.Refused, refused, ledger.TimedOut, false, 1},
		{"500 duplicate", 500, code("RESOURCE_ALREADY_EXIST"), operator.Unknown, unknown, "", true, 1},
		{"internal", 500, code("INTERNAL_PROCESSING_ERROR"), operator.Unknown, unknown, "", false, 1},
		{"unknown code", 500, code("SOMETHING_NEW"), operator.Unknown, unknown, "", false, 1},
		{"code of another form", 500, code("payer 2250707070707"), operator.Unknown, unknown, "", false, 1},
		{"code twice", 500, `{"code":"EXPIRED","code":"EXPIRED"}`, operator.Unknown, unknown, "", false, 1},
		{"code and more", 500, code("EXPIRED") + "{}", operator.Unknown, unknown, "", false, 1},
		{"500 in front", 500, `{"statusCode":500,"message":"m"}`, operator.Unknown, unknown, "", false, 1},
		{"bare 500", 500, "", operator.Unknown, unknown, "", false, 1},
		{"502 with a code", 502, code("PAYER_NOT_FOUND"), operator.Unknown, unknown, "", false, 1},
		{"503 with a code", 503, code("SERVICE_UNAVAILABLE"), operator.Unknown, unknown, "", false, 1},
		{"500 unavailable", 500, code("SERVICE_UNAVAILABLE"), operator.Unknown, unknown, "", false, 1},
		{"504", 504, "", operator.Unknown, unknown, "", false, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			platformStub := stub(t, respond(c.status, c.body))
			result := newDriver(goodAccount(platformStub.URL), time.Now).Pay(t.Context(), samplePay())
			if result.Outcome != c.outcome || result.DuplicateKey != c.duplicate || result.HTTPStatus != c.status {
				t.Fatalf("%+v: %v", result, result.Fault)
			}
			if c.outcome != operator.Succeeded {
				if result.Fault.Kind != c.kind || operator.RefusalReason(result.Fault) != c.reason {
					t.Errorf("kind %d, reason %q", result.Fault.Kind, operator.RefusalReason(result.Fault))
				}
				operatortest.CheckPrivate(t, result.Fault, secrets())
			}
			if sent := len(businessRequests(platformStub)); sent != c.sends {
				t.Errorf("%d payments sent, want %d", sent, c.sends)
			}
		})
	}
}

// A refusal by a code that the driver does not know does not show refused credentials. Other refusals do.
func TestUnmappedCodes(t *testing.T) {
	for _, c := range []struct {
		status   int
		body     string
		unmapped bool
	}{
		{400, code("SOMETHING_NEW"), true},
		{404, code("SOMETHING_NEW"), true},
		{400, code("INVALID_CURRENCY"), false},
		{404, code("NOT_ALLOWED_TARGET_ENVIRONMENT"), false},
		{400, `{"statusCode":400}`, false},
		{401, inFront401, false},
		{403, `{"statusCode":403}`, false},
		{500, code("SOMETHING_NEW"), false},
		{400, code("UNKNOWN_ERROR"), false},
		{400, code("PAYER_NOT_FOUND"), false},
	} {
		platformStub := stub(t, respond(c.status, c.body))
		result := newDriver(goodAccount(platformStub.URL), time.Now).Pay(t.Context(), samplePay())
		if got := errors.Is(result.Fault, operator.ErrUnmappedCode); got != c.unmapped ||
			got && result.Outcome != operator.NotApplied {
			t.Errorf("%d %s: unmapped %v, want %v; outcome %d", c.status, c.body, got, c.unmapped, result.Outcome)
		}
	}
}

func TestLookup(t *testing.T) {
	full := func(status ledger.Status, reason ledger.FailureReason) operator.StatusReport {
		return operator.StatusReport{
			Status: status, Amount: "500", Currency: "XOF", MSISDN: "2250707070707", Reason: reason,
		}
	}
	successful := full(ledger.Successful, "")
	successful.OperatorReference = "1000000001"
	only := func(status ledger.Status, reason ledger.FailureReason) operator.StatusReport {
		return operator.StatusReport{Status: status, Reason: reason}
	}
	failed := func(reason string) string {
		return `{"externalId":"DemoShop_42","status":"FAILED","reason":` + reason + `}`
	}
	nothing := operator.StatusReport{}
	cases := []struct {
		name      string
		status    int
		body      string
		want      operator.StatusReport
		notFound  bool
		responded bool
	}{
		{"successful", 200, operatortest.ReadFile(t, "successful.json"), successful, false, true},
		{"failed", 200,
			operatortest.ReadFile(t, "failed.json"), full(ledger.Failed, ledger.WalletUnknown), false, true},
		{"failed object", 200, operatortest.ReadFile(t, "failed-object.json"),
			full(ledger.Failed, ledger.NotEnoughFunds), false, true},
		{"expired", 200, failed(`"EXPIRED"`), only(ledger.Expired, ""), false, true},
		{"expired object", 200, failed(`{"code":"EXPIRED"}`), only(ledger.Expired, ""), false, true},
		{"not performed", 200, failed(`"COULD_NOT_PERFORM_TRANSACTION"`), only(ledger.Expired, ""), false, true},
		{"rejected", 200, failed(`"APPROVAL_REJECTED"`), only(ledger.Cancelled, ""), false, true},
		{"cancelled", 200, failed(`"TRANSACTION_CANCELED"`), only(ledger.Cancelled, ""), false, true},
		{"not approved", 200, failed(`"PAYMENT_NOT_APPROVED"`), only(ledger.Cancelled, ""), false, true},
		{"limit", 200, failed(`"PAYER_LIMIT_REACHED"`), only(ledger.Failed, ledger.LimitReached), false, true},
		{"inactive wallet", 200, failed(`"SENDER_ACCOUNT_NOT_ACTIVE"`), only(ledger.Failed, ledger.WalletUnknown),
			false, true},
		{"new reason", 200, failed(`"SOMETHING_NEW"`), only(ledger.Failed, ""), false, true},
		{"reason of another type", 200, failed(`[1]`), only(ledger.Failed, ""), false, true},
		{"no reason", 200, `{"status":"FAILED"}`, only(ledger.Failed, ""), false, true},
		{"pending", 200, `{"externalId":"DemoShop_42","status":"PENDING"}`, only(ledger.Pending, ""), false, true},
		{"created", 200, `{"status":"CREATED"}`, only(ledger.Pending, ""), false, true},
		{"unknown word", 200, `{"externalId":"DemoShop_42","status":"TIMEOUT"}`, nothing, false, true},
		{"success without amount", 200, `{"externalId":"DemoShop_42","currency":"XOF","status":"SUCCESSFUL"}`,
			nothing, false, true},
		{"success without order", 200, `{"amount":"500","currency":"XOF","status":"SUCCESSFUL"}`, nothing, false, true},
		{"another order", 200, `{"externalId":"DemoShop_43","status":"FAILED"}`, nothing, false, false},
		{"no status", 200, `{"externalId":"DemoShop_42"}`, nothing, false, false},
		{"status of another type", 200, `{"status":{}}`, nothing, false, false},
		{"HTML", 200, html, nothing, false, false},
		{"accepted", 202, operatortest.ReadFile(t, "successful.json"), nothing, false, false},
		{"never created", 404, code("RESOURCE_NOT_FOUND"), nothing, true, true},
		{"no such path", 404, `{"statusCode":404,"message":"Resource not found"}`, nothing, false, false},
		{"bare 404", 404, "", nothing, false, false},
		{"500 not found", 500, code("RESOURCE_NOT_FOUND"), nothing, false, false},
		{"401", 401, inFront401, nothing, false, false},
		{"503", 503, "", nothing, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			platformStub := stub(t, respond(c.status, c.body))
			got := newDriver(goodAccount(platformStub.URL), time.Now).LookUpPayment(t.Context(), sampleLookup())
			if diff := cmp.Diff(c.want, got.StatusReport); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if got.OrderNotFound != c.notFound || got.Responded() != c.responded ||
				(got.Cause == nil) != (got.Status != "") {
				t.Errorf("not found %v, responded %v, cause %v", got.OrderNotFound, got.Responded(), got.Cause)
			}
			operatortest.CheckPrivate(t, got.Cause, secrets())
		})
	}
}

func TestCallback(t *testing.T) {
	driver := newDriver(goodAccount("https://proxy.momoapi.mtn.com"), time.Now)
	withReference := `{"referenceId":"` + reference + `",` + operatortest.ReadFile(t, "successful.json")[1:]
	report := func(key string) operator.CallbackReport {
		return operator.CallbackReport{
			StatusReport: operator.StatusReport{
				Status: ledger.Successful, Amount: "500", Currency: "XOF", MSISDN: "2250707070707",
				OperatorReference: "1000000001",
			},
			OrderID: "DemoShop_42", UpstreamKey: key,
		}
	}
	cases := []struct {
		name string
		body string
		want operator.CallbackReport
	}{
		{"without our UUID", operatortest.ReadFile(t, "successful.json"), report("")},
		{"with our UUID", withReference, report(reference)},
		{"unknown word", `{"externalId":"DemoShop_42","status":"REJECTED"}`,
			operator.CallbackReport{OrderID: "DemoShop_42"}},
		{"numbers", `{"externalId":42,"amount":500,"status":"FAILED","reason":{"code":"EXPIRED"}}`,
			operator.CallbackReport{OrderID: "42",
				StatusReport: operator.StatusReport{Status: ledger.Expired, Amount: "500"}}},
		{"success without amount", `{"externalId":"DemoShop_42","status":"SUCCESSFUL","currency":"XOF"}`,
			operator.CallbackReport{OrderID: "DemoShop_42", StatusReport: operator.StatusReport{Currency: "XOF"}}},
		{"lower case", `{"externalId":"DemoShop_42","status":"successful"}`,
			operator.CallbackReport{OrderID: "DemoShop_42"}},
		{"array", `[]`, operator.CallbackReport{}},
		{"HTML", html, operator.CallbackReport{}},
		{"empty", ``, operator.CallbackReport{}},
		{"status twice", `{"status":"FAILED","status":"SUCCESSFUL"}`, operator.CallbackReport{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, driver.ReadPaymentCallback([]byte(c.body))); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}
