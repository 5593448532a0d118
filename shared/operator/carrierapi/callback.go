package carrierapi

import (
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

// maxCallbackText is the limit of each text of a callback, in characters.
const maxCallbackText = 255

// ReadPaymentCallback implements operator.PaymentCallbackReader: the payment notification of the specification, with
// the status texts that operators really send. Its fields are at the root or in an object "payload" (decision
// "pay-terminal"). Status, order, amount and currency are read strictly. An id or a number of another form counts as
// absent; other fields are ignored.
func (d *Driver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	doc := upstream.CallbackDocument(body)
	prefix := ""
	if doc.HasObject("payload") {
		prefix = "payload."
	}
	var r operator.CallbackReport
	r.Status, _ = operator.ParsePaymentStatus(doc.Text(prefix+"status", maxCallbackText))
	r.OrderID, _ = doc.OptionalText(prefix+"order-id", maxCallbackText)
	r.Amount = doc.OptionalNumber(prefix + "amount")
	r.Currency, _ = doc.OptionalText(prefix+"currency", maxCallbackText)
	if doc.FirstFault() != nil {
		return operator.CallbackReport{}
	}
	r.OperatorReference = upstream.OptionalTextOrNumber(doc, prefix+"Transaction-id")
	r.MSISDN = upstream.OptionalTextOrNumber(doc, prefix+"user_msisdn")
	r.NotifToken = upstream.OptionalTextOrNumber(doc, prefix+"notif_token")
	r.Reason = operator.ParseFailureReason(upstream.OptionalTextOrNumber(doc, prefix+"statusDescription"))
	return r
}
