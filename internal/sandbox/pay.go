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

// maxID is the longest order_id and reference in characters (specification, Limits).
const maxID = 30

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
	o := order{
		Operator:    strings.ToLower(r.Header.Get("mno-name")),
		CountryText: r.Header.Get("country-code"),
		Channel:     r.Header.Get("channel"),
		Lang:        r.Header.Get("lang"),
		Reference:   body.Reference,
		State:       *body.State,
		MSISDN:      body.UserMSISDN,
		ReturnURL:   body.ReturnURL,
		CancelURL:   body.CancelURL,
	}
	s.receive(w, r, incoming{
		kind: kindPayment, key: body.OrderID, part: "order_id", party: body.UserMSISDN, otp: body.OTPCode,
		callbackURL: body.NotifURL,
		fingerprint: fingerprint(raw, o.Operator, strings.ToUpper(o.CountryText), o.Channel),
		fill: func(t *transaction) {
			t.Amount, t.Currency = amountText(body.Amount), body.Currency
			if o.Channel == "web" {
				o.PayToken, o.NotifToken = s.token(), s.token()
			}
			t.Payment = &o
		},
	})
}

func checkPayment(r *http.Request, body *paymentBody) *answer {
	var c checker
	c.header(r, "mno-name")
	if _, ok := market.ByAlpha2(r.Header.Get("country-code")); !ok {
		c.exactly("country-code", r.Header.Get("country-code"), market.Alpha2s()...)
	}
	c.exactly("channel", r.Header.Get("channel"), "web", "tpe", "ussd")
	if len(r.Header.Get("lang")) != 2 {
		c.fail(invalid(http.StatusBadRequest, "lang"))
	}
	c.currency("currency", body.Currency)
	if body.OrderID == "" || len(body.OrderID) > maxID {
		c.fail(invalid(http.StatusBadRequest, "order_id"))
	}
	c.amount("amount", amountText(body.Amount))
	c.url("return_url", body.ReturnURL)
	c.url("cancel_url", body.CancelURL)
	c.url("notif_url", body.NotifURL)
	if body.Reference == "" || len([]rune(body.Reference)) > maxID {
		c.fail(invalid(http.StatusBadRequest, "reference"))
	}
	if r.Header.Get("channel") != "web" {
		c.need("user_msisdn", body.UserMSISDN)
	}
	if body.State == nil {
		c.fail(invalid(http.StatusBadRequest, "state"))
	}
	return c.fault
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

type webAnswer struct {
	Status     int    `json:"status"`
	Message    string `json:"message"`
	PayToken   string `json:"pay_token"`
	PaymentURL string `json:"payment_url"`
	NotifToken string `json:"notif_token"`
	State      string `json:"state"`
}

func payload(t *transaction, kind, status string) paymentPayload {
	o := t.Payment
	msisdn := o.MSISDN
	if msisdn == "" {
		msisdn = o.Payer
	}
	date, why := t.CreatedAt, "Payment is waiting for approval"
	if status != pending {
		date, why = t.FinalAt, o.Why
	}
	if status != t.State && status != pending {
		why = "Payment is " + status // a contradicting callback
	}
	return paymentPayload{
		Meta: paymentMeta{kind, o.Operator, o.Channel}, Status: status, Amount: t.Amount, OrderID: t.Key,
		Currency: t.Currency, Reference: o.Reference, CountryCode: o.CountryText, State: o.State, UserMSISDN: msisdn,
		TransactionID: t.OperatorID, Date: date.Format("2006-01-02 15:04:05"), StatusDescription: why,
	}
}

// notificationBody is the callback of a payment (specification, Payment notification to the merchant).
func notificationBody(t *transaction, status string) []byte {
	p := payload(t, "payment-notif", status)
	p.NotifToken = t.Payment.NotifToken
	return encode(p)
}

// trueAnswer is what a call gets whose answer is not spoilt. A payment's does not change with its status.
func (s *Sandbox) trueAnswer(t *transaction, otp string) answer {
	if t.Kind != kindPayment || t.State == refused {
		return t.Answer
	}
	if t.Payment.Channel == "web" {
		return created("", webAnswer{
			Status: http.StatusCreated, Message: "OK", PayToken: t.Payment.PayToken,
			PaymentURL: s.config.BaseURL + "/pay/" + t.Payment.PayToken,
			NotifToken: t.Payment.NotifToken, State: t.Payment.State,
		})
	}
	p := payload(t, "payment", pending)
	p.OTPCode = otp
	return created("", p)
}

// getStatus tells a payment's status: 404 for an order that was never accepted, or is not yet.
func (s *Sandbox) getStatus(w http.ResponseWriter, r *http.Request) {
	order := r.PathValue("order_id")
	s.mu.Lock()
	m, scripted := s.nextScripted(kindLookup, order)
	t := s.book.byKey[[2]string{kindPayment, order}]
	out := *invalid(http.StatusNotFound, "order_id")
	if t != nil {
		t.Lookups++
	}
	if t != nil && t.State != absent && t.State != received {
		out = lookup(t)
	}
	if scripted && m.spoilt != nil {
		out = *m.spoilt
	}
	s.mu.Unlock()
	s.config.Logf("sandbox: getStatus %s %s", order, out.word())
	if scripted && m.later {
		late := make(chan struct{})
		s.config.After(s.config.SlowAnswer, func() { close(late) })
		if !s.pause(r, reply{wait: late}) {
			cut(w)
			return
		}
	}
	out.write(w)
}

func lookup(t *transaction) answer {
	status := t.State
	if status == refused {
		status = failed
	}
	return answer{Status: http.StatusOK, Type: jsonType, Body: encode(payload(t, "payment", status))}
}
