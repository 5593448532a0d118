package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// statusPath is the path of the status lookup, before the order_id (decision "pay-getstatus").
const statusPath = "/mobilemoney/v1/getStatus/"

// LookUpPayment implements operator.StatusLookup. StatusKnown is true if the operator returned a status of this order,
// OrderNotFound if a requestError says that the order does not exist.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	build := func(account) (upstreamRequest, error) {
		return upstreamRequest{
			method: http.MethodGet,
			path:   statusPath + url.PathEscape(call.UpstreamKey),
			header: routingHeaders(call.Call, call.Channel, call.Lang),
		}, nil
	}
	x, _, err := d.exchangeWithRetry(ctx, call.Call, operator.AccountPay, build)
	if err != nil {
		d.credentials.recordUse(call.Operator, 0, false)
		return operator.StatusResponse{Cause: err}
	}
	found := parseStatus(x, call.UpstreamKey)
	d.credentials.recordUse(call.Operator, x.version, found.StatusKnown || found.OrderNotFound)
	return found
}

func parseStatus(x exchange, orderID string) operator.StatusResponse {
	if x.err != nil {
		return operator.StatusResponse{Cause: x.err}
	}
	if x.status < 200 || x.status > 299 {
		exception, isRequestError := x.requestError()
		if !isRequestError {
			return operator.StatusResponse{Cause: fmt.Errorf("getStatus responded %d without a requestError", x.status)}
		}
		return operator.StatusResponse{
			OrderNotFound: x.status == http.StatusNotFound && concernsRequest(exception.MessageID),
			Cause:         fmt.Errorf("getStatus responded %d %s", x.status, exception.MessageID),
		}
	}
	var found orderState
	if response, err := strictjson.Parse(x.body); err == nil {
		found = parseOrderState(response)
	}
	if found.status == "" || found.id != orderID {
		return operator.StatusResponse{Cause: errors.New("getStatus responded without this order's status")}
	}
	return operator.StatusResponse{
		StatusKnown:       true,
		OperatorStatus:    found.status,
		Amount:            found.amount,
		Currency:          found.currency,
		MSISDN:            found.msisdn,
		OperatorReference: found.transactionID,
		StatusDescription: found.description,
	}
}
