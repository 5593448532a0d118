package sandbox

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"mobilegateway/shared/market"
	"mobilegateway/world/operators/kit"
)

type paymentBody struct {
	Currency   string          `json:"currency"`
	OrderID    string          `json:"order_id"`
	Amount     json.RawMessage `json:"amount"`
	ReturnURL  string          `json:"return_url"`
	CancelURL  string          `json:"cancel_url"`
	NotifURL   string          `json:"notif_url"`
	Reference  string          `json:"reference"`
	UserMSISDN string          `json:"user_msisdn"`
	OTPCode    string          `json:"otp_code"`
	State      *string         `json:"state"`
}

const (
	maxIDLength = 30 // of order_id and reference, in characters (specification, Limits)
	// replicationDelay is the age until which the hazard kit.NotFoundYet does not find a payment.
	replicationDelay = 2 * time.Minute
)

// parsePayment reads a payment. The operator accepts one for each order_id. An equal repeat gets the first response,
// another body a 409.
func (s *Sandbox) parsePayment(c *kit.Call, in *request) error {
	var body paymentBody
	err := json.Unmarshal(c.Body, &body)
	header := c.Request.Header
	o := paymentDetails{
		Operator:        strings.ToLower(header.Get("mno-name")),
		CountryCode:     header.Get("country-code"),
		Channel:         header.Get("channel"),
		Lang:            header.Get("lang"),
		Reference:       body.Reference,
		RequestedMSISDN: body.UserMSISDN,
		ReturnURL:       body.ReturnURL,
		CancelURL:       body.CancelURL,
	}
	in.key, in.messagePart, in.payer, in.otpCode = body.OrderID, "order_id", body.UserMSISDN, body.OTPCode
	in.callbackURL = body.NotifURL
	in.fingerprint = fingerprint(c.Fields, o.Operator, strings.ToUpper(o.CountryCode), o.Channel)
	in.check = func(c *requestChecker) { checkPayment(c, &body) }
	in.fillTransaction = func(t transaction) {
		t.Amount, t.Currency, o.State = amountText(body.Amount), body.Currency, *body.State
		if o.Channel == "web" {
			o.PayToken, o.NotifToken = newToken(s.NewBytes(24)), newToken(s.NewBytes(24))
		}
		t.Payment = &o
	}
	return err
}

func checkPayment(c *requestChecker, body *paymentBody) {
	c.requireHeaders("mno-name")
	if _, ok := market.ByAlpha2(c.header("country-code")); !ok {
		c.requireOneOf("country-code", c.header("country-code"), market.Alpha2s()...)
	}
	c.requireOneOf("channel", c.header("channel"), "web", "tpe", "ussd")
	c.check("lang", len(c.header("lang")) == 2)
	c.checkCurrency("currency", body.Currency)
	c.check("order_id", body.OrderID != "" && len(body.OrderID) <= maxIDLength)
	c.checkAmount("amount", amountText(body.Amount))
	c.checkURL("return_url", body.ReturnURL)
	c.checkURL("cancel_url", body.CancelURL)
	c.checkURL("notif_url", body.NotifURL)
	c.check("reference", body.Reference != "" && utf8.RuneCountInString(body.Reference) <= maxIDLength)
	c.check("user_msisdn", body.UserMSISDN != "" || c.header("channel") == "web")
	c.check("state", body.State != nil)
}

// otherSpellings are the statuses with the hazard kit.OtherSpellings.
var otherSpellings = map[string]string{
	pending: "INITIATED", successful: "SUCCESS", failed: "FAILED", cancelled: "CANCELED", expired: "EXPIRED",
}

// paymentPayload is the specification's payload in its order, then the additions of real platforms.
type paymentPayload struct {
	Meta struct {
		Type    string `json:"type"`
		Source  string `json:"source"`
		Channel string `json:"channel"`
	} `json:"meta"`
	Status            string `json:"status"`
	Amount            string `json:"amount"`
	OrderID           string `json:"order-id"`
	Currency          string `json:"currency"`
	Reference         string `json:"reference"`
	CountryCode       string `json:"country-code"`
	State             string `json:"state"`
	UserMSISDN        string `json:"user_msisdn,omitempty"`
	OTPCode           string `json:"otp_code,omitempty"`
	TransactionID     string `json:"Transaction-id"`
	NotifToken        string `json:"notif_token,omitempty"`
	Date              string `json:"date"`
	StatusDescription string `json:"statusDescription"`
}

type webPaymentResponse struct {
	Status     int    `json:"status"`
	Message    string `json:"message"`
	PayToken   string `json:"pay_token"`
	PaymentURL string `json:"payment_url"`
	NotifToken string `json:"notif_token"`
	State      string `json:"state"`
}

// paymentPayloadOf describes a payment with a status, which may contradict the payment's own.
func paymentPayloadOf(t transaction, payloadType, status string) paymentPayload {
	o := t.Payment
	date, description := cmp.Or(t.EndsAt, t.CreatedAt), "Payment is "+status
	switch status {
	case pending:
		date, description = t.CreatedAt, "Payment is waiting for approval"
	case t.Status:
		description = o.StatusDescription
	}
	p := paymentPayload{
		Status: status, Amount: t.Amount, OrderID: t.Key, Currency: t.Currency, Reference: o.Reference,
		CountryCode: o.CountryCode, State: o.State, UserMSISDN: cmp.Or(o.RequestedMSISDN, o.TypedMSISDN),
		TransactionID: t.Reference, Date: date.Format("2006-01-02 15:04:05"), StatusDescription: description,
	}
	if t.Outcome.OtherSpellings {
		p.Status = otherSpellings[status]
	}
	p.Meta.Type, p.Meta.Source, p.Meta.Channel = payloadType, o.Operator, o.Channel
	return p
}

// notificationBody is the callback of a payment (specification, Payment notification to the merchant).
func notificationBody(t transaction, status string, hazard kit.Hazard) []byte {
	p := paymentPayloadOf(t, "payment-notif", status)
	p.NotifToken = t.Payment.NotifToken
	switch hazard {
	case kit.CallbackWrongAmount:
		p.Amount = "9" + p.Amount
	case kit.CallbackWrongToken:
		p.NotifToken = "notif-of-another-payment"
	}
	return marshal(p)
}

// paymentURL is the address of a web payment's page; "" on the other channels.
func (s *Sandbox) paymentURL(o *paymentDetails) string {
	if o.PayToken == "" {
		return ""
	}
	return s.config.BaseURL + "/pay/" + o.PayToken
}

// correctResponse is the response to an applied call. A payment's does not change with its status.
func (s *Sandbox) correctResponse(t transaction, otp string) kit.Response {
	o := t.Payment
	if o == nil || t.Status == refused {
		return t.Response.response()
	}
	if o.Channel == "web" {
		return createdResponse("", webPaymentResponse{
			http.StatusCreated, "OK", o.PayToken, s.paymentURL(o), o.NotifToken, o.State,
		})
	}
	p := paymentPayloadOf(t, "payment", pending)
	p.OTPCode = otp
	return createdResponse("", p)
}

// getStatus returns a payment's status: 404 for an order that was never accepted, or is not yet.
func (s *Sandbox) getStatus(c *kit.Call) kit.Response {
	t, found := s.find(kindPayment, c.Key)
	if !found {
		return invalidPartResponse(http.StatusNotFound, "order_id")
	}
	hazard := kit.Hazard(c.Mode)
	isHidden := hazard == kit.NotFound || hazard == kit.NotFoundYet && s.Now().Sub(t.CreatedAt) < replicationDelay
	if t.Status == absent || t.Status == received || isHidden {
		return invalidPartResponse(http.StatusNotFound, "order_id")
	}
	status := t.Status
	if status == refused {
		status = failed
	}
	p := paymentPayloadOf(t, "payment", status)
	switch hazard {
	case kit.OtherAmount:
		p.Status, p.Amount = successful, "1"+p.Amount
	case kit.OtherCurrency:
		p.Status, p.Currency = successful, map[bool]string{true: "XAF", false: "XOF"}[p.Currency == "XOF"]
	}
	return jsonResponse(http.StatusOK, p)
}
