package pawapay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// LookUpPayment implements operator.StatusLookup.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	x, account, unsent := d.exchange(ctx, call.Call, upstream.Request{
		Method: http.MethodGet, URL: depositPath + "/" + url.PathEscape(call.UpstreamKey),
	})
	if unsent != nil {
		return operator.StatusResponse{Cause: unsent}
	}
	found := parseLookup(x, call.UpstreamKey)
	d.accounts.RecordUse(call.Platform, account.Version, found.Responded())
	return found
}

// parseLookup reads the response to a lookup: 200 with FOUND and the deposit, or with NOT_FOUND.
func parseLookup(x upstream.Exchange, depositID string) operator.StatusResponse {
	if x.Err != nil {
		return operator.StatusResponse{Cause: x.Err}
	}
	response, isDocument := x.Document()
	if !isDocument || x.Status != http.StatusOK {
		return operator.StatusResponse{
			Cause: fmt.Errorf("the status lookup responded %d %s", x.Status, failureCode(x)),
		}
	}
	switch upstream.Text(response, "status") {
	case "NOT_FOUND":
		return operator.StatusResponse{OrderNotFound: true, Cause: errors.New("pawaPay does not know the deposit")}
	case "FOUND":
		report := readReport(response, "data.")
		switch {
		case report.UpstreamKey != depositID || upstream.Text(response, "data.status") == "":
		case report.Status == "":
			return operator.StatusResponse{Cause: operator.ErrUnknownStatus}
		default:
			return operator.StatusResponse{StatusReport: report.StatusReport}
		}
	}
	return operator.StatusResponse{Cause: errors.New("the status lookup responded without this deposit's status")}
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
		reason, _ := refusalReason(upstream.Text(response, prefix+"failureReason.failureCode"))
		report.Status, report.Reason = ledger.Failed, reason
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
	doc, err := strictjson.Parse(body)
	if err != nil {
		return operator.CallbackReport{}
	}
	return readReport(doc, "")
}
