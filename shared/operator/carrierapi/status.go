package carrierapi

import (
	"context"
	"net/http"
	"net/url"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/strictjson"
)

// statusPath is the path of the status lookup, before the order_id (decision "pay-getstatus").
const statusPath = "/mobilemoney/v1/getStatus/"

// LookUpPayment implements operator.StatusLookup. OrderNotFound is true if a requestError says that the order does not
// exist.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	build := func(credentials.Account) (upstream.Request, error) {
		return upstream.Request{
			Method: http.MethodGet,
			URL:    statusPath + url.PathEscape(call.UpstreamKey),
			Header: routingHeaders(call.Call, call.Channel, call.Lang),
		}, nil
	}
	sent, err := d.exchange(ctx, call.Call, callProtocol{operation: operator.AccountPay, buildRequest: build})
	if err != nil {
		return operator.StatusResponse{Cause: err}
	}
	found := newLookup(call.UpstreamKey).ReadResponse(sent.Exchange)
	d.accounts.RecordUse(call.Platform, sent.Account.Version, found.Responded())
	return found
}

func newLookup(orderID string) upstream.Lookup {
	return upstream.Lookup{
		IsNotFound: func(x upstream.Exchange) bool {
			exception, isRequestError := requestError(x)
			return isRequestError && x.Status == http.StatusNotFound && concernsRequest(exception.MessageID)
		},
		Read: func(response *strictjson.Reader) (operator.StatusReport, bool) {
			found, word := parseOrderState(response)
			return found.StatusReport, word != "" && found.OrderID == orderID
		},
	}
}
