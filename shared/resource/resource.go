package operation

import "net/url"

// ChargeURL is the resourceURL of a charge (decision "charge-success").
func ChargeURL(base, id string) string {
	return base + "/payment/v1/acr%3AOperatorAPIToken/transactions/amount/" + id
}

// MessageURL is the resourceURL of an SMS (decision "sms-success"). sender is tel:+digits and stands encoded in it.
func MessageURL(base, sender, id string) string {
	return base + "/smsmessaging/v1/outbound/" + url.QueryEscape(sender) + "/requests/" + id + "/deliveryInfos"
}
