// Package orangecm is the driver for Orange Money Cameroon (the core API "omcoreapis"): payments that the payer
// approves on the phone.
//
// A payment has two steps: mp/init returns a payToken, and mp/pay uses it. The platform accepts one payment for each
// token, and the caller stores the token before mp/pay. So no repeat can pay twice, and after a lost
// response the lookup finds the payment. Its invariant: mp/pay is sent again only after the API gateway has refused the
// access token.
package orangecm

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
)

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct{ upstream.Base }

// New makes the driver. It neither fetches nor connects yet.
func New(accounts *credentials.Reader, client *upstream.Client, tokens *upstream.Tokens) *Driver {
	return &Driver{upstream.Base{
		Accounts: accounts, Client: client, Tokens: tokens, Operation: operator.AccountPay, Fields: accountFields(),
		Credentials: upstream.ClientCredentials{
			Path: "/token", ID: "consumer_key", Secret: "consumer_secret", RenewBefore: 5 * time.Minute,
		},
	}}
}

func accountFields() []operator.AccountField {
	pay := []string{operator.AccountPay}
	return []operator.AccountField{
		{Path: "base_url", Identity: true, NeededBy: pay, Check: operator.CheckBaseURL},
		{Path: "consumer_key", NeededBy: pay, Check: upstream.CheckBasicName},
		{Path: "consumer_secret", Secret: true, NeededBy: pay, Check: operator.CheckHeaderText},
		{Path: "api_user", NeededBy: pay, Check: upstream.CheckBasicName},
		{Path: "api_password", Secret: true, NeededBy: pay, Check: operator.CheckHeaderText},
		{Path: "channel_msisdn", Identity: true, NeededBy: pay, Check: checkDigits(9)},
		{Path: "pin", Secret: true, NeededBy: pay, Check: checkDigits(4)},
	}
}

func checkDigits(count int) func(string) error {
	return func(text string) error {
		if len(text) != count || !ascii.IsDigits(text) {
			return logsafe.Errorf("is not %d digits", count)
		}
		return nil
	}
}

// newRequest makes a request of the API.
func newRequest(account credentials.Account, method, path string) upstream.Request {
	user := account.Field("api_user") + ":" + account.Field("api_password")
	header := map[string]string{"X-AUTH-TOKEN": base64.StdEncoding.EncodeToString([]byte(user))}
	return upstream.Request{Method: method, URL: "/omcoreapis/1.0.2/mp/" + path, Header: header}
}

// Prepare implements operator.Preparer: it gets a payToken. A request that Pay could not send is refused before that.
func (d *Driver) Prepare(ctx context.Context, call operator.PayCall) (string, operator.Result) {
	x, unsent := d.Send(ctx, call.Call, func(account credentials.Account) (upstream.Request, *fault.Fault) {
		_, invalid := newPayRequest(call)
		return newRequest(account, http.MethodPost, "init"), invalid
	}, upstream.Exchange.IsUnauthorized)
	if unsent != nil {
		return "", upstream.NotSent(unsent)
	}
	if doc, isDocument := x.Document(); isDocument && x.IsSuccess() {
		if payToken := upstream.Text(doc, "data.payToken"); isPayToken(payToken) {
			return payToken, operator.Result{Outcome: operator.Succeeded, HTTPStatus: x.Status}
		}
	}
	kind := fault.OperatorUnavailable
	if x.IsRefused() {
		kind = fault.IntegrationRejected
	}
	cause := logsafe.Errorf("mp/init responded %d without a payToken", x.Status)
	result := upstream.NotApplied(kind, errors.Join(cause, x.Err))
	result.HTTPStatus = x.Status
	return "", result
}

// isPayToken reports whether a text can be a payToken: at most 64 letters, digits, "-" and "_". It is safe in a path.
func isPayToken(text string) bool { return len(text) <= 64 && upstream.IsIdentifier(text) }
