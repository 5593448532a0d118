package pay

import (
	"slices"
	"strings"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/strictjson"
)

const (
	created    = 201
	channelWeb = "web"
)

// The message parts of a payment request, in the specification's order: headers, then body.
const (
	partOperator  = "mno-name"
	partCountry   = "country-code"
	partChannel   = "channel"
	partLang      = "lang"
	partCurrency  = "currency"
	partOrder     = "order_id"
	partAmount    = "amount"
	partReturn    = "return_url"
	partCancel    = "cancel_url"
	partNotif     = "notif_url"
	partReference = "reference"
	partMSISDN    = "user_msisdn"
	partOTP       = "otp_code"
	partState     = "state"
)

// The limits: the specification's (order_id, reference) in characters, the decisions' (state) in bytes, ours (the rest).
const (
	maxOrder     = 30
	maxReference = 30
	maxState     = 1024
	maxURL       = 2048
	maxMSISDN    = 20
	maxOTP       = 32
	langLength   = 2
)

// message is a payment request that broke no rule.
type message struct {
	able        operator.Capabilities
	country     market.Country
	countryText string // as sent
	channel     string
	lang        string // fr or en
	currency    string
	orderID     string
	owner       string // the merchant's name in order_id
	amountText  string
	minor       int64
	returnURL   string
	cancelURL   string
	notifURL    string
	reference   string
	msisdn      string // as sent; "" for none
	otp         string // "" for none; never stored
	state       string
	canonical   []byte
}

// read validates headers and body in the specification's order; the first fault found is returned.
func (o *Operation) read(req *apigw.Request, doc *strictjson.Reader, profile *merchant.Profile) (*message, error) {
	m := &message{}
	m.readRouting(req, doc)
	m.currency = operation.Choice(doc, partCurrency, []string{m.country.Currency})
	m.readOrder(doc)
	m.readAmount(doc)
	m.returnURL = o.link(doc, partReturn)
	m.cancelURL = o.link(doc, partCancel)
	m.notifURL = o.notif(doc, profile)
	m.reference = doc.Text(partReference, maxReference)
	m.readPurchaser(req, doc)
	m.state = doc.Text(partState, maxState)
	if len(m.state) > maxState {
		doc.Fail(fault.In(fault.Invalid, partState))
	}
	if f := doc.Fault(); f != nil {
		return nil, f
	}
	m.canonical = doc.Canonical(partOTP)
	return m, nil
}

// readRouting reads the routing headers. An operator is one of the valid values only where it serves the country, and a
// channel only where the operator has it.
func (m *message) readRouting(req *apigw.Request, doc *strictjson.Reader) {
	name := operation.Header(req, doc, partOperator)
	m.countryText = req.Header(partCountry) // looked at ahead of its turn, judged in its turn
	m.country, _ = market.ByAlpha2(m.countryText)
	m.able, _ = operator.Find(name)
	operation.OneOf(doc, partOperator, strings.ToLower(name), serving(m.country))
	operation.Header(req, doc, partCountry)
	operation.OneOf(doc, partCountry, strings.ToUpper(m.countryText), market.Alpha2s())
	m.channel = operation.Header(req, doc, partChannel)
	operation.OneOf(doc, partChannel, m.channel, m.able.Channels)
	lang := operation.Header(req, doc, partLang)
	if lang != "" && (len(lang) != langLength || !only(lang, isLetter)) {
		doc.Fail(fault.In(fault.Invalid, partLang))
	}
	m.lang = "en"
	if strings.EqualFold(lang, "fr") {
		m.lang = "fr"
	}
}

// serving lists the operators that serve a country; all of them while the country is not known.
func serving(country market.Country) []string {
	return slices.DeleteFunc(operator.Names(), func(name string) bool {
		able, _ := operator.Find(name)
		return country.Alpha2 != "" && !able.Serves(country.Alpha2)
	})
}

// readOrder reads order_id, <MerchantName>_<ID> with a numeric ID, and finds whose it says it is (decision "pay-order-id").
func (m *message) readOrder(doc *strictjson.Reader) {
	m.orderID = doc.Text(partOrder, maxOrder)
	name, number, _ := strings.Cut(m.orderID, "_")
	if m.orderID != "" && (!only(name, isLetterOrDigit) || !only(number, isDigit)) {
		doc.Fail(fault.In(fault.Invalid, partOrder))
	}
	m.owner = name
}

// only tells whether a text is not empty and every byte of it is of a class.
func only(text string, class func(byte) bool) bool {
	return text != "" && !slices.ContainsFunc([]byte(text), func(c byte) bool { return !class(c) })
}

func isDigit(c byte) bool         { return '0' <= c && c <= '9' }
func isLetter(c byte) bool        { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isLetterOrDigit(c byte) bool { return isDigit(c) || isLetter(c) }

func (m *message) readAmount(doc *strictjson.Reader) {
	m.amountText, _ = doc.Number(partAmount)
	if m.amountText == "" {
		return
	}
	var err error
	m.minor, err = money.Parse(m.amountText, m.country.Exponent)
	if err != nil {
		doc.Fail(fault.In(fault.Invalid, partAmount))
	}
}

// readPurchaser reads the number, which terminals must give, and the one-time code by the operator's rule
// (decision "pay-otp"). On the web channel a code is unused and not read.
func (m *message) readPurchaser(req *apigw.Request, doc *strictjson.Reader) {
	var present bool
	m.msisdn, present = optional(doc, partMSISDN, maxMSISDN)
	req.Event.SetMSISDN(m.msisdn)
	terminal := m.channel != channelWeb
	if !present && terminal {
		doc.Fail(fault.In(fault.Missing, partMSISDN))
	}
	if _, err := msisdn.Parse(m.msisdn, m.country); present && err != nil {
		doc.Fail(fault.In(fault.Invalid, partMSISDN))
	}
	if !terminal || m.able.OTP == operator.OTPUnused {
		return
	}
	m.otp, present = optional(doc, partOTP, maxOTP)
	if !present && m.able.OTP == operator.OTPRequired {
		doc.Fail(fault.In(fault.Missing, partOTP))
	}
}

// optional reads a text that counts as absent where it is empty (decision "unknown-fields").
func optional(doc *strictjson.Reader, part string, longest int) (text string, present bool) {
	if doc.Empty(part) {
		return "", false
	}
	return doc.OptionalText(part, longest)
}

// link reads a page address to which the customer's browser is sent.
func (o *Operation) link(doc *strictjson.Reader, part string) string {
	text := doc.Text(part, maxURL)
	if text != "" && outgoing.CheckReturn(text, o.Outgoing) != nil {
		doc.Fail(fault.In(fault.Invalid, part))
	}
	return text
}

// notif is the merchant's notification address: the body's, on a registered host, else the provisioned one
// (decision "pay-notif-url").
func (o *Operation) notif(doc *strictjson.Reader, profile *merchant.Profile) string {
	text, present := doc.OptionalText(partNotif, maxURL)
	if !present {
		text = profile.NotifURL
	}
	if text == "" {
		doc.Fail(fault.In(fault.Missing, partNotif))
		return ""
	}
	if present && outgoing.Check(text, profile.NotificationPolicy(o.Outgoing.AllowLoopback)) != nil {
		doc.Fail(fault.In(fault.Invalid, partNotif))
	}
	return text
}

// call is the payment as the operator's driver gets it.
func (m *message) call(held *ledger.Entry, callbackURL string) operator.PayCall {
	return operator.PayCall{
		Call: operator.Call{
			Operator: held.Operator, Account: held.Account, Key: held.UpstreamKey,
			MCO: m.country.MCO, Country: held.Country, Resend: held.EverUnknown,
		},
		Channel:   m.channel,
		Lang:      m.lang,
		Amount:    m.amountText,
		Currency:  m.currency,
		ReturnURL: m.returnURL,
		CancelURL: m.cancelURL,
		NotifyURL: callbackURL,
		Reference: m.reference,
		MSISDN:    m.msisdn,
		OTP:       m.otp,
		State:     m.state,
	}
}

// page is the web channel's answer as the specification writes it (decision "pay-web").
type page struct {
	Status     int    `json:"status"`
	Message    string `json:"message"`
	PayToken   string `json:"pay_token"`
	PaymentURL string `json:"payment_url"`
	NotifToken string `json:"notif_token"`
	State      string `json:"state"`
}

func webAnswer(answer operator.PayAnswer, state string) []byte {
	return strictjson.Marshal(page{
		Status:     created,
		Message:    "OK",
		PayToken:   answer.PayToken,
		PaymentURL: answer.PaymentURL,
		NotifToken: answer.NotifToken,
		State:      state,
	})
}
