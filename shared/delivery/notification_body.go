package delivery

import (
	"bytes"
	"slices"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/payment"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
)

// NotificationBody returns the JSON body of a notification: the payment notification of the specification, the SMS
// delivery notification (decision "sms-receipts"), or the body of a charge's lookup. A refusal has the charge's keys
// besides, because it names no charge (decision "charge-notif"). The body has what was stored when the notification was
// queued, so that each attempt has the same one. baseURL is the address of the API.
func NotificationBody(e *ledger.Entry, n ledger.Notification, baseURL string) []byte {
	switch e.Kind {
	case ledger.Payment:
		return payment.NotificationBody(e, n.Status)
	case ledger.Charge:
		if e.State == ledger.Refused {
			return refusedChargeBody(e)
		}
		if e.Manual.Outcome == ledger.ManuallyApplied {
			// It was queued without a response. One that a retry has made since must not change it.
			return resource.ChargeBodyWithoutResponse(e, baseURL)
		}
		return resource.ChargeBody(e, baseURL)
	}
	return strictjson.Marshal(map[string]deliveryInfoNotification{"deliveryInfoNotification": {
		CallbackData: e.Request.CallbackData,
		DeliveryInfo: resource.DeliveryInfo{Address: e.Request.Address, DeliveryStatus: n.Status},
	}})
}

type deliveryInfoNotification struct {
	CallbackData string                `json:"callbackData,omitempty"`
	DeliveryInfo resource.DeliveryInfo `json:"deliveryInfo"`
}

// refusedChargeBody adds what the merchant knows a charge by, also if it never got a response, to its stored refusal.
func refusedChargeBody(e *ledger.Entry) []byte {
	keys := strictjson.Marshal(struct {
		ClientCorrelator string `json:"clientCorrelator,omitempty"`
		ReferenceCode    string `json:"referenceCode"`
	}{e.Request.Correlator, e.Request.ReferenceCode})
	refusal := bytes.TrimSuffix(e.Response.Body, []byte("}"))
	return slices.Concat(refusal, []byte(`,"amountTransaction":`), keys, []byte("}"))
}
