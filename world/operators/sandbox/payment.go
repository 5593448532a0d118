package sandbox

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"mobilegateway/shared/market"
	"mobilegateway/shared/strictjson"
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

// postPayment accepts a payment once for each order_id. An equal repeat gets the first response, another body a 409.
func (s *Sandbox) postPayment(w http.ResponseWriter, r *http.Request) {
	var body paymentBody
	raw, ok := readRequest(w, r, &body, func(c *requestChecker) { checkPayment(c, &body) })
	if !ok {
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

func checkPayment(c *requestChecker, body *paymentBody) {
	c.requireHeaders("mno-name")
	if _, ok := market.ByAlpha2(c.Header.Get("country-code")); !ok {
		c.requireOneOf("country-code", c.Header.Get("country-code"), market.Alpha2s()...)
	}
	c.requireOneOf("channel", c.Header.Get("channel"), "web", "tpe", "ussd")
	c.check("lang", len(c.Header.Get("lang")) == 2)
	c.checkCurrency("currency", body.Currency)
	c.check("order_id", body.OrderID != "" && len(body.OrderID) <= maxIDLength)
	c.checkAmount("amount", amountText(body.Amount))
	c.checkURL("return_url", body.ReturnURL)
	c.checkURL("cancel_url", body.CancelURL)
	c.checkURL("notif_url", body.NotifURL)
	c.check("reference", body.Reference != "" && utf8.RuneCountInString(body.Reference) <= maxIDLength)
	c.check("user_msisdn", body.UserMSISDN != "" || c.Header.Get("channel") == "web")
	c.check("state", body.State != nil)
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
func paymentPayloadOf(t *transaction, payloadType, status string) paymentPayload {
	o := t.Payment
	date, description := t.CreatedAt, "Payment is waiting for approval"
	switch {
	case status == pending:
	case status == t.State:
		date, description = t.FinalAt, o.StatusDescription
	default:
		date, description = t.FinalAt, "Payment is "+status
	}
	p := paymentPayload{
		Status: status, Amount: t.Amount, OrderID: t.Key, Currency: t.Currency, Reference: o.Reference,
		CountryCode: o.CountryCode, State: o.State, UserMSISDN: cmp.Or(o.RequestedMSISDN, o.TypedMSISDN),
		TransactionID: t.OperatorID, Date: date.Format("2006-01-02 15:04:05"), StatusDescription: description,
	}
	p.Meta.Type, p.Meta.Source, p.Meta.Channel = payloadType, o.Operator, o.Channel
	return p
}

// notificationBody is the callback of a payment (specification, Payment notification to the merchant).
func notificationBody(t *transaction, status string) []byte {
	p := paymentPayloadOf(t, "payment-notif", status)
	p.NotifToken = t.Payment.NotifToken
	return strictjson.Marshal(p)
}

// paymentURL is the address of a web payment's page; "" on the other channels.
func (s *Sandbox) paymentURL(o *paymentDetails) string {
	if o.PayToken == "" {
		return ""
	}
	return s.config.BaseURL + "/pay/" + o.PayToken
}

// correctResponse is the response to an applied call. A payment's does not change with its status.
func (s *Sandbox) correctResponse(t *transaction, otp string) response {
	if t.Kind != kindPayment || t.State == refused {
		return t.Response
	}
	o := t.Payment
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
func (s *Sandbox) getStatus(w http.ResponseWriter, r *http.Request) {
	order := r.PathValue("order_id")
	s.mu.Lock()
	m, _ := s.nextScriptedMode(kindLookup, order)
	t := s.transactions.find(kindPayment, order)
	planned := plannedResponse{response: invalidPartResponse(http.StatusNotFound, "order_id")}
	if t != nil {
		t.Lookups++
	}
	if t != nil && t.State != absent && t.State != received {
		status := t.State
		if status == refused {
			status = failed
		}
		planned.response = jsonResponse(http.StatusOK, paymentPayloadOf(t, "payment", status))
	}
	s.mu.Unlock()
	if m.faultyResponse != nil {
		planned.response = *m.faultyResponse
	}
	if m.appliesLater {
		planned.delay = slowResponseDelay
	}
	s.config.Logf("sandbox: getStatus %s %s", order, planned.response.logText())
	if s.awaitResponse(w, r, planned) {
		planned.response.write(w)
	}
}
