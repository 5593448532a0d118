// Package resource has the parts of the REST resources that one function creates and another returns: their URLs, and
// the bodies of a charge and an SMS.
//
// It reads no request and stores nothing. Its invariant: a resource looks the same in the response that creates it
// and in its lookup.
package resource

import (
	"encoding/json"
	"net/url"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/strictjson"
)

// EndUserID is the only valid end user of a charge, in its path and in its body.
const EndUserID = "acr:OperatorAPIToken"

// The values of a charge's transactionOperationStatus. Processing is the status of a charge whose outcome is not known
// yet (decision "charge-get").
const (
	StatusCharged    = "Charged"
	StatusProcessing = "Processing"
)

// ChargesPath is the path of the charge operation (specification, Endpoints).
const ChargesPath = "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"

// ChargeURL is the resourceURL of a charge (decision "charge-success").
func ChargeURL(base, id string) string {
	return base + ChargesPath + "/" + id
}

// MessageURL is the resourceURL of an SMS (decision "sms-success"). sender is tel:+digits; the URL has it encoded.
func MessageURL(base, sender, id string) string {
	return base + "/smsmessaging/v1/outbound/" + url.QueryEscape(sender) + "/requests/" + id + "/deliveryInfos"
}

// Charge is the body of a charge, in the order of the specification. A request to an operator has no
// serverReferenceCode, totalAmountCharged and resourceURL. The lookup of a charge without an outcome leaves out what is
// only known from the operator or the request.
type Charge struct {
	EndUserID                  string        `json:"endUserId"`
	PaymentAmount              PaymentAmount `json:"paymentAmount"`
	TransactionOperationStatus string        `json:"transactionOperationStatus"`
	ReferenceCode              string        `json:"referenceCode"`
	ServerReferenceCode        string        `json:"serverReferenceCode,omitempty"`
	ClientCorrelator           string        `json:"clientCorrelator,omitempty"`
	ResourceURL                string        `json:"resourceURL,omitempty"`
}

// PaymentAmount is the amount of a charge and its purpose.
type PaymentAmount struct {
	ChargingInformation ChargingInformation `json:"chargingInformation"`
	TotalAmountCharged  json.RawMessage     `json:"totalAmountCharged,omitempty"`
	ChargingMetaData    *ChargingMetaData   `json:"chargingMetaData,omitempty"`
}

// ChargingInformation is the amount of a charge. Amount is the JSON value as the merchant sent it.
type ChargingInformation struct {
	Amount      json.RawMessage `json:"amount"`
	Currency    string          `json:"currency"`
	Description string          `json:"description,omitempty"`
}

// ChargingMetaData names the party and the service of a charge.
type ChargingMetaData struct {
	OnBehalfOf string `json:"onBehalfOf"`
	ServiceID  string `json:"serviceId"`
}

// ChargeBody is the body of a stored charge in its lookup and in its notification: the stored response, or what is
// known without one. A charge has none while its outcome is not known, and after a manual resolution as applied
// (decision "unknown-by-hand").
func ChargeBody(e *ledger.Entry, base string) []byte {
	if e.Response.Status != 0 {
		return e.Response.Body
	}
	return ChargeBodyWithoutResponse(e, base)
}

// ChargeBodyWithoutResponse is ChargeBody of a charge as long as it has no stored response.
func ChargeBodyWithoutResponse(e *ledger.Entry, base string) []byte {
	status := StatusProcessing
	if e.State == ledger.Done {
		status = StatusCharged
	}
	amount := strictjson.Marshal(e.Amount.AsSent)
	return Charge{
		PaymentAmount: PaymentAmount{
			ChargingInformation: ChargingInformation{Amount: amount, Currency: e.Amount.Currency},
		},
		TransactionOperationStatus: status,
		ReferenceCode:              e.Request.ReferenceCode,
		ServerReferenceCode:        e.ID,
		ClientCorrelator:           e.Request.Correlator,
		ResourceURL:                ChargeURL(base, e.ID),
	}.Body()
}

// Message is the body of an SMS, in the order of the specification. A request to an operator has no resourceURL.
type Message struct {
	Address                []string        `json:"address"`
	SenderAddress          string          `json:"senderAddress"`
	OutboundSMSTextMessage TextMessage     `json:"outboundSMSTextMessage"`
	SenderName             string          `json:"senderName"`
	ClientCorrelator       string          `json:"clientCorrelator"`
	ReceiptRequest         *ReceiptRequest `json:"receiptRequest,omitempty"`
	ResourceURL            string          `json:"resourceURL,omitempty"`
}

// TextMessage is the text of an SMS, with its escaping.
type TextMessage struct {
	Message string `json:"message"`
}

// ReceiptRequest requests delivery notifications of an SMS.
type ReceiptRequest struct {
	NotifyURL    string `json:"notifyURL,omitempty"`
	CallbackData string `json:"callbackData,omitempty"`
}

// Body writes the JSON.
func (m Message) Body() []byte {
	return strictjson.Marshal(map[string]Message{"outboundSMSMessageRequest": m})
}

// DeliveryInfo is the delivery status of an SMS, in its lookup and in its notification.
type DeliveryInfo struct {
	Address        string        `json:"address"`
	DeliveryStatus ledger.Status `json:"deliveryStatus"`
}

// DeliveryStatus is the delivery status of an SMS in its lookup; "" while each of the six would say that the message
// was sent, or that it was not (decision "sms-delivery-infos").
func DeliveryStatus(e *ledger.Entry) ledger.Status {
	switch {
	case e.Status == "" && e.State == ledger.Refused:
		return ledger.DeliveryImpossible
	case e.Status == "" && e.State == ledger.Done:
		return ledger.MessageWaiting
	default:
		return e.Status
	}
}

// Body writes the JSON. It fills in the end user.
func (c Charge) Body() []byte {
	c.EndUserID = EndUserID
	return strictjson.Marshal(map[string]Charge{"amountTransaction": c})
}
