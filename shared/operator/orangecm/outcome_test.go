package orangecm_test

import (
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/timeline"
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

// Every response to mp/pay. It is sent a second time only with another token, if the API gateway in front refused the
// first one.
func TestPayOutcomes(t *testing.T) {
	pending, funds := operatortest.ReadFile(t, "pay-response.json"), operatortest.ReadFile(t, "pay-refused.json")
	wallet := strings.ReplaceAll(funds, "60019", "0066111")
	accepted := func(old, new string) operatortest.Responder {
		return respond(200, strings.Replace(pending, old, new, 1))
	}
	refusal := func(old, new string) operatortest.Responder {
		return respond(200, strings.Replace(funds, old, new, 1))
	}
	simulator := func(code string) operatortest.Responder {
		return respond(400, data(`"payToken":"`+payToken+`","status":"FAILED","inittxnstatus":"`+code+`"`))
	}
	suite(t).CheckPayments(t, payCall(), operatortest.Outcomes{
		operatortest.Succeeded: {
			"accepted":                   respond(200, pending),
			"accepted, amount as a text": accepted("100,", `"100",`),
			"initiated":                  accepted("PENDING", "INITIATED"),
			"paid at once":               respond(200, operatortest.ReadFile(t, "status-success.json")),
		},
		operatortest.Refused(ledger.NotEnoughFunds): {
			"funds with 200": respond(200, funds),
			"funds with 400": respond(400, funds),
		},
		operatortest.Refused(ledger.WalletUnknown): {
			"wallet with 200":    respond(200, wallet),
			"wallet, short form": respond(400, data(`"inittxnstatus":"0066111"`)),
		},
		operatortest.OurFault.Sent(2): {
			"401 of the gateway in front": respond(401, expiredJSON),
			"401, flat":                   respond(401, expiredFlat),
			"401, XML":                    respond(401, expiredXML),
		},
		operatortest.OurFault:    {"403, not subscribed": respond(403, `{"fault":{"code":900908}}`)},
		operatortest.Unavailable: {"429 of the gateway in front": respond(429, `{"fault":{"code":900802}}`)},
		operatortest.KnownKey: {
			"409": respond(409, `{}`),
			"422": respond(422, `{}`),
		},
		operatortest.Unknown: {
			"another payToken":          accepted(payToken, "MP9"),
			"no payToken":               accepted("payToken", "x"),
			"no inittxnstatus":          accepted("inittxnstatus", "x"),
			"unknown word":              accepted("PENDING", "MAYBE"),
			"accepted and failed":       accepted("PENDING", "FAILED"),
			"funds with 500":            respond(500, funds),
			"funds of another payToken": refusal(payToken, "MP9"),
			"funds with a txnid":        refusal(`"txnid":null`, `"txnid":"MP1"`),
			"funds but pending":         refusal("FAILED", "PENDING"),
			"code of the account":       simulator("0061"),
			"code of the subscriber":    simulator("0062"),
			"code of the PIN":           simulator("0068"),
			"code like a number":        simulator("690000002"),
			"401 of the application":    respond(401, `{"status":401}`),
			"401, HTML":                 respond(401, html),
			"403, other code":           respond(403, `{"fault":{"code":101503}}`),
			"403, bare":                 respond(403, ""),
			"429, bare":                 respond(429, ""),
			"404":                       respond(404, `{}`),
			"500":                       respond(500, expiredJSON),
			"a key twice":               accepted(`"data"`, `"data":{},"data"`),
			"data as a text":            respond(200, `{"data":"x"}`),
		},
	})
}

// Every failure of mp/init is NotApplied.
func TestPrepareOutcomes(t *testing.T) {
	for want, responses := range (operatortest.Outcomes{
		operatortest.Unavailable: {
			"no payToken":             respond(200, `{"data":{}}`),
			"a payToken with a slash": respond(200, `{"data":{"payToken":"../x"}}`),
			"500":                     respond(500, prepared),
			"cut":                     operatortest.CloseConnection(),
		},
		operatortest.OurFault: {
			"403": respond(403, `{"status":403}`),
			"401": respond(401, `{"status":401}`),
		},
	}) {
		for name, prepare := range responses {
			t.Run(name, func(t *testing.T) {
				stub := operatortest.NewStubOperator(t, respond(200, token), prepare, respond(400, ""))
				driverData, result := newDriver(t, stub).Prepare(t.Context(), payCall())
				suite(t).CheckProof(t, result, want)
				for _, r := range stub.Requests() {
					if driverData != "" || strings.HasSuffix(r.Path, "/mp/pay") {
						t.Errorf("data of the driver %q, request %s", driverData, r.Path)
					}
				}
			})
		}
	}
}

// success is status-success.json with another text.
func success(t *testing.T, old, replacement string) string {
	return strings.Replace(operatortest.ReadFile(t, "status-success.json"), old, replacement, 1)
}

func TestLookups(t *testing.T) {
	refused := operatortest.ReadFile(t, "pay-refused.json")
	expired := operatortest.ReadFile(t, "status-expired.json")
	found := func(old, replacement string) operatortest.Responder {
		return respond(200, success(t, old, replacement))
	}
	reported := func(status ledger.Status) operator.StatusResponse {
		return operatortest.WithStatus(operator.StatusReport{
			Status: status, Amount: "100", MSISDN: "690000002", OperatorReference: "MP260101.1000.B00001",
		})
	}
	failed := operatortest.WithStatus(operator.StatusReport{
		Status: ledger.Failed, Amount: "100", MSISDN: "690000002", Reason: ledger.NotEnoughFunds,
	})
	suite(t).CheckLookups(t, statusCall(), operatortest.Lookups{
		reported(ledger.Successful): {
			word:                           found("", ""),
			"SUCCESSFUL":                   found(word, "SUCCESSFUL"),
			"SUCCESS":                      found(word, "success"),
			"confirmtxnstatus as a number": found(`"confirmtxnstatus":"200"`, `"confirmtxnstatus":200`),
			"amount as a text":             found("100,", `"100",`),
		},
		reported(ledger.Pending):   {"PENDING": respond(200, operatortest.ReadFile(t, "pay-response.json"))},
		reported(ledger.Cancelled): {"CANCELLED": found(word, "CANCELLED")},
		failed: {
			"FAILED":                  respond(200, refused),
			"FAILED with a text only": respond(200, strings.Replace(refused, "60019", "1", 2)),
		},
		operatortest.WithStatus(operator.StatusReport{Status: ledger.Expired}): {
			"EXPIRED, null fields": respond(200, expired),
		},
		operatortest.UnknownStatus: {"unknown word": found(word, "DONE")},
		operatortest.Unread: {
			"no confirmtxnstatus":       found("confirmtxnstatus", "x"),
			"confirmtxnstatus null":     found(`"confirmtxnstatus":"200"`, `"confirmtxnstatus":null`),
			"null fields":               respond(200, strings.Replace(expired, `"EXPIRED"`, "null", 1)),
			"success without an amount": found(`"amount":100,`, ""),
			"success of another code":   found(`"confirmtxnstatus":"200"`, `"confirmtxnstatus":"60019"`),
			"another payToken":          found(payToken, "MP9"),
			"404":                       respond(404, `{}`),
			"400":                       respond(400, success(t, "", "")),
			"500":                       respond(500, success(t, "", "")),
		},
	})
}

func TestCallbacks(t *testing.T) {
	full := operator.CallbackReport{UpstreamKey: "ORD1", StatusReport: operator.StatusReport{
		Status: ledger.Successful, Amount: "100", MSISDN: "690000002", OperatorReference: "MP260101.1000.B00001",
	}}
	unconfirmed := full
	unconfirmed.Status = ""
	report := func(status ledger.Status, reason ledger.FailureReason) operator.CallbackReport {
		return operator.CallbackReport{StatusReport: operator.StatusReport{Status: status, Reason: reason}}
	}
	short := func(more string) string {
		return `{"payToken":"MP1",` + more + `"status":"` + word + `","message":"m"}`
	}
	suite(t).CheckCallbacks(t, map[operator.CallbackReport]map[string]string{
		full: {"like the lookup": success(t, "", "")},
		unconfirmed: {
			"like the lookup, not confirmed": success(t, `confirmtxnstatus":"200"`, `confirmtxnstatus":null`),
		},
		report(ledger.Successful, ""): {"short": short("")},
		report(ledger.Failed, ledger.WalletUnknown): {
			"short, failed": `{"payToken":"MP1","status":"FAILED","inittxnstatus":"0066111"}`,
		},
		report(ledger.Pending, ""): {"short, pending": `{"payToken":"MP1","status":"PENDING"}`},
		{}: {
			"unknown word":     `{"payToken":"MP1","status":"DONE"}`,
			"no status":        `{"payToken":"MP1"}`,
			"no payToken":      `{"status":"` + word + `"}`,
			"data as a text":   `{"data":"x","status":"` + word + `"}`,
			"status as a list": `{"payToken":"MP1","status":["` + word + `"]}`,
			"twice":            short(`"status":"FAILED",`),
			"HTML":             html,
		},
	})
}

// A code that Orange has not documented is not kept, because it may contain anything.
func TestCodes(t *testing.T) {
	failed := func(code string) operatortest.Responder {
		return respond(400, data(`"payToken":"`+payToken+`","status":"FAILED","inittxnstatus":"`+code+`"`))
	}
	suite(t).CheckCodes(t, payCall(), operatortest.Codes{
		"60019":              {"refused": failed("60019")},
		"900901":             {"the API gateway's": respond(401, expiredJSON)},
		timeline.UnknownCode: {"new": failed("70000"), "of another form": failed("NGUEMA 690000002")},
		"":                   {"none": respond(503, "")},
	})
}
