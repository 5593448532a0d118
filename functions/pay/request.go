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
	statusCreated = 201
	channelWeb    = "web"
)

// The message parts of a payment request, in the specification's order: headers, then body.
const (
	partOperator  = "mno-name"
	partCountry   = "country-code"
	partChannel   = "channel"
	partLang      = "lang"
	partCurrency  = "currency"
	partOrderID   = "order_id"
	partAmount    = "amount"
	partReturnURL = "return_url"
	partCancelURL = "cancel_url"
	partNotifURL  = "notif_url"
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

// paymentParams is a payment request that broke no rule.
type paymentParams struct {
	capabilities operator.Capabilities
	country      market.Country
	countryText  string // as sent
	channel      string
	lang         string // fr or en
	currency     string
	orderID      string
	merchantName string // the merchant's name in order_id
	amountText   string
	minor        int64
	returnURL    string
	cancelURL    string
	notifURL     string
	reference    string
	msisdn       string // as sent; "" for none
	otp          string // "" for none; never stored
	state        string
	canonical    []byte
}

// readParams validates headers and body in the specification's order; the first fault found is returned.
func (o *Operation) readParams(req *apigw.Request, doc *strictjson.Reader, profile *merchant.Profile) (*paymentParams, error) {
	m := &paymentParams{}
	m.readRouting(req, doc)
	m.currency = operation.RequireOneOf(doc, partCurrency, []string{m.country.Currency})
	m.readOrder(doc)
	m.readAmount(doc)
	m.returnURL = o.readReturnURL(doc, partReturnURL)
	m.cancelURL = o.readReturnURL(doc, partCancelURL)
	m.notifURL = o.readNotificationURL(doc, profile)
	m.reference = doc.Text(partReference, maxReference)
	m.readPurchaser(req, doc)
	m.state = doc.Text(partState, maxState)
	if len(m.state) > maxState {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, partState))
	}
	if f := doc.FirstFault(); f != nil {
		return nil, f
	}
	m.canonical = doc.Canonical(partOTP)
	return m, nil
}

// readRouting reads the routing headers. An operator is one of the valid values only where it serves the country, and a
// channel only where the operator has it.
func (m *paymentParams) readRouting(req *apigw.Request, doc *strictjson.Reader) {
	name := operation.RequiredHeader(req, doc, partOperator)
	m.countryText = req.Header(partCountry) // looked at ahead of its turn, judged in its turn
	m.country, _ = market.ByAlpha2(m.countryText)
	m.capabilities, _ = operator.FindCapabilities(name)
	operation.CheckOneOf(doc, partOperator, strings.ToLower(name), operatorsServing(m.country))
	operation.RequiredHeader(req, doc, partCountry)
	operation.CheckOneOf(doc, partCountry, strings.ToUpper(m.countryText), market.Alpha2s())
	m.channel = operation.RequiredHeader(req, doc, partChannel)
	operation.CheckOneOf(doc, partChannel, m.channel, m.capabilities.Channels)
	lang := operation.RequiredHeader(req, doc, partLang)
	if lang != "" && (len(lang) != langLength || !consistsOf(lang, isLetter)) {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, partLang))
	}
	m.lang = "en"
	if strings.EqualFold(lang, "fr") {
		m.lang = "fr"
	}
}

// operatorsServing lists the operators that serve a country; all of them while the country is not known.
func operatorsServing(country market.Country) []string {
	return slices.DeleteFunc(operator.Names(), func(name string) bool {
		capabilities, _ := operator.FindCapabilities(name)
		return country.Alpha2 != "" && !capabilities.ServesCountry(country.Alpha2)
	})
}

// readOrder reads order_id, <MerchantName>_<ID> with a numeric ID, and finds whose it says it is (decision "pay-order-id").
func (m *paymentParams) readOrder(doc *strictjson.Reader) {
	m.orderID = doc.Text(partOrderID, maxOrder)
	name, number, _ := strings.Cut(m.orderID, "_")
	if m.orderID != "" && (!consistsOf(name, isLetterOrDigit) || !consistsOf(number, isDigit)) {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, partOrderID))
	}
	m.merchantName = name
}

// consistsOf tells whether a text is not empty and every byte of it is of a class.
func consistsOf(text string, allowed func(byte) bool) bool {
	return text != "" && !slices.ContainsFunc([]byte(text), func(c byte) bool { return !allowed(c) })
}

func isDigit(c byte) bool         { return '0' <= c && c <= '9' }
func isLetter(c byte) bool        { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isLetterOrDigit(c byte) bool { return isDigit(c) || isLetter(c) }

func (m *paymentParams) readAmount(doc *strictjson.Reader) {
	m.amountText, _ = doc.Number(partAmount)
	if m.amountText == "" {
		return
	}
	var err error
	m.minor, err = money.Parse(m.amountText, m.country.Exponent)
	if err != nil {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, partAmount))
	}
}

// readPurchaser reads the number, which terminals must give, and the one-time code by the operator's rule
// (decision "pay-otp"). On the web channel a code is unused and not read.
func (m *paymentParams) readPurchaser(req *apigw.Request, doc *strictjson.Reader) {
	var present bool
	m.msisdn, present = optionalText(doc, partMSISDN, maxMSISDN)
	req.LogLine.SetMSISDN(m.msisdn)
	isTerminal := m.channel != channelWeb
	if !present && isTerminal {
		doc.RecordFault(fault.ForPart(fault.MissingPart, partMSISDN))
	}
	if _, err := msisdn.Parse(m.msisdn, m.country); present && err != nil {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, partMSISDN))
	}
	if !isTerminal || m.capabilities.OTPRule == operator.OTPUnused {
		return
	}
	m.otp, present = optionalText(doc, partOTP, maxOTP)
	if !present && m.capabilities.OTPRule == operator.OTPRequired {
		doc.RecordFault(fault.ForPart(fault.MissingPart, partOTP))
	}
}

// optionalText reads a text that counts as absent where it is empty (decision "unknown-fields").
func optionalText(doc *strictjson.Reader, part string, maxLength int) (text string, present bool) {
	if doc.IsEmptyText(part) {
		return "", false
	}
	return doc.OptionalText(part, maxLength)
}

// readReturnURL reads a page address to which the customer's browser is sent.
func (o *Operation) readReturnURL(doc *strictjson.Reader, part string) string {
	text := doc.Text(part, maxURL)
	if text != "" && outgoing.CheckReturnURL(text, o.OutgoingPolicy) != nil {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, part))
	}
	return text
}

// readNotificationURL is the merchant's notification address: the body's, on a registered host, else the provisioned one
// (decision "pay-notif-url").
func (o *Operation) readNotificationURL(doc *strictjson.Reader, profile *merchant.Profile) string {
	text, present := doc.OptionalText(partNotifURL, maxURL)
	if !present {
		text = profile.NotifURL
	}
	if text == "" {
		doc.RecordFault(fault.ForPart(fault.MissingPart, partNotifURL))
		return ""
	}
	if present && outgoing.CheckNotificationURL(text, profile.NotificationPolicy(o.OutgoingPolicy.AllowLoopback)) != nil {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, partNotifURL))
	}
	return text
}

// operatorCall is the payment as the operator's driver gets it.
func (m *paymentParams) operatorCall(reservation *ledger.Entry, callbackURL string) operator.PayCall {
	return operator.PayCall{
		Call: operator.Call{
			Operator: reservation.Operator, AccountID: reservation.Account, IdempotencyKey: reservation.UpstreamKey,
			MCO: m.country.MCO, Country: reservation.Country, MayRepeat: reservation.EverUnknown,
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

// webResponse is the web channel's answer as the specification writes it (decision "pay-web").
type webResponse struct {
	Status     int    `json:"status"`
	Message    string `json:"message"`
	PayToken   string `json:"pay_token"`
	PaymentURL string `json:"payment_url"`
	NotifToken string `json:"notif_token"`
	State      string `json:"state"`
}

func webResponseBody(response operator.PayResponse, state string) []byte {
	return strictjson.Marshal(webResponse{
		Status:     statusCreated,
		Message:    "OK",
		PayToken:   response.PayToken,
		PaymentURL: response.PaymentURL,
		NotifToken: response.NotifToken,
		State:      state,
	})
}
