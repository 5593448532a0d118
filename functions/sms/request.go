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
	statusCreated        = 201
	recipientAddress     = "acr:X-Operator-ISE2"
	resourceType         = "SMS_OSM"
	maxMessageCharacters = 160 // decoded characters
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
	maxAddress       = 255 // senderAddress too: one that is too long is told as an address
	maxSenderName    = 11
	maxIdentifier    = 255
	maxURL           = 2048
	maxCallbackData  = 1024
	maxRawTextLength = 1 << 16 // more than a body holds: a text that is too long is told as such
)

// smsParams is an SMS request that broke no rule.
type smsParams struct {
	country      market.Country
	gwToken      string
	gwAlias      string
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

// readParams validates headers and body in the specification's order; the first fault found is returned.
func (o *Operation) readParams(req *apigw.Request, doc *strictjson.Reader, profile *merchant.Profile) (*smsParams, error) {
	m := &smsParams{}
	o.readHeaders(m, req, doc)
	checkRecipient(doc)
	m.readSender(req, doc)
	m.readText(doc)
	m.senderName = doc.Text(partSenderName, maxSenderName)
	if len(profile.SenderNames) > 0 {
		operation.CheckOneOf(doc, partSenderName, m.senderName, profile.SenderNames)
	}
	m.correlator = doc.Text(partCorrelator, maxIdentifier)
	o.readReceipt(m, doc)
	if f := doc.FirstFault(); f != nil {
		return nil, f
	}
	m.canonical = doc.Canonical()
	return m, nil
}

// readHeaders reads the headers in the specification's order. X-Operator-ISE2 is filled from gw-alias where it is
// missing (decision "sms-sender").
func (o *Operation) readHeaders(m *smsParams, req *apigw.Request, doc *strictjson.Reader) {
	operation.RequiredHeaderOneOf(req, doc, partApplication, o.ApplicationID)
	operation.RequiredHeaderOneOf(req, doc, partContact, o.ContactID)
	operation.RequiredHeaderOneOf(req, doc, partResourceType, resourceType)
	m.gwAlias = operation.RequiredHeader(req, doc, partAlias)
	m.gwToken = operation.RequiredHeader(req, doc, partToken)
	code := operation.RequiredHeader(req, doc, partMCO)
	country, found := market.ByMCO(code)
	if !found && code != "" {
		// PDK_SMSW_0003, unavailable country: the specification shows the sender address.
		doc.RecordFault(&fault.Fault{Kind: fault.InvalidAddress, Part: partMCO, Value: req.Params["senderAddress"]})
	}
	m.country = country
	m.ise2 = operation.OptionalHeader(req, doc, partISE2)
	if m.ise2 == "" {
		m.ise2 = m.gwAlias
	}
	req.LogLine.SetMSISDN(m.ise2)
}

// checkRecipient takes the one authorized recipient, once.
func checkRecipient(doc *strictjson.Reader) {
	for i, address := range doc.TextList(partAddress, 1000, maxAddress) {
		if i > 0 || address != recipientAddress {
			doc.RecordFault(&fault.Fault{Kind: fault.InvalidAddress, Part: partAddress, Value: address})
		}
	}
}

// readSender compares the body's sender with the path's and the country's prefix (decision "sms-sender").
func (m *smsParams) readSender(req *apigw.Request, doc *strictjson.Reader) {
	path := req.Params["senderAddress"]
	if _, ok := msisdn.ParseSender(path); !ok {
		doc.RecordFault(&fault.Fault{Kind: fault.InvalidPathAddress, Part: partSender, Value: path})
	}
	m.sender = doc.Text(partSender, maxAddress)
	if m.sender == "" {
		return
	}
	if m.sender != path {
		doc.RecordFault(&fault.Fault{Kind: fault.InvalidPathAddress, Part: partSender, Value: m.sender})
	}
	if number, hasPrefix := strings.CutPrefix(m.sender, m.country.SenderPrefix()); !hasPrefix || number == "" {
		doc.RecordFault(&fault.Fault{Kind: fault.InvalidAddress, Part: partSender, Value: m.sender})
	}
}

// readText counts the message's decoded characters (decision "sms-text").
func (m *smsParams) readText(doc *strictjson.Reader) {
	m.text = doc.MultilineText(partMessage, maxRawTextLength)
	if _, characters := smstext.Decode(m.text); characters > maxMessageCharacters {
		doc.RecordFault(&fault.Fault{Kind: fault.MessageTooLong, Part: partMessage, Value: strconv.Itoa(maxMessageCharacters)})
	}
}

// readReceipt reads receiptRequest: callbackData is valid only with a notifyURL (specification, SMS request; decision
// "sms-notify-url").
func (o *Operation) readReceipt(m *smsParams, doc *strictjson.Reader) {
	m.hasReceipt = doc.HasObject(partReceipt)
	if !m.hasReceipt {
		return
	}
	var hasNotifyURL bool
	m.notifyURL, hasNotifyURL = doc.OptionalText(partNotify, maxURL)
	if hasNotifyURL && outgoing.CheckNotificationURL(m.notifyURL, o.OutgoingPolicy) != nil {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, partNotify))
	}
	var hasCallbackData bool
	m.callbackData, hasCallbackData = doc.OptionalText(partCallbackData, maxCallbackData)
	if hasCallbackData && !hasNotifyURL {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, partCallbackData))
	}
}

// operatorCall is the message as the operator's driver gets it.
func (m *smsParams) operatorCall(reservation *ledger.Entry, callbackURL string) operator.SMSCall {
	return operator.SMSCall{
		Call: operator.Call{
			Operator: reservation.Operator, AccountID: reservation.Account, IdempotencyKey: reservation.UpstreamKey,
			MCO: m.country.MCO, Country: reservation.Country, MayRepeat: reservation.EverUnknown,
			GWToken: m.gwToken, GWAlias: m.gwAlias,
		},
		ISE2:       m.ise2,
		Sender:     m.sender,
		SenderName: m.senderName,
		Message:    m.text,
		NotifyURL:  callbackURL,
	}
}

// addLocation adds the first message's address to the fault of its repeat (decision "sms-duplicate").
func addLocation(err error, existing *ledger.Entry, base string) error {
	f := fault.FromError(err)
	if existing == nil || f.Kind != fault.DuplicateKey {
		return err
	}
	// A receipt says that the message was sent, also where its function died before it could say so.
	receiptSeen := existing.Status != "" && existing.State != ledger.Refused
	if existing.State == ledger.Done || receiptSeen {
		f.Location = operation.MessageURL(base, existing.Sender, existing.ID)
		return f
	}
	return err
}

// The answer as the specification writes it.
type (
	smsResponse struct {
		OutboundSMSMessageRequest outboundRequest `json:"outboundSMSMessageRequest"`
	}
	outboundRequest struct {
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

// responseBody echoes the request and adds its resource.
func (m *smsParams) responseBody(location string) []byte {
	body := outboundRequest{
		Address:                []string{recipientAddress},
		SenderAddress:          m.sender,
		OutboundSMSTextMessage: textMessage{m.text},
		SenderName:             m.senderName,
		ClientCorrelator:       m.correlator,
		ResourceURL:            location,
	}
	if m.hasReceipt {
		body.ReceiptRequest = &receiptRequest{m.notifyURL, m.callbackData}
	}
	return strictjson.Marshal(smsResponse{body})
}
