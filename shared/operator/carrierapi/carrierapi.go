// Package carrierapi is the driver for platforms with the specification's own protocol, the API of a mobile carrier. It
// sends the three operations, the status lookup and the payer's SMS to the base URL of the operator's credentials.
//
// It keeps no state of a transaction and sends each call once, with two exceptions under the same key. The first is a
// cut of a reused connection before any response, if the operator's row declares repeats safe. The second is a 401
// after which the credentials turn out to have changed. Its invariant: an outcome is Succeeded, Refused or NotApplied
// only if the response, or the lack of a connection, proves it (decision "outcomes").
package carrierapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
)

// minRetryTime is the shortest remaining time for a retry.
const minRetryTime = 2 * time.Second

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct {
	accounts *credentials.Reader
	client   *upstream.Client
	now      func() time.Time
}

// New makes the driver. accounts are the platforms' accounts. It neither fetches nor connects yet.
func New(accounts *credentials.Reader, client *upstream.Client, now func() time.Time) *Driver {
	return &Driver{accounts, client, now}
}

// AccountFields implements operator.AccountDescriber.
func (d *Driver) AccountFields() []operator.AccountField { return accountFields() }

// FindAccount implements operator.Driver.
func (d *Driver) FindAccount(ctx context.Context, platform, id string) (string, error) {
	found, err := d.accounts.Find(ctx, platform, id)
	if err == nil && operator.CheckToken(found.Field(fieldAccessToken)) != nil {
		err = logsafe.New("the operator's account has no usable access_token")
	}
	if err != nil {
		return "", &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	return found.ID, nil
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
func (d *Driver) execute(ctx context.Context, call operator.Call, p callProtocol) operator.PayResponse {
	sent, err := d.exchange(ctx, call, p)
	if err != nil {
		return operator.PayResponse{Result: upstream.NotApplied(fault.IntegrationRejected, err)}
	}
	response := classifyExchange(sent.Exchange, p.parseSuccess)
	result := &response.Result
	success := sent.Account.Field(fieldSuccess)
	switch {
	case result.Outcome == operator.Succeeded && success != "" && success != strconv.Itoa(sent.Status):
		err = logsafe.Errorf("the operator responded %d, and a success is %s", sent.Status, logsafe.Name(success))
		response = operator.PayResponse{Result: upstream.Unknown(err)}
	case namesOwnWord(sent.Account.Field(fieldHeaderPrefix), sent.Account.Field(fieldPathWord), result.Fault):
		*result = upstream.NotApplied(fault.IntegrationRejected, result.Fault.Cause)
	}
	worked := result.Outcome == operator.Succeeded || result.Outcome == operator.Refused
	d.accounts.RecordUse(call.Platform, sent.Account.Version, worked)
	if result.DuplicateKey && !p.reportsDuplicates {
		result.DuplicateKey, result.OperatorReference = false, ""
	}
	result.HTTPStatus = sent.Status
	if sent.retried {
		*result = outcomeAfterRetry(*result)
	}
	return response
}

// sentCall is the last exchange of a call. retried is true if an earlier one may have reached the operator.
type sentCall struct {
	upstream.Exchange
	retried bool
}

// exchange sends the request of a call. An error means that nothing was sent, because there are no credentials with
// which the operation can be made.
func (d *Driver) exchange(ctx context.Context, call operator.Call, p callProtocol) (sentCall, error) {
	ctx, cancel := upstream.WithDefaultTimeout(ctx)
	defer cancel()
	target, err := d.accounts.Find(ctx, call.Platform, call.AccountID)
	if err == nil {
		err = target.CheckUsable(accountFields(), p.operation, "")
	}
	var request upstream.Request
	if err == nil {
		request, err = p.buildRequest(target)
	}
	if err != nil {
		d.accounts.RecordUse(call.Platform, 0, false)
		return sentCall{}, err
	}
	sent := sentCall{Exchange: d.send(ctx, target, request)}
	if sent.ConnectionLost && d.canRetry(ctx, call) {
		sent.retried = true
		sent.Exchange = d.send(ctx, target, request)
	}
	if !unauthorized(sent.Exchange) {
		return sent, nil
	}
	if refreshed, changed := d.accounts.RefreshAfterRefusal(ctx, target); changed {
		if request, err = p.buildRequest(refreshed); err == nil {
			sent.Exchange = d.send(ctx, refreshed, request)
		}
	}
	return sent, nil
}

// requestBuilder makes the request for an account, whose URL is below its address. An error means that this account
// cannot make it.
type requestBuilder func(target credentials.Account) (upstream.Request, error)

func (d *Driver) send(ctx context.Context, target credentials.Account, r upstream.Request) upstream.Exchange {
	header := map[string]string{"Authorization": "Bearer " + target.Field(fieldAccessToken)}
	for name, value := range r.Header {
		header[headerName(target, name)] = value
	}
	r.URL, r.Header = target.BaseURL()+r.URL, header
	x := d.client.Send(ctx, r)
	x.Account = target
	return x
}

// unauthorized reports whether the operator refused the access token: a 401 with a requestError.
func unauthorized(x upstream.Exchange) bool {
	if x.Err != nil || x.Status != http.StatusUnauthorized {
		return false
	}
	_, isRequestError := requestError(x)
	return isRequestError
}

// canRetry reports whether a request that may have been applied may be repeated at once. The operator's row must
// declare repeats under the same key safe, and there must be time for the response (decision "idle-connections").
func (d *Driver) canRetry(ctx context.Context, call operator.Call) bool {
	row, known := operator.FindCapabilities(call.Platform)
	deadline, _ := ctx.Deadline()
	return known && row.ResendWindow > 0 && ctx.Err() == nil && deadline.Sub(d.now()) >= minRetryTime
}
