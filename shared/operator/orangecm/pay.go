package orangecm

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// payRequest is the body of mp/pay. ChannelMSISDN and PIN are of the account, everything else of the call.
type payRequest struct {
	SubscriberMSISDN string `json:"subscriberMsisdn"`
	ChannelMSISDN    string `json:"channelUserMsisdn"`
	Amount           string `json:"amount"`
	Description      string `json:"description"`
	OrderID          string `json:"orderId"`
	PIN              string `json:"pin"`
	PayToken         string `json:"payToken"`
	NotifURL         string `json:"notifUrl"`
}

// newPayRequest makes the request without the account's fields. The platform takes the number without the calling code,
// and no currency.
func newPayRequest(call operator.PayCall) (payRequest, *fault.Fault) {
	country, _ := market.ByAlpha2(call.Country)
	digits, amount, invalid := upstream.Payer(call)
	return payRequest{
		SubscriberMSISDN: strings.TrimPrefix(digits, country.CallingCode),
		Amount:           amount,
		Description:      call.Reference,
		OrderID:          call.UpstreamKey,
		PayToken:         call.DriverData,
		NotifURL:         call.NotifyURL,
	}, invalid
}

// Pay sends a payment under the payToken that Prepare returned. Succeeded means that Orange requests the payer's
// approval.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	response := d.SendTransaction(ctx, call.Call, func(account credentials.Account) (upstream.Request, *fault.Fault) {
		request := newRequest(account, http.MethodPost, "pay")
		body, invalid := newPayRequest(call)
		if invalid == nil && !isPayToken(call.DriverData) {
			invalid = &fault.Fault{Kind: fault.OperatorUnavailable, Cause: errNoPayToken}
		}
		body.ChannelMSISDN, body.PIN = account.Field("channel_msisdn"), account.Field("pin")
		request.Body = strictjson.Marshal(body)
		return request, invalid
	}, isTokenRefused, func(x upstream.Exchange) operator.PayResponse {
		return operator.PayResponse{Result: classifyPayment(x, call.DriverData)}
	})
	response.DriverData = call.DriverData
	return response
}

// CheckPayment implements operator.PaymentChecker.
func (d *Driver) CheckPayment(ctx context.Context, call operator.PayCall) *fault.Fault {
	return d.Check(ctx, call.Call, func(credentials.Account) (upstream.Request, *fault.Fault) {
		_, invalid := newPayRequest(call)
		return upstream.Request{}, invalid
	})
}

// isTokenRefused reports whether the API gateway in front of the platform refused the access token.
func isTokenRefused(x upstream.Exchange) bool {
	return x.IsUnauthorized() && wso2Refusal(x) != ""
}

// wso2Refusal returns the code of a refusal by the WSO2 API gateway in front of the platform, "" for any other
// response. It is 9008xx for rate limits and 9009xx for credentials, with 401, 403 or 429. The platform has then not
// received the request. The gateway writes JSON, or XML although the request accepts JSON only.
func wso2Refusal(x upstream.Exchange) string {
	statuses := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}
	if x.Err != nil || !slices.Contains(statuses, x.Status) {
		return ""
	}
	code := x.ErrorCode("fault.code", "code")
	if _, isDocument := x.Document(); !isDocument {
		_, inside, _ := strings.Cut(string(x.Body), "<ams:fault")
		_, inside, _ = strings.Cut(inside, "<ams:code>")
		code, _, _ = strings.Cut(inside, "</ams:code>")
	}
	isOwn := strings.HasPrefix(code, "9008") || strings.HasPrefix(code, "9009")
	if !isOwn || len(code) != 6 || !ascii.IsDigits(code) {
		return ""
	}
	return code
}

var errNoPayToken = logsafe.New("the payment has no payToken")

// codeAccepted is the inittxnstatus of an accepted payment, and the confirmtxnstatus of a successful one.
const codeAccepted = "200"

// payerRefusals are the inittxnstatus codes of a refusal by the payer's wallet, with the reason.
var payerRefusals = map[string]ledger.FailureReason{"60019": ledger.NotEnoughFunds, "0066111": ledger.WalletUnknown}

// knownCode returns an inittxnstatus that this driver knows, as operator.KnownCode.
func knownCode(code string) string {
	return operator.KnownCode(code, code == codeAccepted || payerRefusals[code] != "")
}

// classifyPayment maps a response to mp/pay. A refusal comes with 400, or with 200. A used payToken is 422.
func classifyPayment(x upstream.Exchange, payToken string) operator.Result {
	cause := logsafe.Errorf("mp/pay responded %d", x.Status)
	if code := wso2Refusal(x); code != "" {
		kind := fault.IntegrationRejected
		if strings.HasPrefix(code, "9008") {
			kind = fault.OperatorUnavailable
		}
		result := upstream.NotApplied(kind, logsafe.Errorf("%w with the API gateway's code %s", cause,
			logsafe.Code(code)))
		result.Code = code
		return result
	}
	if x.Status == http.StatusUnprocessableEntity || x.Status == http.StatusConflict {
		return upstream.Duplicate(cause)
	}
	doc, isDocument := x.Document()
	if !isDocument {
		return upstream.Unknown(cause)
	}
	p, reason := readPayment(doc, "data."), ledger.FailureReason("")
	if x.Status == http.StatusOK || x.Status == http.StatusBadRequest {
		reason = payerRefusals[p.initCode]
	}
	isOurs := p.payToken == payToken
	isPending := p.status == ledger.Pending || p.status == ledger.Successful
	isFailed := p.word == "" || p.status == ledger.Failed
	switch {
	case x.IsSuccess() && isOurs && isPending && p.initCode == codeAccepted:
		return operator.Result{Outcome: operator.Succeeded, OperatorReference: p.transactionID}
	case reason != "" && isFailed && p.transactionID == "" && (isOurs || p.payToken == ""):
		result := upstream.Refused(reason, x.Status, logsafe.Errorf("%w with %s", cause, logsafe.Code(p.initCode)))
		result.Code = p.initCode
		return result
	case len(p.initCode) <= 7 && strings.Trim(p.initCode, "0123456789") == "": // no number of a person
		cause = logsafe.Errorf("%w with inittxnstatus %q", cause, logsafe.Code(p.initCode))
	}
	result := upstream.Unknown(cause)
	result.Code = knownCode(p.initCode)
	return result
}
