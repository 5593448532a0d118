package orangecm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// wordSuccessful is the word of a successful payment as the platform spells it. Guides have other spellings.
const wordSuccessful = "SUCCESSFULL" //nolint:misspell // the platform's own spelling

// parseStatus maps the platform's words; "" for an unknown one.
func parseStatus(word string) ledger.Status {
	switch strings.ToUpper(word) {
	case "PENDING", "INITIATED":
		return ledger.Pending
	case wordSuccessful, "SUCCESSFUL", "SUCCESS":
		return ledger.Successful
	case "FAILED":
		return ledger.Failed
	case "EXPIRED":
		return ledger.Expired
	case "CANCELED", "CANCELLED":
		return ledger.Cancelled
	default:
		return ""
	}
}

// readPayment reads a payment. The platform writes its fields as texts or as numbers. The reason of a failure is that
// of its code, else of its message.
func readPayment(doc *strictjson.Reader, prefix string) paymentData {
	text := func(name string) string { return doc.OptionalNumber(prefix + name) }
	p := paymentData{
		payToken: text("payToken"), transactionID: text("txnid"), word: text("status"),
		initCode: text("inittxnstatus"), confirmCode: text("confirmtxnstatus"),
	}
	p.status = parseStatus(p.word)
	p.CallbackReport = operator.CallbackReport{UpstreamKey: text("txnmode"), StatusReport: operator.StatusReport{
		Status: p.status, Amount: text("amount"), MSISDN: text("subscriberMsisdn"), OperatorReference: p.transactionID,
	}}
	if p.status == ledger.Failed {
		message := cmp.Or(upstream.Text(doc, prefix+"confirmtxnmessage"), upstream.Text(doc, prefix+"inittxnmessage"))
		p.Reason = cmp.Or(payerRefusals(p.initCode), operator.ParseFailureReason(message))
	}
	return p
}

// LookUpPayment implements operator.StatusLookup. OrderNotFound means that the platform has no payment under the
// payToken.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	if !isPayToken(call.Material) {
		return operator.StatusResponse{Cause: errNoPayToken}
	}
	x, unsent := d.api.Send(ctx, call.Call, func(account credentials.Account) (upstream.TokenRequest, *fault.Fault) {
		return newRequest(account, http.MethodGet, "paymentstatus/"+call.Material), nil
	})
	if unsent.Fault != nil {
		return operator.StatusResponse{Cause: unsent.Fault}
	}
	return parseLookup(x, call.Material)
}

// parseLookup reads a lookup's response. A success needs the amount, and no other confirmtxnstatus than 200.
func parseLookup(x upstream.Exchange, payToken string) operator.StatusResponse {
	doc, isDocument := x.Document()
	if !isDocument || !x.IsSuccess() {
		cause := errors.Join(fmt.Errorf("mp/paymentstatus responded %d without a payment", x.Status), x.Err)
		return operator.StatusResponse{Cause: cause}
	}
	p := readPayment(doc, "data.")
	isConfirmed := p.Amount != "" && (p.confirmCode == "" || p.confirmCode == codeAccepted)
	switch {
	case p.payToken != payToken:
		return operator.StatusResponse{Cause: errors.New("mp/paymentstatus responded without this payment")}
	case p.word == "":
		return operator.StatusResponse{OrderNotFound: true, Cause: errors.New("the payToken has no payment")}
	case p.status == "":
		return operator.StatusResponse{Cause: operator.ErrUnknownStatus}
	case p.status == ledger.Successful && !isConfirmed:
		return operator.StatusResponse{Cause: errors.New("mp/paymentstatus responded with an incomplete success")}
	}
	return operator.StatusResponse{StatusReport: p.StatusReport}
}

// ReadPaymentCallback implements operator.PaymentCallbackReader. The fields are in an object "data", or at the root in
// the short form of payToken, status and message.
func (d *Driver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	doc, err := strictjson.Parse(body)
	if err != nil {
		return operator.CallbackReport{}
	}
	prefix := ""
	if doc.HasObject("data") {
		prefix = "data."
	}
	if p := readPayment(doc, prefix); p.payToken != "" {
		return p.CallbackReport
	}
	return operator.CallbackReport{}
}
