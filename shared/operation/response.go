package operation

import (
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
)

// StoredResponse builds the response that an entry has stored. replayed marks it as the replay of an earlier response.
func StoredResponse(e *ledger.Entry, location string, replayed bool) apigw.Response {
	header := map[string]string{"Content-Type": "application/json"}
	if replayed {
		header["Idempotent-Replayed"] = "true"
	}
	if location != "" && e.State == ledger.Done {
		header["Location"] = location
	}
	return apigw.Response{Status: e.ResponseStatus, Header: header, Body: e.ResponseBody}
}

// LocateUnknown adds the URL of a transaction to the fault of its unknown outcome (decision "charge-unknown"). Each
// such fault comes after the reservation, so the merchant can look the transaction up there.
func LocateUnknown(err error, location string) error {
	if f := fault.FromError(err); f != nil && f.Kind == fault.OutcomeUnknown {
		located := *f
		located.Location = location
		return &located
	}
	return err
}

// LogRouting writes an entry's operator, country and channel into the request's log line.
func LogRouting(req *apigw.Request, e *ledger.Entry) {
	req.LogLine.SetOperator(e.Operator)
	req.LogLine.SetCountry(e.Country)
	req.LogLine.SetChannel(e.Channel)
}
