package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
)

// statusPath is the path of the status lookup, before the order_id (decision "pay-getstatus").
const statusPath = "/mobilemoney/v1/getStatus/"

// LookUpPayment implements operator.StatusLookup. OrderNotFound is true if a requestError says that the order does not
// exist.
func (d *Driver) LookUpPayment(ctx context.Context, call operator.StatusCall) operator.StatusResponse {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	build := func(credentials.Account) (upstreamRequest, error) {
		return upstreamRequest{
			method: http.MethodGet,
			path:   statusPath + url.PathEscape(call.UpstreamKey),
			header: routingHeaders(call.Call, call.Channel, call.Lang),
		}, nil
	}
	x, version, _, err := d.exchangeWithRetry(ctx, call.Call, operator.AccountPay, build)
	if err != nil {
		d.accounts.RecordUse(call.Platform, 0, false)
		return operator.StatusResponse{Cause: err}
	}
	found := parseStatus(x, call.UpstreamKey)
	d.accounts.RecordUse(call.Platform, version, found.Responded())
	return found
}

func parseStatus(x upstream.Exchange, orderID string) operator.StatusResponse {
	if x.Err != nil {
		return operator.StatusResponse{Cause: x.Err}
	}
	if !x.IsSuccess() {
		exception, isRequestError := requestError(x)
		if !isRequestError {
			return operator.StatusResponse{Cause: fmt.Errorf("getStatus responded %d without a requestError", x.Status)}
		}
		return operator.StatusResponse{
			OrderNotFound: x.Status == http.StatusNotFound && concernsRequest(exception.MessageID),
			Cause:         fmt.Errorf("getStatus responded %d %s", x.Status, exception.MessageID),
		}
	}
	var found orderState
	if response, isDocument := x.Document(); isDocument {
		found = parseOrderState(response)
	}
	if found.status == "" || found.id != orderID {
		return operator.StatusResponse{Cause: errors.New("getStatus responded without this order's status")}
	}
	status, known := operator.ParsePaymentStatus(found.status)
	if !known {
		return operator.StatusResponse{Cause: operator.ErrUnknownStatus}
	}
	return operator.StatusResponse{StatusReport: operator.StatusReport{
		Status:            status,
		Amount:            found.amount,
		Currency:          found.currency,
		MSISDN:            found.msisdn,
		OperatorReference: found.transactionID,
		Reason:            operator.ParseFailureReason(found.description),
	}}
}
