package operation

import (
	"mobilegateway/shared/apigw"
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

// LogRouting writes an entry's operator, country and channel into the request's log line.
func LogRouting(req *apigw.Request, e *ledger.Entry) {
	req.LogLine.SetOperator(e.Operator)
	req.LogLine.SetCountry(e.Country)
	req.LogLine.SetChannel(e.Channel)
}
