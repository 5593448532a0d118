package carrierapi

import (
	"context"
	"encoding/json"
	"net/http"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// payPath is the path of the payment operation (specification, Endpoints).
const payPath = "/mobilemoney/v1"

// webChannel is the only channel with a payment page in the response.
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

// Pay starts a payment. A success has the page's fields on the web channel. On tpe and ussd it has the operator's
// Transaction-id, if there is one.
func (d *Driver) Pay(ctx context.Context, call operator.PayCall) operator.PayResponse {
	parseSuccess := parseWebSuccess
	if call.Channel != webChannel {
		parseSuccess = func(response *strictjson.Reader) (operator.PayResponse, bool) {
			return parseTerminalSuccess(response, call.UpstreamKey)
		}
	}
	build := func(credentials.Account) (upstream.Request, error) { return buildPayRequest(call), nil }
	return d.execute(ctx, call.Call, callProtocol{
		operation: operator.AccountPay, buildRequest: build, parseSuccess: parseSuccess,
	})
}

// buildPayRequest makes the request. It sends otp_code only on tpe and ussd (specification, Mobile money payment
// request).
func buildPayRequest(call operator.PayCall) upstream.Request {
	otp := call.OTP
	if call.Channel == webChannel {
		otp = ""
	}
	return upstream.Request{
		Method: http.MethodPost, IsTransaction: true,
		URL:    payPath,
		Header: routingHeaders(call.Call, call.Channel, call.Lang),
		Body: strictjson.Marshal(payRequest{
			Currency:  call.Currency,
			OrderID:   call.UpstreamKey,
			Amount:    amountJSON(call.Amount),
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

// routingHeaders makes the headers with the routing of a payment.
func routingHeaders(call operator.Call, channel, lang string) map[string]string {
	return map[string]string{
		"mno-name":     call.Operator,
		"country-code": call.Country,
		"channel":      channel,
		"lang":         lang,
	}
}

// amountJSON writes an amount as the decimal that the specification requires, or as a text if it is not a JSON number
// ("007").
func amountJSON(amount string) json.RawMessage {
	if json.Valid([]byte(amount)) && ascii.ConsistsOf(amount, ascii.Digits+".") {
		return json.RawMessage(amount)
	}
	return strictjson.Marshal(amount)
}

// parseWebSuccess reads a success of the web channel: pay_token, payment_url and notif_token (decision "pay-web").
func parseWebSuccess(response *strictjson.Reader) (operator.PayResponse, bool) {
	page := operator.PayResponse{
		PayToken:   upstream.Text(response, "pay_token"),
		PaymentURL: upstream.URL(response, "payment_url"),
		NotifToken: upstream.Text(response, "notif_token"),
	}
	return page, page.PayToken != "" && page.PaymentURL != "" && page.NotifToken != ""
}

// parseTerminalSuccess reads a success of the tpe and ussd channels: a known status of our own order.
func parseTerminalSuccess(response *strictjson.Reader, orderID string) (operator.PayResponse, bool) {
	order, _ := parseOrderState(response)
	result := operator.Result{OperatorReference: order.OperatorReference}
	return operator.PayResponse{Result: result}, order.Status != "" && order.OrderID == orderID
}

// parseOrderState reads a payment, as tpe and ussd responses and getStatus have it, and its status as sent. The fields
// are at the root, or in an object "payload": the specification names such an object without its form (decision
// "pay-terminal").
func parseOrderState(response *strictjson.Reader) (order operator.CallbackReport, word string) {
	prefix := ""
	if response.HasObject("payload") {
		prefix = "payload."
	}
	word = upstream.Text(response, prefix+"status")
	order.OrderID = upstream.Text(response, prefix+"order-id")
	order.Status, _ = operator.ParsePaymentStatus(word)
	order.Amount = upstream.TextOrNumber(response, prefix+"amount")
	order.Currency = upstream.Text(response, prefix+"currency")
	order.MSISDN = upstream.TextOrNumber(response, prefix+"user_msisdn")
	order.OperatorReference = upstream.TextOrNumber(response, prefix+"Transaction-id")
	order.Reason = operator.ParseFailureReason(upstream.Text(response, prefix+"statusDescription"))
	return order, word
}
