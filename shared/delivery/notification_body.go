package delivery

import (
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/payment"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
)

// NotificationBody returns the JSON body of a notification: the payment notification of the specification, or the SMS
// delivery notification (decision "sms-receipts").
func NotificationBody(e *ledger.Entry, n ledger.Notification) []byte {
	if e.Kind == ledger.Payment {
		return payment.NotificationBody(e, n.Status)
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
