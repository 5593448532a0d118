package orangecm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
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

// newPayRequest makes the request without the account's fields. The platform needs a payer's number of the country, and
// a whole amount of its currency, which it is not sent. The fault names the merchant's part that breaks this.
func newPayRequest(call operator.PayCall) (payRequest, *fault.Fault) {
	country, _ := market.ByAlpha2(call.Country)
	number, numberErr := msisdn.Parse(call.MSISDN, country)
	amount, amountErr := money.Parse(call.Amount, 0)
	switch {
	case call.MSISDN == "":
		return payRequest{}, fault.ForPart(fault.MissingPart, "user_msisdn")
	case numberErr != nil:
		return payRequest{}, fault.BrokenRule("user_msisdn", numberErr.Error())
	case amountErr != nil:
		return payRequest{}, fault.BrokenRule("amount", amountErr.Error())
	case call.Currency != country.Currency:
		return payRequest{}, fault.NotAllowed("currency", []string{country.Currency})
	}
	return payRequest{
		SubscriberMSISDN: strings.TrimPrefix(number.E164(), "+"+country.CallingCode),
		Amount:           money.Format(amount, 0),
		Description:      call.Reference,
		OrderID:          call.UpstreamKey,
		PayToken:         call.Material,
		NotifURL:         call.NotifyURL,
	}, nil
}

// Pay sends a payment under the payToken that Prepare returned. Succeeded means that Orange requests the payer's
// approval.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	x, result := d.api.Send(ctx, call.Call, func(account credentials.Account) (upstream.TokenRequest, *fault.Fault) {
		request := newRequest(account, http.MethodPost, "pay")
		body, invalid := newPayRequest(call)
		if invalid == nil && !isPayToken(call.Material) {
			invalid = &fault.Fault{Kind: fault.OperatorUnavailable, Cause: errNoPayToken}
		}
		body.ChannelMSISDN, body.PIN = account.Field("channel_msisdn"), account.Field("pin")
		request.Body = strictjson.Marshal(body)
		request.IsUnprocessed = func(x upstream.Exchange) bool { return upstream.WSO2Refusal(x) != "" }
		return request, invalid
	})
	if result.Fault == nil {
		result = classifyPayment(x, call.Material)
		result.HTTPStatus = x.Status
	}
	return operator.PayResponse{Result: result, Material: call.Material}
}

var errNoPayToken = errors.New("the payment has no payToken")

// codeAccepted is the inittxnstatus of an accepted payment, and the confirmtxnstatus of a successful one.
const codeAccepted = "200"

// payerRefusals are the inittxnstatus codes of a refusal by the payer's wallet, with the reason.
func payerRefusals(code string) ledger.FailureReason {
	switch code {
	case "60019":
		return ledger.NotEnoughFunds
	case "0066111":
		return ledger.WalletUnknown
	default:
		return ""
	}
}

// classifyPayment maps a response to mp/pay. A refusal comes with 400, or with 200. A used payToken is 422.
func classifyPayment(x upstream.Exchange, payToken string) operator.Result {
	if result, isWithout := x.WithoutResponse(); isWithout {
		return result
	}
	cause := fmt.Errorf("mp/pay responded %d", x.Status)
	if code := upstream.WSO2Refusal(x); code != "" {
		return upstream.NotAppliedByWSO2(code, fmt.Errorf("%w with the API gateway's code %s", cause, code))
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
		reason = payerRefusals(p.initCode)
	}
	isOurs := p.payToken == payToken
	isPending := p.status == ledger.Pending || p.status == ledger.Successful
	isFailed := p.word == "" || p.status == ledger.Failed
	switch {
	case x.IsSuccess() && isOurs && isPending && p.initCode == codeAccepted:
		return operator.Result{Outcome: operator.Succeeded, OperatorReference: p.transactionID}
	case reason != "" && isFailed && p.transactionID == "" && (isOurs || p.payToken == ""):
		return upstream.Refused(reason, x.Status, fmt.Errorf("%w with %s", cause, p.initCode))
	case len(p.initCode) <= 7 && strings.Trim(p.initCode, "0123456789") == "": // no number of a person
		return upstream.Unknown(fmt.Errorf("%w with inittxnstatus %q", cause, p.initCode))
	}
	return upstream.Unknown(cause)
}
