package operator

import (
	"strings"

	"mobilegateway/shared/ledger"
)

// paymentStatuses are an operator's words for the state of a payment, in lower case. "Loaded" means that the purchaser has
// the payment page open: nothing is decided, so it is pending (decision "pay-statuses").
var paymentStatuses = map[string]ledger.Status{
	"initiated":  ledger.Pending,
	"loaded":     ledger.Pending,
	"inprogress": ledger.Pending,
	"pending":    ledger.Pending,
	"success":    ledger.Successful,
	"successful": ledger.Successful,
	"failed":     ledger.Failed,
	"abandoned":  ledger.Cancelled,
	"canceled":   ledger.Cancelled,
	"cancelled":  ledger.Cancelled,
	"expired":    ledger.Expired,
}

// deliveryStatuses are the six delivery statuses of the OMA SMS family, by their lower-case form (decision "sms-receipts").
var deliveryStatuses = map[string]ledger.Status{
	"messagewaiting":                   ledger.MessageWaiting,
	"deliveredtonetwork":               ledger.DeliveredToNetwork,
	"deliveredtoterminal":              ledger.DeliveredToTerminal,
	"deliveryuncertain":                ledger.DeliveryUncertain,
	"deliveryimpossible":               ledger.DeliveryImpossible,
	"deliverynotificationnotsupported": ledger.NotificationNotSupp,
}

// ParsePaymentStatus reads an operator's word for the state of a payment, without regard to case. An unknown word is false: it
// says nothing about the payment.
func ParsePaymentStatus(operatorStatus string) (ledger.Status, bool) {
	status, ok := paymentStatuses[strings.ToLower(operatorStatus)]
	return status, ok
}

// ParseDeliveryStatus reads a delivery status of an SMS receipt, without regard to case. An unknown word is false.
func ParseDeliveryStatus(operatorStatus string) (ledger.Status, bool) {
	status, ok := deliveryStatuses[strings.ToLower(operatorStatus)]
	return status, ok
}
