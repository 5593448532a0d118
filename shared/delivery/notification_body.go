package delivery

import (
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/payment"
	"mobilegateway/shared/strictjson"
)

// NotificationBody returns the JSON body of a notification: the payment notification of the specification, or the SMS
// delivery notification (decision "sms-receipts").
func NotificationBody(e *ledger.Entry, n ledger.Notification) []byte {
	if e.Kind == ledger.Payment {
		return payment.NotificationBody(e, n.Status)
	}
	return strictjson.Marshal(deliveryNotification{deliveryInfoNotification{
		CallbackData: e.CallbackData,
		DeliveryInfo: deliveryInfo{Address: e.Address, DeliveryStatus: n.Status},
	}})
}

type (
	deliveryNotification struct {
		DeliveryInfoNotification deliveryInfoNotification `json:"deliveryInfoNotification"`
	}
	deliveryInfoNotification struct {
		CallbackData string       `json:"callbackData,omitempty"`
		DeliveryInfo deliveryInfo `json:"deliveryInfo"`
	}
	deliveryInfo struct {
		Address        string        `json:"address"`
		DeliveryStatus ledger.Status `json:"deliveryStatus"`
	}
)
