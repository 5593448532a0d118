package pawapay

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// The limits of customerMessage, in characters.
const (
	minMessage = 4
	maxMessage = 22
)

// depositRequest is the body of a deposit. A callback returns the metadata, and no clientReferenceId.
type depositRequest struct {
	DepositID            string              `json:"depositId"`
	Payer                payer               `json:"payer"`
	Amount               string              `json:"amount"`
	Currency             string              `json:"currency"`
	PreAuthorisationCode string              `json:"preAuthorisationCode,omitempty"`
	ClientReferenceID    string              `json:"clientReferenceId"`
	CustomerMessage      string              `json:"customerMessage,omitempty"`
	Metadata             []map[string]string `json:"metadata"`
}

type payer struct {
	Type           string         `json:"type"`
	AccountDetails accountDetails `json:"accountDetails"`
}

type accountDetails struct {
	PhoneNumber string `json:"phoneNumber"`
	Provider    string `json:"provider"`
}

// Pay implements operator.PaymentSender. Succeeded means that pawaPay took the deposit for processing.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	read := func(x upstream.Exchange) operator.PayResponse {
		result := classifyDeposit(x, call.Call)
		if result.Outcome != operator.Succeeded {
			result.Code = knownCode(failureCode(x))
		}
		return operator.PayResponse{Result: result}
	}
	return d.SendPayment(ctx, call, buildPayment, isTokenRefused, read)
}

// CheckPayment implements operator.PaymentChecker.
func (d *Driver) CheckPayment(ctx context.Context, call operator.PayCall) *fault.Fault {
	return d.CheckPaymentBy(ctx, call, buildPayment)
}

func buildPayment(_ credentials.Account, call operator.PayCall) (upstream.Request, *fault.Fault) {
	deposit, invalid := buildDeposit(call)
	return upstream.Request{Method: http.MethodPost, URL: depositPath, Body: strictjson.Marshal(deposit)}, invalid
}

// buildDeposit makes the deposit. pawaPay takes no amount with a zero as its last decimal.
func buildDeposit(call operator.PayCall) (depositRequest, *fault.Fault) {
	code, needsOTP := provider(call.Operator, call.Country)
	if code == "" {
		err := logsafe.New("pawaPay does not reach the operator in this country")
		return depositRequest{}, upstream.NotApplied(fault.IntegrationRejected, err).Fault
	}
	number, amount, invalid := upstream.Payer(call)
	if invalid != nil {
		return depositRequest{}, invalid
	}
	if strings.Contains(amount, ".") {
		amount = strings.TrimSuffix(strings.TrimRight(amount, "0"), ".")
	}
	deposit := depositRequest{
		DepositID: call.UpstreamKey, Amount: amount, Currency: call.Currency, ClientReferenceID: call.OrderID,
		Payer:           payer{"MMO", accountDetails{number, code}},
		CustomerMessage: customerMessage(call.Reference),
		Metadata:        []map[string]string{{"orderId": call.OrderID}},
	}
	if needsOTP {
		deposit.PreAuthorisationCode = call.OTP
		if call.OTP == "" {
			return depositRequest{}, fault.BrokenRule("otp_code", logsafe.New("is required by the wallet"))
		}
	}
	return deposit, nil
}

// customerMessage makes the text on the payer's receipt: letters, digits and spaces of ASCII. "" lets pawaPay use the
// account's name.
func customerMessage(text string) string {
	kept := strings.Map(func(r rune) rune {
		if strings.ContainsRune(ascii.Letters+ascii.Digits+" ", r) {
			return r
		}
		return -1
	}, text)
	kept = strings.TrimSpace(kept[:min(len(kept), maxMessage)])
	if len(kept) < minMessage {
		return ""
	}
	return kept
}

// classifyDeposit maps the response to a deposit. The status in a 200 decides, if it is that of our deposit.
func classifyDeposit(x upstream.Exchange, call operator.Call) operator.Result {
	depositID := call.UpstreamKey
	code := failureCode(x)
	cause := logsafe.Errorf("the operator responded %d %s", x.Status, logsafe.Code(code))
	response, isDocument := x.Document()
	if !isDocument {
		return upstream.Unknown(cause)
	}
	id, status := upstream.Text(response, "depositId"), upstream.Text(response, "status")
	isRejected := code != "" && (status == "REJECTED" || status == "") && (id == depositID || id == "")
	switch {
	case x.Status == http.StatusOK && id == depositID && status == "ACCEPTED":
		return operator.Result{Outcome: operator.Succeeded}
	case x.Status == http.StatusOK && id == depositID && status == "DUPLICATE_IGNORED":
		return upstream.Duplicate(cause)
	case x.Status == http.StatusOK && id == depositID && isRejected, x.Status == http.StatusBadRequest && isRejected,
		x.IsRefused() && isRejected:
		if code == codeInProgress && call.MayRepeat {
			break // it may be the payment of our first attempt
		}
		return classifyRejection(x.Status, code, cause)
	}
	return upstream.Unknown(cause)
}

// classifyRejection maps the code of a deposit that pawaPay rejected before it processed it. Only UNKNOWN_ERROR, an
// error of pawaPay itself, proves nothing. With PAYMENT_IN_PROGRESS the payer has not ended another payment yet.
func classifyRejection(status int, code string, cause error) operator.Result {
	if reason, isRefusal := refusalReasons[code]; isRefusal {
		return upstream.Refused(reason, status, cause)
	}
	if part := invalidParts[code]; part != "" {
		return upstream.NotSent(fault.BrokenRule(part, logsafe.Errorf("%s", logsafe.Code(code))))
	}
	switch {
	case code == codeUnknownError:
		return upstream.Unknown(cause)
	case slices.Contains(busyCodes, code):
		return upstream.NotApplied(fault.OperatorUnavailable, cause)
	case slices.Contains(setupCodes, code):
		return upstream.NotApplied(fault.IntegrationRejected, cause)
	}
	return upstream.UnmappedCode(cause)
}

// codeUnknownError is an error of pawaPay itself. busyCodes are those of a deposit that may be sent later, setupCodes
// those of our account or our request.
const codeUnknownError = "UNKNOWN_ERROR"

var (
	busyCodes  = []string{"PROVIDER_TEMPORARILY_UNAVAILABLE", codeInProgress}
	setupCodes = []string{
		"NO_AUTHENTICATION", "AUTHENTICATION_ERROR", "AUTHORISATION_ERROR", "HTTP_SIGNATURE_ERROR",
		"DEPOSITS_NOT_ALLOWED", "INVALID_PROVIDER", "INVALID_INPUT", "MISSING_PARAMETER", "UNSUPPORTED_PARAMETER",
		"INVALID_PARAMETER", "DUPLICATE_METADATA_FIELD",
	}
)

// codeInProgress is the code of a deposit whose payer has not ended another payment yet.
const codeInProgress = "PAYMENT_IN_PROGRESS"

// knownCode returns a code that this driver knows, as operator.KnownCode.
func knownCode(code string) string {
	_, isRefusal := refusalReasons[code]
	return operator.KnownCode(code, isRefusal || invalidParts[code] != "" || code == codeUnknownError ||
		slices.Contains(busyCodes, code) || slices.Contains(setupCodes, code))
}

// refusalReasons are the codes of a failed deposit that concern the payer. invalidParts are those that concern a part
// of the merchant's request.
var (
	refusalReasons = map[string]ledger.FailureReason{
		"PAYMENT_NOT_APPROVED": ledger.RefusedByPayer,
		"INSUFFICIENT_BALANCE": ledger.NotEnoughFunds,
		"PAYER_LIMIT_REACHED":  ledger.LimitReached,
		"WALLET_LIMIT_REACHED": ledger.LimitReached,
		"PAYER_NOT_FOUND":      ledger.WalletUnknown,
	}
	invalidParts = map[string]string{
		"AMOUNT_OUT_OF_BOUNDS": "amount", "INVALID_AMOUNT": "amount",
		"INVALID_PHONE_NUMBER": "user_msisdn", "INVALID_CURRENCY": "currency",
	}
)
