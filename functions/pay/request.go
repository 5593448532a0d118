package pay

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/validate"
)

const channelWeb = "web"

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

// The limits, in characters if the name does not say bytes. The specification sets those of order_id and reference,
// and a decision that of state; the others are ours.
const (
	maxOrderLength     = 30
	maxReferenceLength = 30
	maxStateBytes      = 1024
	maxURLLength       = 2048
	maxMSISDNLength    = 20
	maxOTPLength       = 32
	langLength         = 2
)

// paymentParams is a valid payment request.
type paymentParams struct {
	operatorName string // mno-name in lower case
	country      market.Country
	countryText  string // as sent
	channel      string
	headersValid bool   // mno-name, country-code and channel are in their tables, also if no route serves them
	lang         string // fr or en
	currency     string
	orderID      string
	merchantName string // the merchant's name in order_id
	amountText   string
	minor        int64
	returnURL    string
	cancelURL    string
	notifURL     string
	notifFrom    ledger.AddressSource
	reference    string
	msisdn       string // as sent; "" for none
	otp          string // "" for none; never stored
	state        string
	canonical    []byte
}

// readParams validates the headers and the body in the specification's order, sets a.Choice, and returns the first
// fault.
func (o *Operation) readParams(ctx context.Context, a *operation.Attempt) (*paymentParams, error) {
	p := &paymentParams{}
	req, doc, profile := a.Request, a.Body, a.Profile
	routes, err := o.Pipeline.Operators.Routes(ctx)
	p.readRouting(req, doc, routes)
	a.Choice.Selection, _ = routes.Select(operator.Service{
		Operator: p.operatorName, Country: p.country.Alpha2, Operation: operator.AccountPay, Channel: p.channel,
	})
	p.currency = validate.RequiredOneOf(doc, partCurrency, p.country.Currency)
	p.readOrderID(doc)
	p.readAmount(doc)
	p.returnURL = o.readReturnURL(doc, partReturnURL)
	p.cancelURL = o.readReturnURL(doc, partCancelURL)
	p.notifURL, p.notifFrom = o.readNotificationURL(doc, profile)
	p.reference = doc.Text(partReference, maxReferenceLength)
	p.readPayer(req, doc, a.Choice.OTPRule)
	p.state = doc.UnicodeText(partState, maxStateBytes)
	a.Choice.Refusal = cmp.Or(err, p.refusal(a.Choice.Capabilities, routes, profile))
	if f := doc.FirstFault(); f != nil {
		return nil, p.firstRefusal(f, a)
	}
	p.canonical = doc.Canonical(partOTP)
	return p, p.checkEntitled(profile)
}

// checkEntitled returns a Forbidden fault if the profile does not allow the payment, or if the order_id begins with
// another name than the merchant's.
func (p *paymentParams) checkEntitled(profile *merchant.Profile) error {
	reason := profile.ReasonNotAllowed(merchant.OperationPay, p.country.Alpha2, p.operatorName)
	if reason == nil && p.merchantName != profile.Name {
		reason = logsafe.New("the order_id begins with another name than the merchant's")
	}
	if reason != nil {
		return fault.NotEntitled(reason)
	}
	return nil
}

// readRouting reads the routing headers.
func (p *paymentParams) readRouting(req *apigw.Request, doc *strictjson.Reader, routes operator.Routes) {
	name := strings.ToLower(validate.RequiredHeader(req, doc, partOperator))
	p.countryText = req.Header(partCountry) // the operator's check needs it before its own turn
	p.country, _ = market.ByAlpha2(p.countryText)
	if !slices.Contains(operator.Names(), name) {
		working := routes.Operators(operator.Names(), p.country.Alpha2, operator.AccountPay)
		validate.OneOf(doc, partOperator, name, working)
	}
	validate.RequiredHeader(req, doc, partCountry)
	validate.OneOf(doc, partCountry, strings.ToUpper(p.countryText), market.Alpha2s())
	p.channel = validate.RequiredHeaderOneOf(req, doc, partChannel, operator.Channels()...)
	p.headersValid = doc.FirstFault() == nil
	lang := validate.RequiredHeader(req, doc, partLang)
	if lang != "" && (len(lang) != langLength || !ascii.ConsistsOf(lang, ascii.Letters)) {
		doc.RecordFault(fault.BrokenRule(partLang, logsafe.New("not two letters")))
	}
	p.lang = "en"
	if strings.EqualFold(lang, "fr") {
		p.lang = "fr"
	}
	p.operatorName = name
}

// firstRefusal returns the fault of an invalid request: f, or that of a valid header which no route serves, because
// headers come first (decision "routes"). A merchant that may not use the country learns no operators there.
func (p *paymentParams) firstRefusal(f *fault.Fault, a *operation.Attempt) *fault.Fault {
	isEntitled := a.Profile.ReasonNotAllowed(merchant.OperationPay, p.country.Alpha2, "") == nil
	unserved := fault.FromError(a.Choice.Refusal)
	if p.headersValid && isEntitled && unserved != nil && unserved.Kind == fault.ValueNotAllowed {
		return unserved
	}
	return f
}

// refusal returns why a new order cannot be served: no platform serves it, or not this amount. nil if one does. The
// values that it lists work for this merchant.
func (p *paymentParams) refusal(
	row operator.Capabilities, routes operator.Routes, profile *merchant.Profile,
) error {
	country := p.country.Alpha2
	if row.Platform != "" {
		if !row.Amounts.Contains(p.minor) {
			return fault.BrokenRule(partAmount, logsafe.Errorf("outside the limits of %s", logsafe.Name(row.Platform)))
		}
		return nil
	}
	if channels := routes.Channels(p.operatorName, country, operator.AccountPay); len(channels) > 0 {
		return fault.NotAllowed(partChannel, channels)
	}
	if names := routes.Operators(profile.Operators, country, operator.AccountPay); len(names) > 0 {
		return fault.NotAllowed(partOperator, names)
	}
	name := logsafe.Name(p.country.Name)
	return fault.NotEntitled(logsafe.Errorf("no operator of the profile has a platform in %s", name))
}

// readOrderID reads order_id, <MerchantName>_<ID> with a numeric ID, and the merchant's name in it (decision
// "pay-order-id").
func (p *paymentParams) readOrderID(doc *strictjson.Reader) {
	p.orderID = doc.Text(partOrderID, maxOrderLength)
	name, number, _ := strings.Cut(p.orderID, "_")
	if p.orderID != "" && (!ascii.ConsistsOf(name, ascii.Letters+ascii.Digits) || !ascii.IsDigits(number)) {
		doc.RecordFault(fault.BrokenRule(partOrderID, logsafe.New("not letters and digits, an underscore, digits")))
	}
	p.merchantName = name
}

func (p *paymentParams) readAmount(doc *strictjson.Reader) {
	p.amountText, _ = doc.Number(partAmount)
	if p.amountText == "" {
		return
	}
	var err error
	p.minor, err = money.Parse(p.amountText, p.country.Exponent)
	if err != nil {
		doc.RecordFault(fault.BrokenRule(partAmount, err))
	}
}

// readPayer reads the payer's number, which a terminal must send, and the one-time code by the operator's rule
// (decision "pay-otp"). The web channel has no use for a code and does not read it. A terminal's code is read also if
// the platform of today's route has no use for it: the entry of a repeat may be pinned to one that has.
func (p *paymentParams) readPayer(req *apigw.Request, doc *strictjson.Reader, otpRule operator.OTPRule) {
	var present bool
	p.msisdn, present = optionalText(doc, partMSISDN, maxMSISDNLength)
	req.LogLine.SetMSISDN(p.msisdn)
	isTerminal := p.channel != channelWeb
	if !present && isTerminal {
		doc.RecordFault(fault.ForPart(fault.MissingPart, partMSISDN))
	}
	if _, err := msisdn.Parse(p.msisdn, p.country); present && err != nil {
		doc.RecordFault(fault.BrokenRule(partMSISDN, err))
	}
	if !isTerminal {
		return
	}
	p.otp, present = optionalText(doc, partOTP, maxOTPLength)
	if !present && otpRule == operator.OTPRequired {
		doc.RecordFault(fault.ForPart(fault.MissingPart, partOTP))
	}
}

// optionalText reads a text; an empty one counts as absent (decision "unknown-fields").
func optionalText(doc *strictjson.Reader, part string, maxLength int) (text string, present bool) {
	if doc.IsEmptyText(part) {
		return "", false
	}
	return doc.OptionalText(part, maxLength)
}

// readReturnURL reads the URL of a page to which the customer's browser is redirected.
func (o *Operation) readReturnURL(doc *strictjson.Reader, part string) string {
	text := doc.Text(part, maxURLLength)
	if text == "" {
		return ""
	}
	if err := outgoing.CheckReturnURL(text, o.OutgoingPolicy); err != nil {
		doc.RecordFault(fault.BrokenRule(part, err))
	}
	return text
}

// readNotificationURL returns the merchant's notification URL: the body's, on a registered host, else the provisioned
// one, which then follows the profile (decisions "pay-notif-url" and "notification-address").
func (o *Operation) readNotificationURL(
	doc *strictjson.Reader, profile *merchant.Profile,
) (text string, source ledger.AddressSource) {
	text, present := doc.OptionalText(partNotifURL, maxURLLength)
	if !present {
		text, source = profile.NotifURL, ledger.AddressOfProfile
	}
	switch {
	case text == "":
		doc.RecordFault(fault.ForPart(fault.MissingPart, partNotifURL))
		return "", source
	case !present:
		return text, source
	}
	policy := profile.NotificationPolicy(o.OutgoingPolicy.AllowLoopback)
	if err := outgoing.CheckNotificationURL(text, policy); err != nil {
		doc.RecordFault(fault.BrokenRule(partNotifURL, err))
	}
	return text, source
}

// check lets the platform's driver check a new payment (operation.CheckFunc).
func (p *paymentParams) check(ctx context.Context, driver operator.Driver, common operator.Call) *fault.Fault {
	if checker, ok := driver.(operator.PaymentChecker); ok {
		return checker.CheckPayment(ctx, p.operatorCall(common, ""))
	}
	return nil
}

// operatorCall builds the call of the operator's driver.
func (p *paymentParams) operatorCall(common operator.Call, callbackURL string) operator.PayCall {
	return operator.PayCall{
		Call:      common,
		Channel:   p.channel,
		Lang:      p.lang,
		Amount:    p.amountText,
		Currency:  p.currency,
		ReturnURL: p.returnURL,
		CancelURL: p.cancelURL,
		NotifyURL: callbackURL,
		Reference: p.reference,
		MSISDN:    p.msisdn,
		OTP:       p.otp,
		State:     p.state,
	}
}

// webResponse is the response on the web channel, in the order of the specification (decision "pay-web").
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
		Status:     http.StatusCreated,
		Message:    "OK",
		PayToken:   response.PayToken,
		PaymentURL: response.PaymentURL,
		NotifToken: response.NotifToken,
		State:      state,
	})
}
