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

// DriverName is the driver's name in the rows of the operator table.
const DriverName = "gateway"

const (
	// defaultTimeout bounds a call whose context has no deadline, against the interface's contract.
	defaultTimeout = 20 * time.Second
	// minRetryTime is the least time that must be left for a re-send.
	minRetryTime = 2 * time.Second
)

// Secrets gives the operators' credentials: *secret.Cache over OPERATOR_CREDENTIALS_SECRET.
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
	_ operator.Driver        = (*Driver)(nil)
	_ operator.StatusLookup  = (*Driver)(nil)
	_ operator.UserSMSSender = (*Driver)(nil)
	_ Secrets                = (*secret.Cache)(nil)
)

// New makes the driver with connections of its own. Nothing is fetched or opened yet.
func New(secrets Secrets, now func() time.Time) *Driver {
	return &Driver{credentials: &credentials{secrets: secrets}, transport: newTransport(), now: now}
}

// CurrentAccountID tells the id of the operator's current account. The error is a *fault.Fault IntegrationRejected where the
// credentials cannot be had, or have no usable account for the operator.
func (d *Driver) CurrentAccountID(ctx context.Context, operatorName string) (string, error) {
	found, err := d.credentials.findAccount(ctx, operatorName, "")
	if err != nil {
		return "", &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	return found.id, nil
}

// callProtocol is what an operation has of its own: write makes its request for an account, complete reads its success, and
// reportsDuplicates is true where the operator answers a repeated key with 409 instead of the first answer (SMS).
type callProtocol struct {
	buildRequest      requestBuilder
	parseSuccess      successParser
	reportsDuplicates bool
}

// execute makes one call and judges what came of it.
func (d *Driver) execute(ctx context.Context, call operator.Call, p callProtocol) operator.Result {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	x, retried, err := d.exchangeWithRetry(ctx, call, p.buildRequest)
	if err != nil {
		return notApplied(fault.IntegrationRejected, err)
	}
	result := classifyExchange(x, p.parseSuccess)
	if result.DuplicateKey && !p.reportsDuplicates {
		result.DuplicateKey, result.OperatorReference = false, ""
	}
	if retried {
		return outcomeAfterRetry(result)
	}
	return result
}

// exchangeWithRetry sends a request and returns the last exchange. earlier is true where an exchange before it may have reached
// the operator. An error means that nothing was sent at all: there are no usable credentials.
func (d *Driver) exchangeWithRetry(ctx context.Context, call operator.Call, build requestBuilder) (x exchange, retried bool, err error) {
	target, err := d.credentials.findAccount(ctx, call.Operator, call.AccountID)
	if err != nil {
		return exchange{}, false, err
	}
	request, err := build(target)
	if err != nil {
		return exchange{}, false, err
	}
	x = d.send(ctx, target, request)
	if x.connectionLost && d.canRetry(ctx, call) {
		retried = true
		x = d.send(ctx, target, request)
	}
	if !x.unauthorized() {
		return x, retried, nil
	}
	refreshed, changed := d.credentials.refreshAccount(ctx, call.Operator, target)
	if !changed {
		return x, retried, nil
	}
	request, err = build(refreshed)
	if err != nil {
		return x, retried, nil
	}
	return d.send(ctx, refreshed, request), retried, nil
}

// canRetry says whether a request that may have been applied may be sent once more at once: the operator's row calls
// repeats under the same key safe, and there is time to hear the answer (decision "idle-connections").
func (d *Driver) canRetry(ctx context.Context, call operator.Call) bool {
	row, known := operator.FindCapabilities(call.Operator)
	deadline, _ := ctx.Deadline()
	return known && row.IdempotencyWindow > 0 && ctx.Err() == nil && deadline.Sub(d.now()) >= minRetryTime
}

// withDefaultTimeout gives a context without a deadline the default one.
func withDefaultTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, set := ctx.Deadline(); set {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultTimeout)
}
