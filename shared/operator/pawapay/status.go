package pawapay

import (
	"context"
	"net/http"
	"net/url"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// LookUpPayment implements operator.StatusLookup. Its response is 200 with FOUND and the deposit, or with NOT_FOUND.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	return d.SendLookup(ctx, call.Call, upstream.Lookup{
		Build: upstream.Get(depositPath + "/" + url.PathEscape(call.UpstreamKey)),
		IsNotFound: func(x upstream.Exchange) bool {
			response, isDocument := x.Document()
			return isDocument && x.Status == http.StatusOK && upstream.Text(response, "status") == "NOT_FOUND"
		},
		Read: func(response *strictjson.Reader) (operator.StatusReport, bool) {
			report := readReport(response, "data.")
			isOurs := upstream.Text(response, "status") == "FOUND" && report.UpstreamKey == call.UpstreamKey
			return report.StatusReport, isOurs && upstream.Text(response, "data.status") != ""
		},
	})
}

// readReport reads a deposit below a prefix, as the lookup and the callback have it. Its Status is "" for a status that
// the driver does not know, and for a success without its amount or currency.
func readReport(response *strictjson.Reader, prefix string) operator.CallbackReport {
	report := operator.CallbackReport{
		OrderID:     readOrderID(response, prefix),
		UpstreamKey: upstream.Text(response, prefix+"depositId"),
	}
	report.Amount = upstream.TextOrNumber(response, prefix+"amount")
	report.Currency = upstream.Text(response, prefix+"currency")
	report.MSISDN = upstream.TextOrNumber(response, prefix+"payer.accountDetails.phoneNumber")
	report.OperatorReference = upstream.TextOrNumber(response, prefix+"providerTransactionId")
	switch upstream.Text(response, prefix+"status") {
	case "ACCEPTED", "SUBMITTED", "PROCESSING", "IN_RECONCILIATION":
		report.Status = ledger.Pending
	case "COMPLETED":
		if report.UpstreamKey != "" && report.Amount != "" && report.Currency != "" {
			report.Status = ledger.Successful
		}
	case "FAILED":
		code := upstream.Text(response, prefix+"failureReason.failureCode")
		reason := refusalReasons[code]
		report.Status, report.Reason, report.Code = ledger.Failed, reason, knownCode(code)
		if reason == ledger.RefusedByPayer {
			report.Status, report.Reason = ledger.Cancelled, ""
		}
	}
	return report
}

// maxMetadata is how many entries a deposit has at most.
const maxMetadata = 10

// readOrderID returns the order_id of the metadata, which is an object or, as in the request, a list of objects.
func readOrderID(response *strictjson.Reader, prefix string) string {
	for _, entry := range response.Objects(prefix+"metadata", maxMetadata) {
		if orderID := upstream.Text(entry, "orderId"); orderID != "" {
			return orderID
		}
	}
	return upstream.Text(response, prefix+"clientReferenceId")
}

// ReadPaymentCallback implements operator.PaymentCallbackReader. The body is the deposit of a lookup.
func (d *Driver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	return readReport(upstream.CallbackDocument(body), "")
}
