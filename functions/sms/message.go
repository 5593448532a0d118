package sms

import (
	"strconv"
	"strings"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/smstext"
	"mobilegateway/shared/strictjson"
)

// What the specification fixes.
const (
	created      = 201
	recipient    = "acr:X-Operator-ISE2"
	resourceType = "SMS_OSM"
	maxMessage   = 160 // decoded characters
)

// The message parts of an SMS request, in the specification's order: headers, then body.
const (
	partApplication  = "X-OAPI-Application-Id"
	partContact      = "X-OAPI-Contact-Id"
	partResourceType = "X-OAPI-Resource-Type"
	partAlias        = "gw-alias"
	partToken        = "gw-token"
	partMCO          = "X-Operator-MCO"
	partISE2         = "X-Operator-ISE2"
	partAddress      = "outboundSMSMessageRequest.address"
	partSender       = "outboundSMSMessageRequest.senderAddress"
	partMessage      = "outboundSMSMessageRequest.outboundSMSTextMessage.message"
	partSenderName   = "outboundSMSMessageRequest.senderName"
	partCorrelator   = "outboundSMSMessageRequest.clientCorrelator"
	partReceipt      = "outboundSMSMessageRequest.receiptRequest"
	partNotify       = "outboundSMSMessageRequest.receiptRequest.notifyURL"
	partCallbackData = "outboundSMSMessageRequest.receiptRequest.callbackData"
)

// The limits of the texts, in characters.
const (
	maxAddress      = 255 // senderAddress too: one that is too long is told as an address
	maxSenderName   = 11
	maxIdentifier   = 255
	maxURL          = 2048
	maxCallbackData = 1024
	maxEscaped      = 1 << 16 // more than a body holds: a text that is too long is told as such
)

// message is an SMS request that broke no rule.
type message struct {
	country      market.Country
	token        string
	alias        string
	ise2         string
	sender       string
	text         string // as sent
	senderName   string
	correlator   string
	hasReceipt   bool
	notifyURL    string
	callbackData string
	canonical    []byte
}

// read validates headers and body in the specification's order; the first fault found is returned.
func (o *Operation) read(req *apigw.Request, doc *strictjson.Reader, profile *merchant.Profile) (*message, error) {
	m := &message{}
	o.readHeaders(m, req, doc)
	readAddress(doc)
	m.readSender(req, doc)
	m.readText(doc)
	m.senderName = doc.Text(partSenderName, maxSenderName)
	if len(profile.SenderNames) > 0 {
		operation.OneOf(doc, partSenderName, m.senderName, profile.SenderNames)
	}
	m.correlator = doc.Text(partCorrelator, maxIdentifier)
	o.readReceipt(m, doc)
	if f := doc.Fault(); f != nil {
		return nil, f
	}
	m.canonical = doc.Canonical()
	return m, nil
}

// readHeaders reads the headers in the specification's order. X-Operator-ISE2 is filled from gw-alias where it is
// missing (decision "sms-sender").
func (o *Operation) readHeaders(m *message, req *apigw.Request, doc *strictjson.Reader) {
	operation.HeaderOneOf(req, doc, partApplication, o.ApplicationID)
	operation.HeaderOneOf(req, doc, partContact, o.ContactID)
	operation.HeaderOneOf(req, doc, partResourceType, resourceType)
	m.alias = operation.Header(req, doc, partAlias)
	m.token = operation.Header(req, doc, partToken)
	code := operation.Header(req, doc, partMCO)
	country, found := market.ByMCO(code)
	if !found && code != "" {
		// PDK_SMSW_0003, unavailable country: the specification shows the sender address.
		doc.Fail(&fault.Fault{Kind: fault.Address, Part: partMCO, Value: req.Params["senderAddress"]})
	}
	m.country = country
	m.ise2 = operation.OptionalHeader(req, doc, partISE2)
	if m.ise2 == "" {
		m.ise2 = m.alias
	}
	req.Event.SetMSISDN(m.ise2)
}

// readAddress takes the one authorized recipient, once.
func readAddress(doc *strictjson.Reader) {
	for i, address := range doc.Texts(partAddress, 1000, maxAddress) {
		if i > 0 || address != recipient {
			doc.Fail(&fault.Fault{Kind: fault.Address, Part: partAddress, Value: address})
		}
	}
}

// readSender compares the body's sender with the path's and the country's prefix (decision "sms-sender").
func (m *message) readSender(req *apigw.Request, doc *strictjson.Reader) {
	path := req.Params["senderAddress"]
	if _, ok := msisdn.ParseSender(path); !ok {
		doc.Fail(&fault.Fault{Kind: fault.PathAddress, Part: partSender, Value: path})
	}
	m.sender = doc.Text(partSender, maxAddress)
	if m.sender == "" {
		return
	}
	if m.sender != path {
		doc.Fail(&fault.Fault{Kind: fault.PathAddress, Part: partSender, Value: m.sender})
	}
	if number, ours := strings.CutPrefix(m.sender, m.country.SenderPrefix()); !ours || number == "" {
		doc.Fail(&fault.Fault{Kind: fault.Address, Part: partSender, Value: m.sender})
	}
}

// readText counts the message's decoded characters (decision "sms-text").
func (m *message) readText(doc *strictjson.Reader) {
	m.text = doc.MultilineText(partMessage, maxEscaped)
	if _, characters := smstext.Decode(m.text); characters > maxMessage {
		doc.Fail(&fault.Fault{Kind: fault.TooLong, Part: partMessage, Value: strconv.Itoa(maxMessage)})
	}
}

// readReceipt reads receiptRequest: callbackData is valid only with a notifyURL (specification, SMS request; decision
// "sms-notify-url").
func (o *Operation) readReceipt(m *message, doc *strictjson.Reader) {
	m.hasReceipt = doc.Object(partReceipt)
	if !m.hasReceipt {
		return
	}
	var notify bool
	m.notifyURL, notify = doc.OptionalText(partNotify, maxURL)
	if notify && outgoing.Check(m.notifyURL, o.Outgoing) != nil {
		doc.Fail(fault.In(fault.Invalid, partNotify))
	}
	var data bool
	m.callbackData, data = doc.OptionalText(partCallbackData, maxCallbackData)
	if data && !notify {
		doc.Fail(fault.In(fault.Invalid, partCallbackData))
	}
}

// call is the message as the operator's driver gets it.
func (m *message) call(held *ledger.Entry, callbackURL string) operator.SMSCall {
	return operator.SMSCall{
		Call: operator.Call{
			Operator: held.Operator, Account: held.Account, Key: held.UpstreamKey,
			MCO: m.country.MCO, Country: held.Country, Resend: held.EverUnknown,
			GWToken: m.token, GWAlias: m.alias,
		},
		ISE2:       m.ise2,
		Sender:     m.sender,
		SenderName: m.senderName,
		Message:    m.text,
		NotifyURL:  callbackURL,
	}
}

// locate adds the first message's address to the fault of its repeat (decision "sms-duplicate").
func locate(err error, stored *ledger.Entry, base string) error {
	f := fault.As(err)
	if stored == nil || f.Kind != fault.Duplicate {
		return err
	}
	// A receipt says that the message was sent, also where its function died before it could say so.
	reported := stored.Status != "" && stored.State != ledger.Refused
	if stored.State == ledger.Done || reported {
		f.Location = operation.MessageURL(base, stored.Sender, stored.ID)
		return f
	}
	return err
}

// The answer as the specification writes it.
type (
	answer struct {
		OutboundSMSMessageRequest outbound `json:"outboundSMSMessageRequest"`
	}
	outbound struct {
		Address                []string        `json:"address"`
		SenderAddress          string          `json:"senderAddress"`
		OutboundSMSTextMessage textMessage     `json:"outboundSMSTextMessage"`
		SenderName             string          `json:"senderName"`
		ClientCorrelator       string          `json:"clientCorrelator"`
		ReceiptRequest         *receiptRequest `json:"receiptRequest,omitempty"`
		ResourceURL            string          `json:"resourceURL"`
	}
	textMessage struct {
		Message string `json:"message"`
	}
	receiptRequest struct {
		NotifyURL    string `json:"notifyURL,omitempty"`
		CallbackData string `json:"callbackData,omitempty"`
	}
)

// answer echoes the request and adds its resource.
func (m *message) answer(location string) []byte {
	body := outbound{
		Address:                []string{recipient},
		SenderAddress:          m.sender,
		OutboundSMSTextMessage: textMessage{m.text},
		SenderName:             m.senderName,
		ClientCorrelator:       m.correlator,
		ResourceURL:            location,
	}
	if m.hasReceipt {
		body.ReceiptRequest = &receiptRequest{m.notifyURL, m.callbackData}
	}
	return strictjson.Marshal(answer{body})
}
