package operators

import (
	"slices"
	"strings"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// SMSPlatform is the platform of SMS. It has no key, so each send is another SMS, and all receipts come to one address
// with the platform's own id of the message.
const SMSPlatform = "orange-sms"

// Row declares the wire of a platform: where its stub is, and where a payment has its facts in the body.
type Row struct {
	Name, prefix, payPath            string
	key, upstreamKey, order          string // key is the stub's; mtn-momo has it in a header
	payer, payerPrefix, onlyCurrency string
	// reportKey is the upstream key in a static callback. success and failure are the words in a callback for a payment
	// that ended; without failure there is no such word. A callback with unconfirmed in it says no success.
	reportKey, success, failure, unconfirmed string

	isMinor bool // the amount is in minor units
	Expires bool // it ends payments itself before our lifetime (invariant 1 is weaker)
}

var rows = []Row{
	{Name: "mtn-momo", prefix: "/mtn", payPath: "/collection/v1_0/requesttopay", order: "externalId",
		payer: "payer.partyId", success: "SUCCESSFUL", failure: "FAILED"},
	{Name: "pawapay", prefix: "/pawapay", payPath: "/v2/deposits", key: "depositId", upstreamKey: "depositId",
		order: "clientReferenceId", payer: "payer.accountDetails.phoneNumber", reportKey: "depositId",
		success: "COMPLETED", failure: "FAILED"},
	{Name: "orange-cm", prefix: "/orangecm", payPath: "/omcoreapis/1.0.2/mp/pay", key: "payToken",
		upstreamKey: "orderId", order: "orderId", payer: "subscriberMsisdn", payerPrefix: "237", onlyCurrency: "XAF",
		Expires: true, success: "SUCCESSFULL", failure: "FAILED", //nolint:misspell // the platform's
		unconfirmed: `"confirmtxnstatus":null`},
	{Name: "wave-checkout", prefix: "/wave", payPath: "/v1/checkout/sessions", key: "client_reference",
		upstreamKey: "client_reference", order: "client_reference", payer: "restrict_payer_mobile", Expires: true,
		reportKey: "data.client_reference", success: "checkout.session.completed"},
	{Name: "orange-webpay", prefix: "/orangewebpay", payPath: "/webpayment", key: "order_id",
		upstreamKey: "order_id", order: "order_id", Expires: true, success: "SUCCESS", failure: "FAILED"},
	{Name: "flouci-checkout", prefix: "/flouci", payPath: "/generate_payment", key: "developer_tracking_id",
		upstreamKey: "developer_tracking_id", order: "developer_tracking_id", onlyCurrency: "TND", isMinor: true,
		Expires: true},
	{Name: SMSPlatform, prefix: "/orangesms", payPath: "/requests", reportKey: "deliveryInfoNotification.callbackData"},
}

// rowOfPath is the row of a path's platform.
func rowOfPath(path string) Row {
	return rows[slices.IndexFunc(rows, func(r Row) bool { return strings.HasPrefix(path, r.prefix+"/") })]
}

// rowNamed is the row of a platform. It returns false for another name.
func rowNamed(name string) (Row, bool) {
	at := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
	if at < 0 {
		return Row{}, false
	}
	return rows[at], true
}

// RowOf is the row of the platform that an entry is pinned to. It returns false if it is pinned to a model.
func RowOf(e *ledger.Entry) (Row, bool) { return rowNamed(operator.PinOf(e).Platform) }
