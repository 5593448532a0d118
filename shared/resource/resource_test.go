package resource_test

import (
	"testing"

	"mobilegateway/shared/resource"
)

// decision "charge-success" and "sms-success".
func TestURLs(t *testing.T) {
	for _, c := range []struct{ decision, got, want string }{
		{"charge-success", resource.ChargeURL("https://b/s", "ID"),
			"https://b/s/payment/v1/acr%3AOperatorAPIToken/transactions/amount/ID"},
		{"sms-success", resource.MessageURL("https://b", "tel:+2250707", "ID"),
			"https://b/smsmessaging/v1/outbound/tel%3A%2B2250707/requests/ID/deliveryInfos"},
	} {
		if c.got != c.want {
			t.Errorf("decision %s: %s, want %s", c.decision, c.got, c.want)
		}
	}
}
