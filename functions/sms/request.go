package sms

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/smstext"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/validate"
)

// The values that the specification fixes.
const (
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
	maxAddressLength      = 255
	maxSenderNameLength   = 11
	maxCorrelatorLength   = 255
	maxURLLength          = 2048
	maxCallbackDataLength = 1024
	maxRecipients         = 1000 // of the list that is read; one is valid
)

// smsParams is a valid SMS request.
type smsParams struct {
	country      market.Country
	gwToken      string
	gwAlias      string
	ise2         string
	sender       string
	text         string // as sent
	senderName   string
	senderNames  []string // the merchant's; empty for any
	correlator   string
	hasReceipt   bool
	notifyURL    string
	callbackData string
	canonical    []byte
}

// readParams validates the headers and the body in the specification's order, and returns the first fault.
func (o *Operation) readParams(a *operation.Attempt) (*smsParams, error) {
	req, doc, profile := a.Request, a.Body, a.Profile
	p := &smsParams{}
	p.readHeaders(o, req, doc)
	checkRecipient(doc)
	p.readSender(req, doc)
	p.readText(doc)
	p.senderName, p.senderNames = doc.Text(partSenderName, maxSenderNameLength), profile.SenderNames
	if len(p.senderNames) > 0 {
		validate.OneOf(doc, partSenderName, p.senderName, p.senderNames)
	}
	p.correlator = doc.Text(partCorrelator, maxCorrelatorLength)
	p.readReceipt(o, doc, profile)
	if f := doc.FirstFault(); f != nil {
		return nil, f
	}
	p.canonical = doc.Canonical()
	return p, nil
}

// readHeaders reads the headers in the specification's order. gw-alias replaces a missing X-Operator-ISE2 (decision
// "sms-sender").
func (p *smsParams) readHeaders(o *Operation, req *apigw.Request, doc *strictjson.Reader) {
	validate.RequiredHeaderOneOf(req, doc, partApplication, o.ApplicationID)
	validate.RequiredHeaderOneOf(req, doc, partContact, o.ContactID)
	validate.RequiredHeaderOneOf(req, doc, partResourceType, resourceType)
	p.gwAlias = validate.RequiredHeader(req, doc, partAlias)
	p.gwToken = validate.RequiredHeader(req, doc, partToken)
	code := validate.RequiredHeader(req, doc, partMCO)
	country, found := market.ByMCO(code)
	if !found && code != "" {
		// PDK_SMSW_0003, unavailable country: the specification shows the sender address.
		doc.RecordFault(&fault.Fault{Kind: fault.InvalidAddress, Part: partMCO, Value: req.Params["senderAddress"]})
	}
	p.country = country
	p.ise2 = cmp.Or(validate.OptionalHeader(req, doc, partISE2), p.gwAlias)
	req.LogLine.SetMSISDN(p.ise2)
}

// checkRecipient accepts the one valid recipient, once.
func checkRecipient(doc *strictjson.Reader) {
	for i, address := range doc.TextList(partAddress, maxRecipients, maxAddressLength) {
		if i > 0 || address != recipientAddress {
			doc.RecordFault(&fault.Fault{Kind: fault.InvalidAddress, Part: partAddress, Value: address})
		}
	}
}

// readSender compares the body's sender with the one in the path and with the country's prefix (decision "sms-sender").
func (p *smsParams) readSender(req *apigw.Request, doc *strictjson.Reader) {
	path := req.Params["senderAddress"]
	if _, ok := msisdn.ParseSender(path); !ok {
		doc.RecordFault(&fault.Fault{Kind: fault.InvalidPathAddress, Part: partSender, Value: path})
	}
	p.sender = doc.Text(partSender, maxAddressLength)
	if p.sender == "" {
		return
	}
	if p.sender != path {
		doc.RecordFault(&fault.Fault{Kind: fault.InvalidPathAddress, Part: partSender, Value: p.sender})
	}
	if number, hasPrefix := strings.CutPrefix(p.sender, p.country.SenderPrefix()); !hasPrefix || number == "" {
		doc.RecordFault(&fault.Fault{Kind: fault.InvalidAddress, Part: partSender, Value: p.sender})
	}
}

// readText reads the message and counts its decoded characters (decision "sms-text").
func (p *smsParams) readText(doc *strictjson.Reader) {
	p.text = doc.MultilineText(partMessage, validate.AnyLength)
	if _, characters := smstext.Decode(p.text); characters > maxMessageCharacters {
		limit := strconv.Itoa(maxMessageCharacters)
		doc.RecordFault(&fault.Fault{Kind: fault.MessageTooLong, Part: partMessage, Value: limit})
	}
}

// readReceipt reads receiptRequest: callbackData is valid only with a notifyURL, which must be on a registered host
// unless the profile opens it (specification, SMS request; decision "sms-notify-url").
func (p *smsParams) readReceipt(o *Operation, doc *strictjson.Reader, profile *merchant.Profile) {
	p.hasReceipt = doc.HasObject(partReceipt)
	if !p.hasReceipt {
		return
	}
	var hasNotifyURL, hasCallbackData bool
	p.notifyURL, hasNotifyURL = doc.OptionalText(partNotify, maxURLLength)
	if hasNotifyURL {
		policy := profile.SMSNotificationPolicy(o.OutgoingPolicy.AllowLoopback)
		if err := outgoing.CheckNotificationURL(p.notifyURL, policy); err != nil {
			doc.RecordFault(fault.BrokenRule(partNotify, err))
		}
	}
	p.callbackData, hasCallbackData = doc.OptionalText(partCallbackData, maxCallbackDataLength)
	if hasCallbackData && !hasNotifyURL {
		doc.RecordFault(fault.BrokenRule(partCallbackData, logsafe.New("no notifyURL")))
	}
}

// check lets the platform's driver check a new message (operation.CheckFunc).
func (p *smsParams) check(ctx context.Context, driver operator.Driver, common operator.Call) *fault.Fault {
	if checker, ok := driver.(operator.MessageChecker); ok {
		return checker.CheckMessage(ctx, p.operatorCall(common, ""))
	}
	return nil
}

// operatorCall builds the call of the operator's driver.
func (p *smsParams) operatorCall(common operator.Call, callbackURL string) operator.SMSCall {
	common.GWToken, common.GWAlias = p.gwToken, p.gwAlias
	return operator.SMSCall{
		Call:        common,
		ISE2:        p.ise2,
		Sender:      p.sender,
		SenderName:  p.senderName,
		SenderNames: p.senderNames,
		Message:     p.text,
		NotifyURL:   callbackURL,
	}
}

// responseBody echoes the request and adds the URL of its resource.
func (p *smsParams) responseBody(location string) []byte {
	body := resource.Message{
		Address:                []string{recipientAddress},
		SenderAddress:          p.sender,
		OutboundSMSTextMessage: resource.TextMessage{Message: p.text},
		SenderName:             p.senderName,
		ClientCorrelator:       p.correlator,
		ResourceURL:            location,
	}
	if p.hasReceipt {
		body.ReceiptRequest = &resource.ReceiptRequest{NotifyURL: p.notifyURL, CallbackData: p.callbackData}
	}
	return body.Body()
}
