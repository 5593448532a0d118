// Package mtn is the driver for the Collections product of the MTN MoMo Open API. It requests a payment, which the
// payer approves on the phone, and looks it up by the UUID under which it was requested.
//
// It keeps no state of a transaction. It sends a payment once, and a second time only if the API gateway in front of
// MTN refused the token. Its invariant: an outcome is Succeeded, Refused or NotApplied only if MTN's documented
// response, or the lack of a connection, proves it (docs/operators/mtn.md).
package mtn

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
)

// DriverName is the driver's name in the rows of the operator table.
const DriverName = "mtn"

const (
	tokenPath   = "/collection/token/"
	paymentPath = "/collection/v1_0/requesttopay"
)

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct {
	accounts *credentials.Reader
	client   *upstream.Client
	tokens   *upstream.Tokens
}

var (
	_ operator.Driver                = (*Driver)(nil)
	_ operator.StatusLookup          = (*Driver)(nil)
	_ operator.PaymentCallbackReader = (*Driver)(nil)
	_ operator.AccountDescriber      = (*Driver)(nil)
)

// New makes the driver. It neither fetches nor connects yet. This driver needs no clock.
func New(a *credentials.Reader, client *upstream.Client, tokens *upstream.Tokens, _ func() time.Time) *Driver {
	return &Driver{a, client, tokens}
}

// FindAccount implements operator.Driver.
func (d *Driver) FindAccount(ctx context.Context, platform, id string) (string, error) {
	account, err := d.findAccount(ctx, platform, id)
	return account.ID, err
}

// Charge implements operator.Driver. MTN MoMo has no charges.
func (d *Driver) Charge(context.Context, operator.ChargeCall) operator.Result {
	return upstream.NotOffered()
}

// SendSMS implements operator.Driver. MTN MoMo has no messages.
func (d *Driver) SendSMS(context.Context, operator.SMSCall) operator.Result {
	return upstream.NotOffered()
}

// findAccount returns an account with all fields of a payment. The error is a *fault.Fault.
func (d *Driver) findAccount(ctx context.Context, platform, id string) (credentials.Account, error) {
	account, err := d.accounts.Find(ctx, platform, id)
	if err == nil {
		err = checkAccount(account)
	}
	if err != nil {
		return credentials.Account{}, &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	return account, nil
}

// requestBuilder makes the request of an account, with its own headers; or returns why it cannot be made.
type requestBuilder func(account credentials.Account) (upstream.Request, *fault.Fault)

// exchange sends a request, and sends it once more after a 401 of the API gateway in front: MTN's application never saw
// that one. A fault means that nothing was applied.
func (d *Driver) exchange(
	ctx context.Context, call operator.Call, build requestBuilder,
) (upstream.Exchange, credentials.Account, *fault.Fault) {
	account, err := d.findAccount(ctx, call.Platform, call.AccountID)
	if err != nil {
		return upstream.Exchange{}, account, fault.FromError(err)
	}
	x, unsent := d.send(ctx, account, build)
	if unsent != nil || x.Status != http.StatusUnauthorized || !refusedInFront(x) {
		return x, account, unsent
	}
	if renewed, changed := d.accounts.RefreshAfterRefusal(ctx, account); changed && checkAccount(renewed) == nil {
		account = renewed
	}
	x, unsent = d.send(ctx, account, build)
	return x, account, unsent
}

// send makes one exchange with a token, and drops the token after a 401.
func (d *Driver) send(
	ctx context.Context, account credentials.Account, build requestBuilder,
) (upstream.Exchange, *fault.Fault) {
	request, unsent := build(account)
	if unsent != nil {
		return upstream.Exchange{}, unsent
	}
	user, subscription := account.Field(fieldAPIUser)+":"+account.Field(fieldAPIKey), account.Field(fieldSubscription)
	key := strings.Join([]string{account.BaseURL(), user, subscription}, "\n")
	var refused bool
	token, err := d.tokens.Get(ctx, key, func(ctx context.Context) (token string, life time.Duration, err error) {
		token, life, refused, err = upstream.ReadToken(d.client.Send(ctx, upstream.Request{
			Method: http.MethodPost, URL: account.BaseURL() + tokenPath, // without a body: Content-Length is 0
			Header: map[string]string{
				"Authorization":             "Basic " + base64.StdEncoding.EncodeToString([]byte(user)),
				"Ocp-Apim-Subscription-Key": subscription,
				"X-Target-Environment":      account.Field(fieldEnvironment),
			},
		}))
		return token, life, err
	})
	if err != nil {
		return upstream.Exchange{}, upstream.NoToken(refused, err).Fault
	}
	request.URL = account.BaseURL() + request.URL
	request.Header["Authorization"] = "Bearer " + token
	request.Header["Ocp-Apim-Subscription-Key"] = subscription
	request.Header["X-Target-Environment"] = account.Field(fieldEnvironment)
	x := d.client.Send(ctx, request)
	if x.Err == nil && x.Status == http.StatusUnauthorized {
		d.tokens.Drop(key, token)
	}
	return x, nil
}
