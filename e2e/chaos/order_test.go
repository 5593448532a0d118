//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"mobilegateway/local"
	"mobilegateway/shared/ledger"
)

// order is one transaction of a merchant: a charge, a payment or an SMS.
type order struct {
	kind     ledger.Kind
	id       string // the correlator or the order_id
	merchant local.MerchantCredentials
	channel  string // of a payment
	digits   string // the last four digits of the payer's number, which decide the outcome
	server   string // the merchant's server that gets the notifications
	notify   string // its URL
	// impatient merchants do not retry.
	impatient bool
	// payer is what the payer does on the payment page: confirm, cancel, or nothing. payerDone is true if the page
	// accepted it.
	payer     string
	payerDone bool

	// response is the last response. decided is true if it needs no retry, finished if merchant and payer have ended.
	response response
	decided  bool
	finished bool
	requests int
}

// response is what a merchant got for a request. The status is 0 without a response.
type response struct {
	status   int
	header   http.Header
	body     string
	location string
}

// String is the order in messages.
func (o *order) String() string {
	return fmt.Sprintf("%s %s (%s, digits %s, %s, %d requests, last response %d %.200s)",
		o.kind, o.id, o.merchant.Merchant, o.digits, o.server, o.requests, o.response.status, o.response.body)
}

// ledgerKey is the order's key in the ledger.
func (o *order) ledgerKey() ledger.Key {
	id := o.id
	switch o.kind {
	case ledger.Charge:
		id = ledger.ChargeID(o.merchant.ClientID, o.id, "")
	case ledger.SMS:
		id = ledger.SMSID(o.merchant.ClientID, o.id)
	}
	return ledger.Key{Kind: o.kind, ID: id}
}

// operatorKey is the order's key at the operator.
func (o *order) operatorKey() string {
	if o.kind == ledger.Payment {
		return o.id
	}
	return ledger.UpstreamKey(o.merchant.Merchant, o.id, "")
}

// digitChoices are the payers' last digits. Most are no test number, so that their orders succeed.
var digitChoices = []string{
	"2000", "2000", "2000", "2000", "2000", "2000", "2000", "2000", "1001", "1002", "1005", "1006", "1007", "1008",
	"1010", "1011",
}

// slowDigits need minutes until they are final.
var slowDigits = []string{"1003", "1004"}

// pick draws one of the values.
func pick[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

// goneURL is a merchant's server that never comes back: nothing listens there.
const goneURL = "http://127.0.0.1:1"

// drawOrder draws the next order. remaining is the time until the faults stop. Orders that need minutes come only while
// it is long enough, so that they end soon after the faults.
func (g *gateway) drawOrder(random *rand.Rand, number int, remaining time.Duration) *order {
	o := &order{
		merchant:  pick(random, g.MerchantCredentials, g.SecondMerchant, g.LimitedMerchant),
		kind:      pick(random, ledger.Charge, ledger.Payment, ledger.Payment, ledger.SMS),
		channel:   pick(random, "web", "tpe", "ussd"),
		impatient: random.IntN(10) == 0,
		payer:     pick(random, "confirm", "confirm", "confirm", "confirm", "confirm", "confirm", "cancel"),
		digits:    pick(random, digitChoices...),
		server:    pick(random, "reliable merchants", "unreliable merchants", "slow merchants"),
	}
	if random.IntN(10) == 0 && remaining > paymentLifetime {
		o.digits = pick(random, slowDigits...)
		o.payer = pick(random, o.payer, "")
	}
	if o.kind == ledger.SMS && o.digits == "1003" {
		o.digits = "2000"
	}
	base := g.InboxURL
	if behind := g.toMerchants[o.server]; behind != nil {
		base = behind.url()
	}
	if random.IntN(30) == 0 && remaining > paymentLifetime+deadLetterAfter {
		o.server, base = "a gone merchant", goneURL
	}
	o.notify = base + "/" + strings.ReplaceAll(o.server, " ", "-")
	o.id = fmt.Sprintf("chaos-%06d", number)
	if o.kind == ledger.Payment {
		o.id = fmt.Sprintf("%s_%06d", o.merchant.Merchant, number)
	}
	return o
}

// newRequest returns the order's request.
func (o *order) newRequest(base string) (*http.Request, error) {
	path, body := "/mobilemoney/v1", ""
	header := map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + o.merchant.AccessToken}
	switch o.kind {
	case ledger.Charge:
		path = "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"
		header["gw-token"], header["gw-alias"] = o.merchant.GWToken, "chaos-alias-"+o.digits
		body = fmt.Sprintf(`{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{`+
			`"chargingInformation":{"amount":"500","currency":"XOF","description":"A song"},`+
			`"chargingMetaData":{"onBehalfOf":%q,"serviceId":%q}},"transactionOperationStatus":"Charged",`+
			`"referenceCode":"REF-%s","clientCorrelator":%q}}`, o.merchant.OnBehalfOf, o.merchant.ServiceID, o.id, o.id)
	case ledger.SMS:
		path = "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"
		for name, value := range map[string]string{
			"X-OAPI-Application-Id": o.merchant.ApplicationID, "X-OAPI-Contact-Id": o.merchant.ContactID,
			"X-OAPI-Resource-Type": "SMS_OSM", "gw-alias": o.merchant.GWAlias, "gw-token": o.merchant.GWToken,
			"X-Operator-MCO": "OCI", "X-Operator-ISE2": "chaos-alias-" + o.digits,
		} {
			header[name] = value
		}
		body = fmt.Sprintf(`{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],`+
			`"senderAddress":"tel:+2250000","outboundSMSTextMessage":{"message":"Bonjour"},"senderName":"Demo",`+
			`"clientCorrelator":%q,"receiptRequest":{"notifyURL":%q,"callbackData":%q}}}`, o.id, o.notify, o.id)
	default:
		header["mno-name"], header["country-code"], header["channel"], header["lang"] = "sandbox", "CI", o.channel, "fr"
		msisdn := ""
		if o.channel != "web" {
			msisdn = fmt.Sprintf(`,"user_msisdn":%q`, o.msisdn())
		}
		body = fmt.Sprintf(`{"currency":"XOF","order_id":%q,"amount":"1000","return_url":"https://shop.example.com/r",`+
			`"cancel_url":"https://shop.example.com/c","notif_url":%q,"reference":"Demo","state":"cart"%s}`,
			o.id, o.notify, msisdn)
	}
	request, err := http.NewRequest(http.MethodPost, base+path, strings.NewReader(body))
	for name, value := range header {
		request.Header[name] = []string{value}
	}
	return request, err
}

// msisdn is the payer's number.
func (o *order) msisdn() string { return "+225070000" + o.digits }
