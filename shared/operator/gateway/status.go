package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"mobilegateway/shared/operator"
)

// statusPath is the path of the status lookup, before the order_id (decision "pay-getstatus").
const statusPath = "/mobilemoney/v1/getStatus/"

// PaymentStatus asks what became of a payment. Known is true where the operator answered for this very order with a
// status; NotFound where it answered in its own words that there is none.
func (d *Driver) PaymentStatus(ctx context.Context, call operator.StatusCall) operator.StatusAnswer {
	ctx, cancel := bounded(ctx)
	defer cancel()
	write := func(account) (message, error) {
		return message{
			method: http.MethodGet,
			path:   statusPath + url.PathEscape(call.Key),
			header: routing(call.Call, call.Channel, call.Lang),
		}, nil
	}
	x, _, err := d.converse(ctx, call.Call, write)
	if err != nil {
		return operator.StatusAnswer{Cause: err}
	}
	return readStatus(x, call.Key)
}

// readStatus reads what getStatus told.
func readStatus(x exchange, orderID string) operator.StatusAnswer {
	if x.err != nil {
		return operator.StatusAnswer{Cause: x.err}
	}
	if x.status < 200 || x.status > 299 {
		exception, carries := x.exception()
		if !carries {
			return operator.StatusAnswer{Cause: fmt.Errorf("getStatus answered %d without a requestError", x.status)}
		}
		return operator.StatusAnswer{
			NotFound: x.status == http.StatusNotFound && passedOn(exception.MessageID),
			Cause:    fmt.Errorf("getStatus answered %d %s", x.status, exception.MessageID),
		}
	}
	found, ok := readOrder(x)
	if !ok || found.status == "" || found.id != orderID {
		return operator.StatusAnswer{Cause: errors.New("getStatus answered without this order's status")}
	}
	return operator.StatusAnswer{
		Known:             true,
		Status:            found.status,
		Amount:            found.amount,
		Currency:          found.currency,
		MSISDN:            found.msisdn,
		OperatorReference: found.transactionID,
	}
}
