package mtn_test

import (
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/timeline"
)

func code(text string) string {
	return `{"code":"` + text + `","message":"about 2250707070707 and api-key-very-private"}`
}

const (
	inFront401 = `{"statusCode":401,"message":"Access denied due to invalid subscription key very-private."}`
	html       = `<html><body>Request Rejected</body></html>`
)

// Each row of the documented responses to a request to pay. A 401 without a business code means that the token was
// refused, so that the payment is sent twice.
func TestPaymentOutcomes(t *testing.T) {
	suite().CheckPayments(t, samplePay(), operatortest.Outcomes{
		operatortest.Succeeded: {"accepted": respond(202, "")},
		operatortest.Unknown: {
			"accepted with HTML":   respond(202, html),
			"accepted with JSON":   respond(202, "{}"),
			"200 empty":            respond(200, ""),
			"201":                  respond(201, `{"status":"SUCCESSFUL"}`),
			"400 with HTML":        respond(400, html),
			"400 unknown error":    respond(400, code("UNKNOWN_ERROR")),
			"400 internal":         respond(400, code("INTERNAL_PROCESSING_ERROR")),
			"401 with a code":      respond(401, code("NOT_ALLOWED")),
			"bare 403":             respond(403, ""),
			"bare 404":             respond(404, html),
			"bare 429":             respond(429, ""),
			"internal":             respond(500, code("INTERNAL_PROCESSING_ERROR")),
			"unknown code":         respond(500, code("SOMETHING_NEW")),
			"code of another form": respond(500, code("payer 2250707070707")),
			"code twice":           respond(500, `{"code":"EXPIRED","code":"EXPIRED"}`),
			"code and more":        respond(500, code("EXPIRED")+"{}"),
			"500 in front":         respond(500, `{"statusCode":500,"message":"m"}`),
			"502 with a code":      respond(502, code("PAYER_NOT_FOUND")),
			"503 with a code":      respond(503, code("SERVICE_UNAVAILABLE")),
			"500 unavailable":      respond(500, code("SERVICE_UNAVAILABLE")),
		},
		operatortest.KnownKey: {
			"400 duplicate": respond(400, code("RESOURCE_ALREADY_EXIST")),
			"409":           respond(409, `{"code":"RESOURCE_ALREADY_EXIST","message":"Duplicated reference id."}`),
			"bare 409":      respond(409, ""),
			"500 duplicate": respond(500, code("RESOURCE_ALREADY_EXIST")),
		},
		operatortest.OurFault: {
			"400 set-up":        respond(400, code("INVALID_CURRENCY")),
			"400 in front":      respond(400, `{"statusCode":400,"message":"m"}`),
			"403 in front":      respond(403, `{"statusCode":403,"message":"Forbidden"}`),
			"404 in front":      respond(404, `{"statusCode":404,"message":"m"}`),
			"404 set-up":        respond(404, code("NOT_ALLOWED_TARGET_ENVIRONMENT")),
			"callback host":     respond(500, code("INVALID_CALLBACK_URL_HOST")),
			"currency":          respond(500, code("INVALID_CURRENCY")),
			"not allowed":       respond(500, code("NOT_ALLOWED")),
			"environment":       respond(500, code("NOT_ALLOWED_TARGET_ENVIRONMENT")),
			"payee":             respond(500, code("PAYEE_NOT_FOUND")),
			"payee not allowed": respond(500, code("PAYEE_NOT_ALLOWED_TO_RECEIVE")),
		},
		operatortest.UnmappedCode: {
			"400 with a code":   respond(400, code("INVALID_INPUT")),
			"400 with new code": respond(400, code("SOMETHING_NEW")),
			"404 with a code":   respond(404, code("RESOURCE_NOT_FOUND")),
			"404 with new code": respond(404, code("SOMETHING_NEW")),
		},
		operatortest.OurFault.Sent(2): {
			"401 in front":             respond(401, inFront401),
			"401 text number":          respond(401, `{"statusCode":"401"}`),
			"401 in front with a code": respond(401, `{"code":"X","statusCode":401}`),
		},
		operatortest.Unknown.Sent(2): {
			"401 of another form":   respond(401, `{"error":"expired"}`),
			"401 of another status": respond(401, `{"statusCode":500}`),
			"401 with HTML":         respond(401, html),
			"bare 401":              respond(401, ""),
		},
		operatortest.Unavailable: {"429 in front": respond(429, `{"statusCode":429,"message":"m"}`)},
		operatortest.Refused(ledger.WalletUnknown): {
			"400 known code":  respond(400, code("PAYER_NOT_FOUND")),
			"no wallet":       respond(500, code("PAYER_NOT_FOUND")),
			"inactive wallet": respond(500, code("SENDER_ACCOUNT_NOT_ACTIVE")),
		},
		operatortest.Refused(ledger.NotEnoughFunds): {"funds": respond(500, code("NOT_ENOUGH_FUNDS"))},
		operatortest.Refused(ledger.LimitReached):   {"limit": respond(500, code("PAYER_LIMIT_REACHED"))},
		operatortest.Refused(ledger.RefusedByPayer): {
			"rejected":     respond(500, code("APPROVAL_REJECTED")),
			"not approved": respond(500, code("PAYMENT_NOT_APPROVED")),
			"cancelled":    respond(500, code("TRANSACTION_CANCELED")),
		},
		operatortest.Refused(ledger.TimedOut): {"expired": respond(500, code("EXPIRED"))},
	})
}

// full is a report with every field of the testdata.
func full(status ledger.Status, reason ledger.FailureReason) operator.StatusReport {
	return operator.StatusReport{
		Status: status, Amount: "500", Currency: "XOF", MSISDN: "2250707070707", Reason: reason,
	}
}

func TestLookup(t *testing.T) {
	successful := full(ledger.Successful, "")
	successful.OperatorReference = "1000000001"
	only := func(status ledger.Status, reason ledger.FailureReason) operator.StatusResponse {
		return operatortest.WithStatus(operator.StatusReport{Status: status, Reason: reason})
	}
	failed := func(reason string) operatortest.Responder {
		return respond(200, `{"externalId":"DemoShop_42","status":"FAILED","reason":`+reason+`}`)
	}
	file := func(name string) operatortest.Responder { return respond(200, operatortest.ReadFile(t, name)) }
	suite().CheckLookups(t, sampleLookup(), operatortest.Lookups{
		operatortest.WithStatus(successful):                                 {"successful": file("successful.json")},
		operatortest.WithStatus(full(ledger.Failed, ledger.WalletUnknown)):  {"failed": file("failed.json")},
		operatortest.WithStatus(full(ledger.Failed, ledger.NotEnoughFunds)): {"object": file("failed-object.json")},
		only(ledger.Expired, ""): {
			"expired":        failed(`"EXPIRED"`),
			"expired object": failed(`{"code":"EXPIRED"}`),
			"not performed":  failed(`"COULD_NOT_PERFORM_TRANSACTION"`),
		},
		only(ledger.Cancelled, ""): {
			"rejected":     failed(`"APPROVAL_REJECTED"`),
			"cancelled":    failed(`"TRANSACTION_CANCELED"`),
			"not approved": failed(`"PAYMENT_NOT_APPROVED"`),
		},
		only(ledger.Failed, ledger.LimitReached):  {"limit": failed(`"PAYER_LIMIT_REACHED"`)},
		only(ledger.Failed, ledger.WalletUnknown): {"inactive wallet": failed(`"SENDER_ACCOUNT_NOT_ACTIVE"`)},
		only(ledger.Failed, ""): {
			"new reason":             failed(`"SOMETHING_NEW"`),
			"reason of another type": failed(`[1]`),
			"no reason":              respond(200, `{"status":"FAILED"}`),
		},
		only(ledger.Pending, ""): {"created, no order": respond(200, `{"status":"CREATED"}`)},
		operatortest.UnknownStatus: {
			"no amount": respond(200, `{"externalId":"DemoShop_42","status":"SUCCESSFUL","currency":"XOF"}`),
			"no order":  respond(200, `{"amount":"500","currency":"XOF","status":"SUCCESSFUL"}`),
		},
		operatortest.Unread: {
			"another order":          respond(200, `{"externalId":"DemoShop_43","status":"FAILED"}`),
			"no status":              respond(200, `{"externalId":"DemoShop_42"}`),
			"status of another type": respond(200, `{"status":{}}`),
			"accepted":               respond(202, operatortest.ReadFile(t, "successful.json")),
			"no such path":           respond(404, `{"statusCode":404,"message":"Resource not found"}`),
			"500 not found":          respond(500, code("RESOURCE_NOT_FOUND")),
			"401":                    respond(401, inFront401),
			"503":                    respond(503, ""),
		},
		operatortest.OrderNotFound: {"never created": respond(404, code("RESOURCE_NOT_FOUND"))},
	})
}

func TestCallback(t *testing.T) {
	successful := operatortest.ReadFile(t, "successful.json")
	known := operator.CallbackReport{OrderID: "DemoShop_42", StatusReport: full(ledger.Successful, "")}
	known.OperatorReference = "1000000001"
	withKey := known
	withKey.UpstreamKey = reference
	unread := operator.CallbackReport{OrderID: "DemoShop_42"}
	withoutAmount := unread
	withoutAmount.Currency = "XOF"
	suite().CheckCallbacks(t, map[operator.CallbackReport]map[string]string{
		known:   {"without our UUID": successful},
		withKey: {"with our UUID": `{"referenceId":"` + reference + `",` + successful[1:]},
		{OrderID: "42", StatusReport: operator.StatusReport{Status: ledger.Expired, Amount: "500"}}: {
			"numbers": `{"externalId":42,"amount":500,"status":"FAILED","reason":{"code":"EXPIRED"}}`,
		},
		withoutAmount: {
			"no amount": `{"externalId":"DemoShop_42","status":"SUCCESSFUL","currency":"XOF"}`,
		},
		unread: {
			"unknown word": `{"externalId":"DemoShop_42","status":"REJECTED"}`,
			"lower case":   `{"externalId":"DemoShop_42","status":"successful"}`,
		},
		{}: {"status twice": `{"status":"FAILED","status":"SUCCESSFUL"}`},
	})
}

// A code that MTN has not documented is not kept, because it may contain anything.
func TestCodes(t *testing.T) {
	suite().CheckCodes(t, samplePay(), operatortest.Codes{
		"NOT_ENOUGH_FUNDS":       {"refused": respond(500, code("NOT_ENOUGH_FUNDS"))},
		"RESOURCE_ALREADY_EXIST": {"known key": respond(409, code("RESOURCE_ALREADY_EXIST"))},
		"INVALID_CURRENCY":       {"set-up": respond(400, code("INVALID_CURRENCY"))},
		timeline.UnknownCode:     {"new": respond(400, code("SOMETHING_NEW"))},
		"": {
			"none": respond(503, ""), "success": respond(202, ""),
			"of another form": respond(500, code("payer 2250707070707")),
		},
	})
}
