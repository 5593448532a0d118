package local

import (
	"fmt"
	"io"
)

// WriteBanner prints the addresses, the demo merchant's token and three curl lines that work as printed. Their
// idempotency keys contain the current time: a charge or payment sent again by the same line is a repeat, and an SMS is
// a duplicate.
func (r *Gateway) WriteBanner(out io.Writer) {
	i := r.info
	key := r.config.Now().UnixMilli()
	authorization := "-H 'Authorization: Bearer " + i.AccessToken + "' -H 'Content-Type: application/json'"
	user := "-H 'gw-token: " + i.GWToken + "' -H 'gw-alias: " + i.GWAlias + "'"
	_, _ = fmt.Fprintf(out, `
The gateway answers at  %[1]s
Access token            %[2]s (merchant %[3]s)
Sandbox operator        %[4]s
Merchant's inbox        %[5]s
More for programs       %[6]s/run.json; Ctrl-C stops everything

Charge:
curl -i -X POST '%[1]s/payment/v1/acr%%3AOperatorAPIToken/transactions/amount' %[7]s %[8]s -d '%[9]s'

Payment (then open payment_url; the page needs what this gives: curl -X POST %[4]s/sandbox/v1/tests):
curl -i -X POST '%[1]s/mobilemoney/v1' %[7]s -H 'mno-name: sandbox' -H 'country-code: CI' -H 'channel: web' -H 'lang: fr' -d '%[10]s'

SMS:
curl -i -X POST '%[1]s/smsmessaging/v1/outbound/tel%%3A%%2B2250000/requests' %[7]s %[8]s -H 'X-Operator-MCO: OCI' -H 'X-Operator-ISE2: %[11]s' -H 'X-OAPI-Application-Id: %[12]s' -H 'X-OAPI-Contact-Id: %[13]s' -H 'X-OAPI-Resource-Type: SMS_OSM' -d '%[14]s'

`, i.BaseURL, i.AccessToken, i.Merchant, i.SandboxURL, i.InboxURL, r.config.Dir, authorization, user,
		chargeExample(i, key), payExample(i, key), i.GWAlias, i.ApplicationID, i.ContactID, smsExample(key))
}

func chargeExample(i Info, key int64) string {
	return fmt.Sprintf(`{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{"chargingInformation":`+
		`{"amount":"500","currency":"XOF","description":"Demo"},"chargingMetaData":{"onBehalfOf":"%s","serviceId":"%s"}},`+
		`"transactionOperationStatus":"Charged","referenceCode":"REF-%d","clientCorrelator":"demo-%d"}}`,
		i.OnBehalfOf, i.ServiceID, key, key)
}

func payExample(i Info, key int64) string {
	return fmt.Sprintf(`{"currency":"XOF","order_id":"%s_%d","amount":"1000","return_url":"%s/","cancel_url":"%s/",`+
		`"notif_url":"%s/notifications","reference":"%s","state":"demo"}`,
		i.Merchant, key, i.InboxURL, i.InboxURL, i.InboxURL, i.Merchant)
}

func smsExample(key int64) string {
	return fmt.Sprintf(`{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],"senderAddress":"tel:+2250000",`+
		`"outboundSMSTextMessage":{"message":"Hello"},"senderName":"Demo","clientCorrelator":"demo-%d"}}`, key)
}
