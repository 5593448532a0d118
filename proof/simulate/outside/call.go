package outside

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
)

// keySigns end the merchant's name in an operator's key: "." before a clientCorrelator, "~" before a referenceCode, "!"
// before a hash, "_" in an order_id.
const keySigns = ".~!_"

// call is a valid charge, payment or SMS request.
type call struct {
	kind        string
	key         string
	fingerprint string // of a payment: another one under the same key is a conflict
	details     string // everything that decides what is applied
	amount      string
	minor       int64
	currency    string
	msisdn      string
	callbackURL string
	text        string // of an SMS

	// The rest is of payments.
	operator, channel, country string
	reference, state           string
}

// readCall reads a request of the three operations. It returns false if the gateway should not have sent it.
func readCall(path string, header http.Header, body []byte) (call, bool) {
	d := parseDocument(body)
	in, valid := call{}, false
	switch {
	case strings.HasSuffix(path, "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"):
		in, valid = readCharge(header, d)
	case strings.HasSuffix(path, "/mobilemoney/v1"):
		in, valid = readPayment(header, d)
	case strings.Contains(path, "/smsmessaging/v1/outbound/") && strings.HasSuffix(path, "/requests"):
		in, valid = readSMS(header, d)
	}
	return in, valid && in.key != ""
}

func readCharge(header http.Header, d document) (call, bool) {
	const information = "amountTransaction.paymentAmount.chargingInformation."
	in := call{
		kind: KindCharge, key: d.text("amountTransaction.clientCorrelator"), amount: d.text(information + "amount"),
		currency: d.text(information + "currency"), msisdn: valueOf(header, "gw-alias"),
	}
	in.details = strings.Join([]string{in.amount, in.currency, in.msisdn, d.text(information + "description")}, "\x00")
	country, known := market.ByMCO(valueOf(header, "X-Operator-MCO"))
	if country.ChargesInMinorUnits {
		country.Exponent = 0
	}
	isCharge := d.text("amountTransaction.transactionOperationStatus") == "Charged" &&
		d.text("amountTransaction.referenceCode") != "" && valueOf(header, "gw-token") != ""
	return in, known && in.readAmount(country) && isCharge
}

func readPayment(header http.Header, d document) (call, bool) {
	in := call{
		kind: KindPayment, key: d.text("order_id"), amount: d.text("amount"), currency: d.text("currency"),
		msisdn: d.text("user_msisdn"), callbackURL: d.text("notif_url"), reference: d.text("reference"),
		state: d.text("state"), operator: valueOf(header, "mno-name"), channel: valueOf(header, "channel"),
		country: valueOf(header, "country-code"),
	}
	in.fingerprint = strings.Join([]string{
		in.operator, in.channel, in.country, in.amount, in.currency, in.msisdn, in.reference, in.state,
	}, "\x00")
	in.details = in.fingerprint
	country, known := market.ByAlpha2(in.country)
	hasPayer := in.channel == channelWeb || in.msisdn != ""
	return in, known && in.readAmount(country) && in.callbackURL != "" && hasPayer
}

func readSMS(header http.Header, d document) (call, bool) {
	const root = "outboundSMSMessageRequest."
	in := call{
		kind: KindSMS, key: d.text(root + "clientCorrelator"), msisdn: valueOf(header, "X-Operator-ISE2"),
		callbackURL: d.text(root + "receiptRequest.notifyURL"),
	}
	if sign := strings.IndexAny(in.key, keySigns); sign >= 0 && in.key[sign] == '_' {
		in.kind = KindPayerSMS // the gateway sends it under the order_id
	}
	in.text = d.text(root + "outboundSMSTextMessage.message")
	in.details = strings.Join([]string{in.msisdn, in.text}, "\x00")
	isAddressed := in.msisdn != "" && strings.HasPrefix(d.text(root+"senderAddress"), "tel:+")
	return in, isAddressed && valueOf(header, "gw-token") != ""
}

// readAmount reads the amount in minor units, and reports whether it is an amount of the country.
func (in *call) readAmount(country market.Country) bool {
	minor, err := money.Parse(in.amount, country.Exponent)
	in.minor = minor
	return err == nil && in.currency == country.Currency
}

// valueOf returns a header. The driver writes names in the specification's spelling, which Get does not find.
func valueOf(header http.Header, name string) string {
	if values := header[name]; len(values) > 0 {
		return values[0]
	}
	return header.Get(name)
}

// transactionID makes an id in the form of a UUID.
func transactionID(kind string, number int) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", kind[0], number)
}

// successResponse is the first response to an accepted call. It has the fields that the operator adds, not the echoed
// ones.
func (t *transaction) successResponse() Exchange {
	const base = "https://operator.example.com"
	location := base + "/requests/" + url.PathEscape(t.id)
	body := t.payload("payment", statusPending, t.createdAt)
	switch {
	case t.kind == KindCharge:
		body = mustMarshal(object{"amountTransaction": object{
			"transactionOperationStatus": "Charged", "serverReferenceCode": t.id, "resourceURL": location,
		}})
	case t.kind != KindPayment:
		location += "/deliveryInfos"
		body = mustMarshal(object{"outboundSMSMessageRequest": object{"resourceURL": location}})
	case t.channel == channelWeb:
		body = mustMarshal(object{
			"status": http.StatusCreated, "message": "OK", "pay_token": "pay-" + t.id,
			"payment_url": base + "/pay/" + t.id, "notif_token": t.notifToken, "state": t.state,
		})
	}
	return newResponse(http.StatusCreated, string(body), "Location", location)
}
