package mtn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// LookUpPayment implements operator.StatusLookup. It reports the merchant's currency in place of the account's own one.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	path := paymentPath + "/" + url.PathEscape(call.UpstreamKey)
	x, account, unsent := d.exchange(ctx, call.Call, func(credentials.Account) (upstream.Request, *fault.Fault) {
		return upstream.Request{Method: http.MethodGet, URL: path, Header: map[string]string{}}, nil
	})
	found := operator.StatusResponse{Cause: unsent}
	if unsent == nil {
		found = parseLookup(x, call.OrderID)
	}
	if found.Currency != "" && found.Currency == account.Field(fieldCurrency) {
		found.Currency = call.Currency
	}
	d.accounts.RecordUse(call.Platform, account.Version, found.Responded())
	return found
}

// parseLookup reads the response to a lookup. A failed payment is a 200 too.
func parseLookup(x upstream.Exchange, orderID string) operator.StatusResponse {
	if x.Err != nil {
		return operator.StatusResponse{Cause: x.Err}
	}
	response, isDocument := x.Document()
	if !isDocument || x.Status != http.StatusOK {
		return operator.StatusResponse{
			OrderNotFound: x.Status == http.StatusNotFound && errorCode(x) == "RESOURCE_NOT_FOUND",
			Cause:         fmt.Errorf("the status lookup responded %d %s", x.Status, errorCode(x)),
		}
	}
	report := readReport(response)
	switch {
	case upstream.Text(response, "status") == "" || report.OrderID != "" && report.OrderID != orderID:
		return operator.StatusResponse{Cause: errors.New("the status lookup responded without this order's status")}
	case report.Status == "":
		return operator.StatusResponse{Cause: operator.ErrUnknownStatus}
	}
	return operator.StatusResponse{StatusReport: report.StatusReport}
}

// readReport reads a payment, as the lookup and the callback have it. Its Status is "" for a status that the driver
// does not know, and for a success without order, amount or currency.
func readReport(response *strictjson.Reader) operator.CallbackReport {
	report := operator.CallbackReport{
		OrderID:     upstream.TextOrNumber(response, "externalId"),
		UpstreamKey: upstream.Text(response, "referenceId"),
	}
	report.Amount = upstream.TextOrNumber(response, "amount")
	report.Currency = upstream.Text(response, "currency")
	report.OperatorReference = upstream.TextOrNumber(response, "financialTransactionId")
	report.MSISDN = upstream.TextOrNumber(response, "payer.partyId")
	switch upstream.Text(response, "status") {
	case "CREATED", "PENDING":
		report.Status = ledger.Pending
	case "SUCCESSFUL":
		if report.OrderID != "" && report.Amount != "" && report.Currency != "" {
			report.Status = ledger.Successful
		}
	case "FAILED":
		report.Status, report.Reason = readFailure(response)
	}
	return report
}

// readFailure maps the reason of a failed payment. Some versions of the protocol send it as a text, others as an
// object. MTN's list of reasons is open: another one is a failure too.
func readFailure(response *strictjson.Reader) (ledger.Status, ledger.FailureReason) {
	code := upstream.Text(response, "reason")
	if code == "" {
		code = upstream.Text(response, "reason.code")
	}
	reason, _ := refusalReason(code)
	switch {
	case reason == ledger.TimedOut, code == "COULD_NOT_PERFORM_TRANSACTION":
		return ledger.Expired, ""
	case reason == ledger.RefusedByPayer:
		return ledger.Cancelled, ""
	}
	return ledger.Failed, reason
}

// ReadPaymentCallback implements operator.PaymentCallbackReader. The body is that of a lookup, sometimes with our UUID.
// It leaves out a currency of no country: that is the account's own one, not the merchant's.
func (d *Driver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	doc, err := strictjson.Parse(body)
	if err != nil {
		return operator.CallbackReport{}
	}
	report := readReport(doc)
	if _, known := market.CurrencyExponent(report.Currency); !known {
		report.Currency = ""
	}
	return report
}
