package delivery

import (
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/payment"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
)

// NotificationBody returns the JSON body of a notification: the payment notification of the specification, the SMS
// delivery notification (decision "sms-receipts"), or what the lookup of a charge returns (decision "charge-notif").
// baseURL is the address of the API.
func NotificationBody(e *ledger.Entry, n ledger.Notification, baseURL string) []byte {
	switch e.Kind {
	case ledger.Payment:
		return payment.NotificationBody(e, n.Status)
	case ledger.Charge:
		return resource.ChargeBody(e, baseURL)
	}
	return strictjson.Marshal(map[string]deliveryInfoNotification{"deliveryInfoNotification": {
		CallbackData: e.CallbackData,
		DeliveryInfo: resource.DeliveryInfo{Address: e.Address, DeliveryStatus: n.Status},
	}})
}

type deliveryInfoNotification struct {
	CallbackData string                `json:"callbackData,omitempty"`
	DeliveryInfo resource.DeliveryInfo `json:"deliveryInfo"`
}
