// Package gateway is the driver for platforms that speak the specification's own protocol: it is the client of the three
// operations, of the status lookup, and of the purchaser's SMS, towards a base URL and a token from the operators'
// credentials.
//
// It keeps no state of a transaction and sends each call once. There are two exceptions, both under the same key: after
// a cut of a reused connection before any answer, where the operator's row says that repeats are safe; and after a 401,
// where the credentials turn out to have changed. Its invariant: an outcome is Done, Refused or Released only when the
// answer, or the lack of a connection, proves it (decision "outcomes").
package gateway

import (
	"context"
	"net/http"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/secret"
)

// Name is the driver's name in the rows of the operator table.
const Name = "gateway"

const (
	// defaultTimeout bounds a call whose context has no deadline, against the interface's contract.
	defaultTimeout = 20 * time.Second
	// resendReserve is the least time that must be left for a re-send.
	resendReserve = 2 * time.Second
)

// Secrets gives the operators' credentials: *secret.Cache over OPERATOR_SECRET.
type Secrets interface {
	Get(ctx context.Context) (secret.Value, error)
	Refresh(ctx context.Context) (secret.Value, error)
}

// Driver speaks the protocol. It is safe for concurrent use.
type Driver struct {
	credentials *credentials
	transport   http.RoundTripper
	now         func() time.Time
}

var (
	_ operator.Driver       = (*Driver)(nil)
	_ operator.StatusReader = (*Driver)(nil)
	_ operator.UserNotifier = (*Driver)(nil)
	_ Secrets               = (*secret.Cache)(nil)
)

// New makes the driver with connections of its own. Nothing is fetched or opened yet.
func New(secrets Secrets, now func() time.Time) *Driver {
	return &Driver{credentials: &credentials{secrets: secrets}, transport: newTransport(), now: now}
}

// Account tells the id of the operator's current account. The error is a *fault.Fault OperatorRefusedUs where the
// credentials cannot be had, or have no usable account for the operator.
func (d *Driver) Account(ctx context.Context, operatorName string) (string, error) {
	found, err := d.credentials.find(ctx, operatorName, "")
	if err != nil {
		return "", &fault.Fault{Kind: fault.OperatorRefusedUs, Cause: err}
	}
	return found.id, nil
}

// protocol is what an operation has of its own: write makes its request for an account, complete reads its success, and
// knowsDuplicates is true where the operator answers a repeated key with 409 instead of the first answer (SMS).
type protocol struct {
	write           writer
	complete        reader
	knowsDuplicates bool
}

// perform makes one call and judges what came of it.
func (d *Driver) perform(ctx context.Context, call operator.Call, p protocol) operator.Result {
	ctx, cancel := bounded(ctx)
	defer cancel()
	x, earlier, err := d.converse(ctx, call, p.write)
	if err != nil {
		return released(fault.OperatorRefusedUs, err)
	}
	result := judge(x, p.complete)
	if result.Duplicate && !p.knowsDuplicates {
		result.Duplicate, result.OperatorReference = false, ""
	}
	if earlier {
		return afterUnknown(result)
	}
	return result
}

// converse sends a request and returns the last exchange. earlier is true where an exchange before it may have reached
// the operator. An error means that nothing was sent at all: there are no usable credentials.
func (d *Driver) converse(ctx context.Context, call operator.Call, write writer) (x exchange, earlier bool, err error) {
	to, err := d.credentials.find(ctx, call.Operator, call.Account)
	if err != nil {
		return exchange{}, false, err
	}
	request, err := write(to)
	if err != nil {
		return exchange{}, false, err
	}
	x = d.send(ctx, to, request)
	if x.cut && d.mayResend(ctx, call) {
		earlier = true
		x = d.send(ctx, to, request)
	}
	if !x.unauthorized() {
		return x, earlier, nil
	}
	renewed, changed := d.credentials.renew(ctx, call.Operator, to)
	if !changed {
		return x, earlier, nil
	}
	request, err = write(renewed)
	if err != nil {
		return x, earlier, nil
	}
	return d.send(ctx, renewed, request), earlier, nil
}

// mayResend says whether a request that may have been applied may be sent once more at once: the operator's row calls
// repeats under the same key safe, and there is time to hear the answer (decision "idle-connections").
func (d *Driver) mayResend(ctx context.Context, call operator.Call) bool {
	row, known := operator.Find(call.Operator)
	deadline, _ := ctx.Deadline()
	return known && row.RepeatSafeFor > 0 && ctx.Err() == nil && deadline.Sub(d.now()) >= resendReserve
}

// bounded gives a context without a deadline the default one.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, set := ctx.Deadline(); set {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultTimeout)
}
