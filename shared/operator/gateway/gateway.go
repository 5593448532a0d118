// Package gateway is the driver for platforms with the specification's own protocol. It sends the three operations, the
// status lookup and the payer's SMS to the base URL of the operator's credentials.
//
// It keeps no state of a transaction and sends each call once, with two exceptions under the same key. The first is a
// cut of a reused connection before any response, if the operator's row declares repeats safe. The second is a 401
// after which the credentials turn out to have changed. Its invariant: an outcome is Succeeded, Refused or NotApplied
// only if the response, or the lack of a connection, proves it (decision "outcomes").
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
	// defaultTimeout bounds a call without a deadline, which breaks the interface's contract.
	defaultTimeout = 20 * time.Second
	// minRetryTime is the shortest remaining time for a retry.
	minRetryTime = 2 * time.Second
)

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct {
	credentials *credentials
	transport   http.RoundTripper
	now         func() time.Time
}

var (
	_ operator.Driver           = (*Driver)(nil)
	_ operator.StatusLookup     = (*Driver)(nil)
	_ operator.UserSMSSender    = (*Driver)(nil)
	_ operator.AccountDescriber = (*Driver)(nil)
)

// New makes the driver. secrets has the operators' credentials (OPERATOR_CREDENTIALS_SECRET). transport sends the
// requests; nil for connections of the driver's own. It neither fetches nor connects yet.
func New(secrets secret.Reader, transport http.RoundTripper, now func() time.Time) *Driver {
	if transport == nil {
		transport = newTransport()
	}
	return &Driver{credentials: &credentials{secrets: secrets, now: now}, transport: transport, now: now}
}

// AcceptPrivateNetworks makes the driver also accept operators at http addresses of private networks. The directory
// calls it.
func (d *Driver) AcceptPrivateNetworks() { d.credentials.acceptsPrivateNetworks = true }

// CurrentAccountID implements operator.Driver. The error is a *fault.Fault of kind IntegrationRejected if the
// credentials cannot be read or have no usable account for the operator.
func (d *Driver) CurrentAccountID(ctx context.Context, operatorName string) (string, error) {
	found, err := d.credentials.findAccount(ctx, operatorName, "")
	if err != nil {
		return "", &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	return found.id, nil
}

// callProtocol is specific to an operation, which is one of operator.AccountCharge and so on. buildRequest makes its
// request for an account, and parseSuccess reads its success. reportsDuplicates is true if the operator responds to a
// repeated key with 409 instead of the first response (SMS).
type callProtocol struct {
	operation         string
	buildRequest      requestBuilder
	parseSuccess      successParser
	reportsDuplicates bool
}

// execute makes one call and classifies its result.
func (d *Driver) execute(ctx context.Context, call operator.Call, p callProtocol) operator.Result {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	x, retried, err := d.exchangeWithRetry(ctx, call, p.operation, p.buildRequest)
	if err != nil {
		d.credentials.recordUse(call.Operator, 0, false)
		return notApplied(fault.IntegrationRejected, err)
	}
	result := classifyExchange(x, p.parseSuccess)
	worked := result.Outcome == operator.Succeeded || result.Outcome == operator.Refused
	d.credentials.recordUse(call.Operator, x.version, worked)
	if result.DuplicateKey && !p.reportsDuplicates {
		result.DuplicateKey, result.OperatorReference = false, ""
	}
	result.HTTPStatus = x.status
	if retried {
		return outcomeAfterRetry(result)
	}
	return result
}

// exchangeWithRetry sends a request and returns the last exchange. retried is true if an earlier exchange may have
// reached the operator. An error means that nothing was sent, because there are no credentials with which the operation
// can be made.
func (d *Driver) exchangeWithRetry(
	ctx context.Context, call operator.Call, operation string, build requestBuilder,
) (x exchange, retried bool, err error) {
	target, err := d.credentials.findAccount(ctx, call.Operator, call.AccountID)
	if err == nil {
		err = target.checkServes(operation)
	}
	if err != nil {
		return exchange{}, false, err
	}
	defer func() { x.version = target.version }()
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
	target = refreshed
	return d.send(ctx, target, request), retried, nil
}

// canRetry reports whether a request that may have been applied may be repeated at once. The operator's row must
// declare repeats under the same key safe, and there must be time for the response (decision "idle-connections").
func (d *Driver) canRetry(ctx context.Context, call operator.Call) bool {
	row, known := operator.FindCapabilities(call.Operator)
	deadline, _ := ctx.Deadline()
	return known && row.ResendWindow > 0 && ctx.Err() == nil && deadline.Sub(d.now()) >= minRetryTime
}

// withDefaultTimeout adds the default timeout to a context without a deadline.
func withDefaultTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, set := ctx.Deadline(); set {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, defaultTimeout)
}
