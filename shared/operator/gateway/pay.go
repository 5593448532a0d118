package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// payPath is the path of the payment operation (specification, Endpoints).
const payPath = "/mobilemoney/v1"

// webChannel is the one channel whose answer is a page.
const webChannel = "web"

// payRequest is the payment request as the specification writes it.
type payRequest struct {
	Currency  string          `json:"currency"`
	OrderID   string          `json:"order_id"`
	Amount    json.RawMessage `json:"amount"`
	ReturnURL string          `json:"return_url"`
	CancelURL string          `json:"cancel_url"`
	NotifyURL string          `json:"notif_url"`
	Reference string          `json:"reference"`
	MSISDN    string          `json:"user_msisdn,omitempty"`
	OTP       string          `json:"otp_code,omitempty"`
	State     string          `json:"state"`
}

// Pay starts a payment. Done carries the page's fields on the web channel, and the operator's Transaction-id on tpe and
// ussd where it gives one.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayAnswer {
	var answer operator.PayAnswer
	complete := func(x exchange) (operator.Result, bool) { return readTerminal(x, call.Key) }
	if call.Channel == webChannel {
		complete = func(x exchange) (operator.Result, bool) {
			page, ok := readPage(x)
			answer = page
			return page.Result, ok
		}
	}
	write := func(account) (message, error) { return writePay(call), nil }
	answer.Result = d.perform(ctx, call.Call, protocol{write: write, complete: complete})
	if answer.Outcome != operator.Done {
		return operator.PayAnswer{Result: answer.Result}
	}
	return answer
}

// writePay makes the request. otp_code goes up on tpe and ussd alone (specification, Mobile money payment request).
func writePay(call operator.PayCall) message {
	otp := call.OTP
	if call.Channel == webChannel {
		otp = ""
	}
	return message{
		method: http.MethodPost,
		path:   payPath,
		header: routing(call.Call, call.Channel, call.Lang),
		body: strictjson.Marshal(payRequest{
			Currency:  call.Currency,
			OrderID:   call.Key,
			Amount:    decimal(call.Amount),
			ReturnURL: call.ReturnURL,
			CancelURL: call.CancelURL,
			NotifyURL: call.NotifyURL,
			Reference: call.Reference,
			MSISDN:    call.MSISDN,
			OTP:       otp,
			State:     call.State,
		}),
	}
}

// routing makes the headers that carry the routing information of a payment.
func routing(call operator.Call, channel, lang string) map[string]string {
	return map[string]string{
		"mno-name":     call.Operator,
		"country-code": call.Country,
		"channel":      channel,
		"lang":         lang,
	}
}

// decimal writes an amount as the decimal that the specification asks for, or as a text where JSON has no number of
// that form ("007").
func decimal(amount string) json.RawMessage {
	leading := strings.HasPrefix(amount, "-") || amount == ""
	if !leading && json.Valid([]byte(amount)) && strings.Trim(amount, "0123456789.") == "" {
		return json.RawMessage(amount)
	}
	return strictjson.Marshal(amount)
}

// readPage reads a success of the web channel: pay_token, payment_url and notif_token (decision "pay-web").
func readPage(x exchange) (operator.PayAnswer, bool) {
	answer, err := strictjson.Parse(x.body)
	if err != nil {
		return operator.PayAnswer{}, false
	}
	page := operator.PayAnswer{
		PayToken:   field(answer, "pay_token"),
		PaymentURL: webAddress(answer, "payment_url"),
		NotifToken: field(answer, "notif_token"),
	}
	return page, page.PayToken != "" && page.PaymentURL != "" && page.NotifToken != ""
}

// readTerminal reads a success of the tpe and ussd channels: a status word that is known, for our own order.
func readTerminal(x exchange, orderID string) (operator.Result, bool) {
	order, ok := readOrder(x)
	_, known := operator.StatusWord(order.status)
	if !ok || !known || order.id != orderID {
		return operator.Result{}, false
	}
	return operator.Result{OperatorReference: order.transactionID}, true
}

// order is the state of a payment as the tpe and ussd answers, getStatus and the notification carry it.
type order struct {
	id            string
	status        string
	amount        string
	currency      string
	msisdn        string
	transactionID string
}

// readOrder reads an order. Its fields stand at the root, or in an object "payload": the specification names such an
// object and shows neither form (decision "pay-terminal").
func readOrder(x exchange) (order, bool) {
	answer, err := strictjson.Parse(x.body)
	if err != nil {
		return order{}, false
	}
	prefix := ""
	if answer.Object("payload") {
		prefix = "payload."
	}
	return order{
		id:            field(answer, prefix+"order-id"),
		status:        field(answer, prefix+"status"),
		amount:        scalar(answer, prefix+"amount"),
		currency:      field(answer, prefix+"currency"),
		msisdn:        scalar(answer, prefix+"user_msisdn"),
		transactionID: scalar(answer, prefix+"Transaction-id"),
	}, true
}
