package operator

import (
	"strings"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/timeline"
)

// KnownCode returns a platform's code for people: the code itself if the driver knows it, else timeline.UnknownCode. So
// no text of a platform is kept. It returns "" for no code.
func KnownCode(code string, isKnown bool) string {
	if code != "" && !isKnown {
		return timeline.UnknownCode
	}
	return code
}

// paymentStatuses maps an operator's payment statuses, in lower case. "Loaded" means that the payer opened the
// payment page: nothing is decided, so it is pending (decision "pay-statuses").
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

// deliveryStatuses maps the six delivery statuses of the OMA SMS family, in lower case (decision "sms-receipts").
var deliveryStatuses = map[string]ledger.Status{
	"messagewaiting":                   ledger.MessageWaiting,
	"deliveredtonetwork":               ledger.DeliveredToNetwork,
	"deliveredtoterminal":              ledger.DeliveredToTerminal,
	"deliveryuncertain":                ledger.DeliveryUncertain,
	"deliveryimpossible":               ledger.DeliveryImpossible,
	"deliverynotificationnotsupported": ledger.NotificationNotSupp,
}

// ParsePaymentStatus maps an operator's payment status, without regard to case. It returns false for an unknown status,
// which proves nothing about the payment.
func ParsePaymentStatus(operatorStatus string) (ledger.Status, bool) {
	status, ok := paymentStatuses[strings.ToLower(operatorStatus)]
	return status, ok
}

// ParseDeliveryStatus maps the delivery status of an SMS receipt, without regard to case. It returns false for an
// unknown one.
func ParseDeliveryStatus(operatorStatus string) (ledger.Status, bool) {
	status, ok := deliveryStatuses[strings.ToLower(operatorStatus)]
	return status, ok
}
