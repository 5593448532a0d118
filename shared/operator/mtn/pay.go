package mtn

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// paymentRequest is the body of a request to pay.
type paymentRequest struct {
	Amount       string `json:"amount"`
	Currency     string `json:"currency"`
	ExternalID   string `json:"externalId"`
	Payer        payer  `json:"payer"`
	PayerMessage string `json:"payerMessage"`
	PayeeNote    string `json:"payeeNote"`
}

type payer struct {
	PartyIDType string `json:"partyIdType"`
	PartyID     string `json:"partyId"`
}

// Pay implements operator.PaymentSender. Succeeded means that MTN took the request. There is no reference yet, and no
// proof that the payer has a wallet. After a refused token whose form proves nothing, the payment is sent once more,
// because MTN takes one payment for each UUID. Then only a success or a refusal of the second send decides.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	x, unsent := d.Send(ctx, call.Call, upstream.PaymentBuild(buildPayment).Of(call), isTokenRefused)
	response := x.Response(unsent, classifyPayment)
	mayHaveTaken := x.Refused != nil && !refusedInFront(*x.Refused)
	if mayHaveTaken && response.Outcome == operator.NotApplied {
		status := response.HTTPStatus
		response.Result = upstream.Unknown(response.Fault)
		response.HTTPStatus = status
	}
	return response
}

// CheckPayment implements operator.PaymentChecker.
func (d *Driver) CheckPayment(ctx context.Context, call operator.PayCall) *fault.Fault {
	return d.CheckPaymentBy(ctx, call, buildPayment)
}

// buildPayment makes the request to pay. externalId is the order_id: a callback may have no other id of ours.
func buildPayment(account credentials.Account, call operator.PayCall) (upstream.Request, *fault.Fault) {
	number, amount, invalid := upstream.Payer(call)
	return upstream.Request{
		Method: http.MethodPost,
		URL:    paymentPath,
		Header: map[string]string{"X-Reference-Id": call.UpstreamKey, "X-Callback-Url": call.NotifyURL},
		Body: strictjson.Marshal(paymentRequest{
			Amount:       amount,
			Currency:     cmp.Or(testCurrency(account), call.Currency),
			ExternalID:   call.OrderID,
			Payer:        payer{"MSISDN", number},
			PayerMessage: call.OrderID,
			PayeeNote:    call.OrderID,
		}),
	}, invalid
}

// classifyPayment maps the response to a request to pay. Business errors come with 500, so their code decides.
func classifyPayment(x upstream.Exchange) operator.PayResponse {
	code := x.ErrorCode("code")
	cause := logsafe.Errorf("the operator responded %d %s", x.Status, logsafe.Code(code))
	if isTokenRefused(x) {
		cause = logsafe.Errorf("%w: %w", operator.ErrCredentialsRefused, cause)
	}
	result := upstream.Unknown(cause)
	switch {
	case x.Status == http.StatusAccepted && len(bytes.TrimSpace(x.Body)) == 0:
		result = operator.Result{Outcome: operator.Succeeded}
	case x.Status == http.StatusConflict:
		result = upstream.Duplicate(cause)
	case refusedInFront(x) && x.Status == http.StatusTooManyRequests:
		result = upstream.NotApplied(fault.OperatorUnavailable, cause)
	case refusedInFront(x):
		result = upstream.NotApplied(fault.IntegrationRejected, cause)
	case x.Status == http.StatusBadRequest, x.Status == http.StatusNotFound, x.Status == http.StatusInternalServerError:
		result = classifyCode(x.Status, code, cause)
	}
	result.Code = knownCode(code)
	return operator.PayResponse{Result: result}
}

// knownCode returns a code that this driver knows, as operator.KnownCode.
func knownCode(code string) string {
	_, isRefusal := refusalReasons[code]
	return operator.KnownCode(code, isRefusal || code == codeExists || code == codeNotPerformed ||
		slices.Contains(setupCodes, code) || slices.Contains(unprovenCodes, code))
}

// The codes of a key that MTN knows already, and of a payment that it ended without a reason.
const (
	codeExists       = "RESOURCE_ALREADY_EXIST"
	codeNotPerformed = "COULD_NOT_PERFORM_TRANSACTION"
)

// classifyCode maps the code of a business error. MTN sends INTERNAL_PROCESSING_ERROR for anything, also after it took
// the request. Another code with 400 or 404 concerns our request, which MTN did not take. Its list of codes is open.
func classifyCode(status int, code string, cause error) operator.Result {
	reason, isRefusal := refusalReasons[code]
	switch {
	case isRefusal:
		return upstream.Refused(reason, status, cause)
	case code == codeExists:
		return upstream.Duplicate(cause)
	case slices.Contains(setupCodes, code):
		return upstream.NotApplied(fault.IntegrationRejected, cause)
	case slices.Contains(unprovenCodes, code), status == http.StatusInternalServerError:
		return upstream.Unknown(cause)
	}
	return upstream.UnmappedCode(cause)
}

// unprovenCodes prove nothing with any status. setupCodes prove, also with 500, that MTN did not take the request,
// because of our account.
var (
	unprovenCodes = []string{"", "INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE", "UNKNOWN_ERROR"}
	setupCodes    = []string{
		"INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT",
		"PAYEE_NOT_FOUND", "PAYEE_NOT_ALLOWED_TO_RECEIVE",
	}
)

// refusalReasons are the codes of a final refusal, which a lookup has as the reason of a failed payment.
var refusalReasons = map[string]ledger.FailureReason{
	"PAYER_NOT_FOUND":           ledger.WalletUnknown,
	"SENDER_ACCOUNT_NOT_ACTIVE": ledger.WalletUnknown,
	"NOT_ENOUGH_FUNDS":          ledger.NotEnoughFunds,
	"PAYER_LIMIT_REACHED":       ledger.LimitReached,
	"APPROVAL_REJECTED":         ledger.RefusedByPayer,
	"PAYMENT_NOT_APPROVED":      ledger.RefusedByPayer,
	"TRANSACTION_CANCELED":      ledger.RefusedByPayer,
	"EXPIRED":                   ledger.TimedOut,
}

// refusedInFront reports whether the API gateway in front of MTN's application refused the request: a 4xx in the
// gateway's own form. The application never saw the request.
func refusedInFront(x upstream.Exchange) bool {
	response, isDocument := x.Document()
	return isDocument && x.Status/100 == 4 && upstream.TextOrNumber(response, "statusCode") == fmt.Sprint(x.Status)
}
