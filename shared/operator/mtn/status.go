package mtn

import (
	"context"
	"net/http"
	"net/url"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// LookUpPayment implements operator.StatusLookup. It reports the merchant's currency in place of the sandbox's.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	lookup := upstream.Lookup{
		Build: upstream.Get(paymentPath + "/" + url.PathEscape(call.UpstreamKey)),
		IsNotFound: func(x upstream.Exchange) bool {
			return x.Status == http.StatusNotFound && x.ErrorCode("code") == "RESOURCE_NOT_FOUND"
		},
		Read: func(response *strictjson.Reader) (operator.StatusReport, bool) {
			report := readReport(response)
			isOurs := report.OrderID == "" || report.OrderID == call.OrderID
			return report.StatusReport, isOurs && upstream.Text(response, "status") != ""
		},
	}
	x, unsent := d.Send(ctx, call.Call, lookup.Build, upstream.Exchange.IsUnauthorized)
	if unsent != nil {
		return operator.StatusResponse{Cause: unsent}
	}
	found := lookup.ReadResponse(x)
	if found.Currency != "" && found.Currency == testCurrency(x.Account) {
		found.Currency = call.Currency
	}
	return found
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
		readFailure(response, &report)
	}
	return report
}

// readFailure maps the reason of a failed payment. Some versions of the protocol send it as a text, others as an
// object. MTN's list of reasons is open: another one is a failure too.
func readFailure(response *strictjson.Reader, report *operator.CallbackReport) {
	code := upstream.Text(response, "reason")
	if code == "" {
		code = upstream.Text(response, "reason.code")
	}
	report.Code = knownCode(code)
	switch reason := refusalReasons[code]; {
	case reason == ledger.TimedOut, code == codeNotPerformed:
		report.Status = ledger.Expired
	case reason == ledger.RefusedByPayer:
		report.Status = ledger.Cancelled
	default:
		report.Status, report.Reason = ledger.Failed, reason
	}
}

// ReadPaymentCallback implements operator.PaymentCallbackReader. The body is that of a lookup, sometimes with our UUID.
// It leaves out a currency of no country: that is the account's own one, not the merchant's.
func (d *Driver) ReadPaymentCallback(body []byte) operator.CallbackReport {
	doc := upstream.CallbackDocument(body)
	report := readReport(doc)
	if _, known := market.CurrencyExponent(report.Currency); !known {
		report.Currency = ""
	}
	return report
}
