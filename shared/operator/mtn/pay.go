package mtn

import (
	"bytes"
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

// Pay implements operator.Driver. Succeeded means that MTN took the request. There is no reference yet, and no proof
// that the payer has a wallet.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	build := func(account credentials.Account) (upstream.Request, *fault.Fault) { return buildPayment(account, call) }
	x, account, unsent := d.exchange(ctx, call.Call, build)
	result := operator.Result{Outcome: operator.NotApplied, Fault: unsent}
	if unsent == nil {
		result = classifyPayment(x)
		result.HTTPStatus = x.Status
	}
	worked := result.Outcome == operator.Succeeded || result.Outcome == operator.Refused || result.DuplicateKey
	d.accounts.RecordUse(call.Platform, account.Version, worked)
	return operator.PayResponse{Result: result}
}

// buildPayment makes the request to pay. externalId is the order_id: a callback may have no other id of ours.
func buildPayment(account credentials.Account, call operator.PayCall) (upstream.Request, *fault.Fault) {
	if !isForCountry(account, call.Country) {
		err := errors.New("the account's target_environment is that of another country")
		return upstream.Request{}, &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	number, amount, invalid := upstream.Payer(call)
	return upstream.Request{
		Method: http.MethodPost,
		URL:    paymentPath,
		Header: map[string]string{"X-Reference-Id": call.UpstreamKey, "X-Callback-Url": call.NotifyURL},
		Body: strictjson.Marshal(paymentRequest{
			Amount:       amount,
			Currency:     cmp.Or(account.Field(fieldCurrency), call.Currency),
			ExternalID:   call.OrderID,
			Payer:        payer{"MSISDN", number},
			PayerMessage: call.OrderID,
			PayeeNote:    call.OrderID,
		}),
	}, invalid
}

// classifyPayment maps the response to a request to pay. Business errors come with 500, so their code decides.
func classifyPayment(x upstream.Exchange) operator.Result {
	if result, isWithout := x.WithoutResponse(); isWithout {
		return result
	}
	code := errorCode(x)
	cause := fmt.Errorf("the operator responded %d %s", x.Status, code)
	switch {
	case x.Status == http.StatusAccepted && len(bytes.TrimSpace(x.Body)) == 0:
		return operator.Result{Outcome: operator.Succeeded}
	case x.Status == http.StatusConflict:
		return upstream.Duplicate(cause)
	case refusedInFront(x) && x.Status == http.StatusTooManyRequests:
		return upstream.NotApplied(fault.OperatorUnavailable, cause)
	case refusedInFront(x):
		return upstream.NotApplied(fault.IntegrationRejected, cause)
	case x.Status == http.StatusBadRequest, x.Status == http.StatusNotFound, x.Status == http.StatusInternalServerError:
		return classifyCode(x.Status, code, cause)
	}
	return upstream.Unknown(cause)
}

// classifyCode maps the code of a business error. MTN sends INTERNAL_PROCESSING_ERROR for anything, also after it took
// the request. Another code with 400 or 404 concerns our request, which MTN did not take.
func classifyCode(status int, code string, cause error) operator.Result {
	if reason, isRefusal := refusalReason(code); isRefusal {
		return upstream.Refused(reason, status, cause)
	}
	switch code {
	case "RESOURCE_ALREADY_EXIST":
		return upstream.Duplicate(cause)
	case "INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT",
		"PAYEE_NOT_FOUND", "PAYEE_NOT_ALLOWED_TO_RECEIVE":
		return upstream.NotApplied(fault.IntegrationRejected, cause)
	case "", "INTERNAL_PROCESSING_ERROR", "SERVICE_UNAVAILABLE":
		return upstream.Unknown(cause)
	}
	if status == http.StatusInternalServerError {
		return upstream.Unknown(cause)
	}
	return upstream.NotApplied(fault.IntegrationRejected, cause)
}

// refusalReason maps the codes of a final refusal, which a lookup has as the reason of a failed payment.
func refusalReason(code string) (reason ledger.FailureReason, isRefusal bool) {
	switch code {
	case "PAYER_NOT_FOUND":
		return ledger.WalletUnknown, true
	case "NOT_ENOUGH_FUNDS":
		return ledger.NotEnoughFunds, true
	case "PAYER_LIMIT_REACHED":
		return ledger.LimitReached, true
	case "APPROVAL_REJECTED", "PAYMENT_NOT_APPROVED", "TRANSACTION_CANCELED":
		return ledger.RefusedByPayer, true
	case "EXPIRED":
		return ledger.TimedOut, true
	}
	return "", false
}

// refusedInFront reports whether the API gateway in front of MTN's application refused the request: a 4xx in the
// gateway's own form. The application never saw the request.
func refusedInFront(x upstream.Exchange) bool {
	response, isDocument := x.Document()
	return isDocument && x.Status/100 == 4 && upstream.TextOrNumber(response, "statusCode") == fmt.Sprint(x.Status)
}

// errorCode returns the code of a business error; "" for another form. A code has capital letters and underscores, so
// it can be logged.
func errorCode(x upstream.Exchange) string {
	response, isDocument := x.Document()
	if !isDocument || x.Status < 400 {
		return ""
	}
	code := upstream.Text(response, "code")
	if strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return ""
	}
	return code
}
