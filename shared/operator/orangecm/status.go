package orangecm

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// paymentData is a payment in a response or a callback. A field that is absent, null, of another form or longer than 64
// characters is "".
type paymentData struct {
	operator.CallbackReport
	payToken, transactionID string
	word                    string // the status as sent
	status                  ledger.Status
	initCode, confirmCode   string
}

// statuses are the platform's words, in capitals. Guides have other spellings of a success.
var statuses = map[string]ledger.Status{
	"PENDING": ledger.Pending, "INITIATED": ledger.Pending,
	"SUCCESSFULL": ledger.Successful, //nolint:misspell // the platform's own spelling
	"SUCCESSFUL":  ledger.Successful, "SUCCESS": ledger.Successful,
	"FAILED": ledger.Failed, "EXPIRED": ledger.Expired,
	"CANCELED": ledger.Cancelled, "CANCELLED": ledger.Cancelled,
}

// readPayment reads a payment. The platform writes its fields as texts or as numbers. The reason of a failure is that
// of its code, else of its message.
func readPayment(doc *strictjson.Reader, prefix string) paymentData {
	text := func(name string) string { return doc.OptionalNumber(prefix + name) }
	p := paymentData{
		payToken: text("payToken"), transactionID: text("txnid"), word: text("status"),
		initCode: text("inittxnstatus"), confirmCode: text("confirmtxnstatus"),
	}
	p.status = statuses[strings.ToUpper(p.word)]
	p.CallbackReport = operator.CallbackReport{UpstreamKey: text("txnmode"), StatusReport: operator.StatusReport{
		Status: p.status, Amount: text("amount"), MSISDN: text("subscriberMsisdn"), OperatorReference: p.transactionID,
	}}
	if p.status == ledger.Failed {
		message := cmp.Or(upstream.Text(doc, prefix+"confirmtxnmessage"), upstream.Text(doc, prefix+"inittxnmessage"))
		p.Reason = cmp.Or(payerRefusals[p.initCode], operator.ParseFailureReason(message))
		p.Code = knownCode(p.initCode)
	}
	return p
}

// isUnconfirmed reports whether a payment has the word of a success without the confirmtxnstatus of one. It may be only
// accepted and not debited: a reseller of the same wallet uses the word so.
func (p paymentData) isUnconfirmed() bool {
	return p.status == ledger.Successful && p.confirmCode != codeAccepted
}

// LookUpPayment implements operator.StatusLookup. A success needs the amount, and the confirmtxnstatus 200. A payToken
// without a status may have been paid before Orange forgot it. So only the check of an account finds no payment.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	if !isPayToken(call.DriverData) {
		return operator.StatusResponse{Cause: errNoPayToken}
	}
	return d.SendLookup(ctx, call.Call, newLookup(call))
}

func newLookup(call operator.StatusCall) upstream.Lookup {
	return upstream.Lookup{
		Build: func(account credentials.Account) (upstream.Request, *fault.Fault) {
			return newRequest(account, http.MethodGet, "paymentstatus/"+call.DriverData), nil
		},
		IsNotFound: func(x upstream.Exchange) bool { return call.IsAccountCheck() && isUnknownToken(x) },
		Read: func(doc *strictjson.Reader) (operator.StatusReport, bool) {
			p := readPayment(doc, "data.")
			if p.isUnconfirmed() || p.status == ledger.Successful && p.Amount == "" {
				return operator.StatusReport{}, false
			}
			return p.StatusReport, p.payToken == call.DriverData && p.word != ""
		},
	}
}

// isUnknownToken reports whether the platform itself responded, and has no payment under a payToken: without a status,
// or with an error of its own.
func isUnknownToken(x upstream.Exchange) bool {
	doc, isDocument := x.Document()
	isOwn := isDocument && wso2Refusal(x) == "" && upstream.Text(doc, "message") != ""
	switch x.Status {
	case http.StatusOK:
		return isOwn && readPayment(doc, "data.").word == ""
	case http.StatusBadRequest, http.StatusNotFound:
		return isOwn && x.ErrorCode("code", "fault.code") == ""
	}
	return false
}

// ReadPaymentCallback implements operator.PaymentCallbackReader. The fields are in an object "data", or at the root in
// the short form of payToken, status and message. The short form has no confirmtxnstatus: its success is a claim that
// the lookup confirms.
func (d *Driver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	doc := upstream.CallbackDocument(body)
	prefix := ""
	if doc.HasObject("data") {
		prefix = "data."
	}
	p := readPayment(doc, prefix)
	if p.payToken == "" {
		return operator.CallbackReport{}
	}
	if prefix != "" && p.isUnconfirmed() {
		p.Status = ""
	}
	return p.CallbackReport
}
