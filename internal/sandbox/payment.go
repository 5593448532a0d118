package sandbox

import (
	"encoding/json"
	"net/http"
	"strings"

	"mobilegateway/shared/market"
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

// maxIDLength is the longest order_id and reference in characters (specification, Limits).
const maxIDLength = 30

// postPayment accepts a payment once an order_id. An equal repeat gets the stored answer, another body a 409.
func (s *Sandbox) postPayment(w http.ResponseWriter, r *http.Request) {
	var body paymentBody
	raw, fault := readBody(w, r, &body)
	if fault == nil {
		fault = checkPayment(r, &body)
	}
	if fault != nil {
		fault.write(w)
		return
	}
	o := paymentDetails{
		Operator:        strings.ToLower(r.Header.Get("mno-name")),
		CountryCode:     r.Header.Get("country-code"),
		Channel:         r.Header.Get("channel"),
		Lang:            r.Header.Get("lang"),
		Reference:       body.Reference,
		State:           *body.State,
		RequestedMSISDN: body.UserMSISDN,
		ReturnURL:       body.ReturnURL,
		CancelURL:       body.CancelURL,
	}
	s.handleCall(w, r, validRequest{
		kind: kindPayment, key: body.OrderID, messagePart: "order_id", payer: body.UserMSISDN, otpCode: body.OTPCode,
		callbackURL: body.NotifURL,
		fingerprint: fingerprint(raw, o.Operator, strings.ToUpper(o.CountryCode), o.Channel),
		fillTransaction: func(t *transaction) {
			t.Amount, t.Currency = amountText(body.Amount), body.Currency
			if o.Channel == "web" {
				o.PayToken, o.NotifToken = s.newToken(), s.newToken()
			}
			t.Payment = &o
		},
	})
}

func checkPayment(r *http.Request, body *paymentBody) *response {
	var c requestChecker
	c.requireHeader(r, "mno-name")
	if _, ok := market.ByAlpha2(r.Header.Get("country-code")); !ok {
		c.requireOneOf("country-code", r.Header.Get("country-code"), market.Alpha2s()...)
	}
	c.requireOneOf("channel", r.Header.Get("channel"), "web", "tpe", "ussd")
	if len(r.Header.Get("lang")) != 2 {
		c.fail(invalidPartResponse(http.StatusBadRequest, "lang"))
	}
	c.checkCurrency("currency", body.Currency)
	if body.OrderID == "" || len(body.OrderID) > maxIDLength {
		c.fail(invalidPartResponse(http.StatusBadRequest, "order_id"))
	}
	c.checkAmount("amount", amountText(body.Amount))
	c.checkURL("return_url", body.ReturnURL)
	c.checkURL("cancel_url", body.CancelURL)
	c.checkURL("notif_url", body.NotifURL)
	if body.Reference == "" || len([]rune(body.Reference)) > maxIDLength {
		c.fail(invalidPartResponse(http.StatusBadRequest, "reference"))
	}
	if r.Header.Get("channel") != "web" {
		c.require("user_msisdn", body.UserMSISDN)
	}
	if body.State == nil {
		c.fail(invalidPartResponse(http.StatusBadRequest, "state"))
	}
	return c.firstFault
}

type paymentMeta struct {
	Type    string `json:"type"`
	Source  string `json:"source"`
	Channel string `json:"channel"`
}

// paymentPayload is the specification's payload in its order, then what platforms of this family add.
type paymentPayload struct {
	Meta              paymentMeta `json:"meta"`
	Status            string      `json:"status"`
	Amount            string      `json:"amount"`
	OrderID           string      `json:"order-id"`
	Currency          string      `json:"currency"`
	Reference         string      `json:"reference"`
	CountryCode       string      `json:"country-code"`
	State             string      `json:"state"`
	UserMSISDN        string      `json:"user_msisdn,omitempty"`
	OTPCode           string      `json:"otp_code,omitempty"`
	TransactionID     string      `json:"Transaction-id"`
	NotifToken        string      `json:"notif_token,omitempty"`
	Date              string      `json:"date"`
	StatusDescription string      `json:"statusDescription"`
}

type webPaymentResponse struct {
	Status     int    `json:"status"`
	Message    string `json:"message"`
	PayToken   string `json:"pay_token"`
	PaymentURL string `json:"payment_url"`
	NotifToken string `json:"notif_token"`
	State      string `json:"state"`
}

func paymentPayloadOf(t *transaction, kind, status string) paymentPayload {
	o := t.Payment
	msisdn := o.RequestedMSISDN
	if msisdn == "" {
		msisdn = o.TypedMSISDN
	}
	date, description := t.CreatedAt, "Payment is waiting for approval"
	if status != pending {
		date, description = t.FinalAt, o.StatusDescription
	}
	if status != t.State && status != pending {
		description = "Payment is " + status // a contradicting callback
	}
	return paymentPayload{
		Meta: paymentMeta{kind, o.Operator, o.Channel}, Status: status, Amount: t.Amount, OrderID: t.Key,
		Currency: t.Currency, Reference: o.Reference, CountryCode: o.CountryCode, State: o.State, UserMSISDN: msisdn,
		TransactionID: t.OperatorID, Date: date.Format("2006-01-02 15:04:05"), StatusDescription: description,
	}
}

// notificationBody is the callback of a payment (specification, Payment notification to the merchant).
func notificationBody(t *transaction, status string) []byte {
	p := paymentPayloadOf(t, "payment-notif", status)
	p.NotifToken = t.Payment.NotifToken
	return encode(p)
}

// correctResponse is what a call gets whose answer is not spoilt. A payment's does not change with its status.
func (s *Sandbox) correctResponse(t *transaction, otp string) response {
	if t.Kind != kindPayment || t.State == refused {
		return t.Response
	}
	if t.Payment.Channel == "web" {
		return createdResponse("", webPaymentResponse{
			Status: http.StatusCreated, Message: "OK", PayToken: t.Payment.PayToken,
			PaymentURL: s.config.BaseURL + "/pay/" + t.Payment.PayToken,
			NotifToken: t.Payment.NotifToken, State: t.Payment.State,
		})
	}
	p := paymentPayloadOf(t, "payment", pending)
	p.OTPCode = otp
	return createdResponse("", p)
}

// getStatus tells a payment's status: 404 for an order that was never accepted, or is not yet.
func (s *Sandbox) getStatus(w http.ResponseWriter, r *http.Request) {
	order := r.PathValue("order_id")
	s.mu.Lock()
	m, scripted := s.nextScriptedMode(kindLookup, order)
	t := s.transactions.byKey[[2]string{kindPayment, order}]
	planned := *invalidPartResponse(http.StatusNotFound, "order_id")
	if t != nil {
		t.Lookups++
	}
	if t != nil && t.State != absent && t.State != received {
		planned = statusResponse(t)
	}
	if scripted && m.faultyResponse != nil {
		planned = *m.faultyResponse
	}
	s.mu.Unlock()
	s.config.Logf("sandbox: getStatus %s %s", order, planned.logText())
	if scripted && m.appliesLater {
		late := make(chan struct{})
		s.config.After(s.config.SlowResponseDelay, func() { close(late) })
		if !s.waitUntilReady(r, plannedResponse{ready: late}) {
			closeConnection(w)
			return
		}
	}
	planned.write(w)
}

func statusResponse(t *transaction) response {
	status := t.State
	if status == refused {
		status = failed
	}
	return response{Status: http.StatusOK, ContentType: jsonType, Body: encode(paymentPayloadOf(t, "payment", status))}
}
