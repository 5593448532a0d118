package operation

import (
	"mobilegateway/shared/apigw"
	"mobilegateway/shared/ledger"
)

// StoredResponse builds the response that the entry has stored. replayed marks it as the replay of an earlier response.
func (a *Attempt) StoredResponse(replayed bool) apigw.Response {
	header := map[string]string{"Content-Type": "application/json"}
	if replayed {
		header["Idempotent-Replayed"] = "true"
	}
	if a.Location != "" && a.Stored.State == ledger.Done {
		header["Location"] = a.Location
	}
	return apigw.Response{Status: a.Stored.Response.Status, Header: header, Body: a.Stored.Response.Body}
}

// LogRouting writes an entry's operator, country and channel into the request's log line.
func LogRouting(req *apigw.Request, e *ledger.Entry) {
	req.LogLine.SetOperator(e.Route.Operator)
	req.LogLine.SetCountry(e.Route.Country)
	req.LogLine.SetChannel(e.Request.Channel)
}
