package upstream

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
)

// TokenAPI sends the requests of a driver whose platform exchanges client credentials for access tokens (RFC 6749,
// section 4.4).
type TokenAPI struct {
	Accounts *credentials.Reader
	Client   *Client
	Tokens   *Tokens
	// Operation is the driver's only operation. An account is usable if all its Fields for the operation are.
	Operation string
	Fields    []operator.AccountField
	// ExchangePath is the path of the exchange below the account's address. ClientFields are the fields of the client's
	// id and secret.
	ExchangePath string
	ClientFields [2]string
}

// TokenRequest is a request of a TokenAPI. Path is below the account's address. IsUnprocessed reports of a 401 that the
// platform certainly did not process the request; nil for a request that may always be sent again.
type TokenRequest struct {
	Request
	Path          string
	IsUnprocessed func(Exchange) bool
}

// FindAccount returns a usable account: id, or the current one for "". The error is a *fault.Fault of kind
// IntegrationRejected, and names the fields that cannot be used.
func (a *TokenAPI) FindAccount(ctx context.Context, platform, id string) (credentials.Account, error) {
	found, err := a.Accounts.Find(ctx, platform, id)
	if err == nil {
		if unusable := operator.UnusableFields(a.Fields, a.Operation, found.Field); unusable != nil {
			err = fmt.Errorf("the operator's account has no usable %s", strings.Join(unusable, ", "))
		}
	}
	if err != nil {
		return credentials.Account{}, &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	return found, nil
}

// Send makes the request of an account, and sends it with a token. After a 401 it drops the token. It then sends an
// unprocessed request once more with a new one. A result with a fault means that nothing was sent: the account or its
// token cannot be used, or build returned the fault.
func (a *TokenAPI) Send(
	ctx context.Context, call operator.Call, build func(credentials.Account) (TokenRequest, *fault.Fault),
) (Exchange, operator.Result) {
	account, err := a.FindAccount(ctx, call.Platform, call.AccountID)
	if err != nil {
		a.Accounts.RecordUse(call.Platform, 0, false)
		return Exchange{}, operator.Result{Outcome: operator.NotApplied, Fault: fault.FromError(err)}
	}
	request, invalid := build(account)
	if invalid != nil {
		return Exchange{}, operator.Result{Outcome: operator.NotApplied, Fault: invalid}
	}
	request.URL = account.BaseURL() + request.Path
	x, err := a.sendOnce(ctx, account, request.Request)
	isRefused := err == nil && x.Err == nil && x.Status == http.StatusUnauthorized
	if isRefused && (request.IsUnprocessed == nil || request.IsUnprocessed(x)) {
		if again, err := a.sendOnce(ctx, account, request.Request); err == nil {
			x = again
		}
	}
	a.Accounts.RecordUse(call.Platform, account.Version, err == nil && x.IsSuccess())
	if err != nil {
		return x, NoToken(errors.Is(err, errTokenRefused), err)
	}
	return x, operator.Result{}
}

func (a *TokenAPI) sendOnce(ctx context.Context, account credentials.Account, r Request) (Exchange, error) {
	key := fmt.Sprintf("%s/%s/%d", account.Platform, account.ID, account.Version)
	token, err := a.Tokens.Get(ctx, key, func(ctx context.Context) (string, time.Duration, error) {
		return a.exchange(ctx, account)
	})
	if err != nil {
		return Exchange{}, err
	}
	header := map[string]string{"Authorization": "Bearer " + token}
	maps.Copy(header, r.Header)
	r.Header = header
	x := a.Client.Send(ctx, r)
	if x.Status == http.StatusUnauthorized {
		a.Tokens.Drop(key, token)
	}
	return x, nil
}

// errTokenRefused is the error of an exchange in which the platform refused the account's credentials.
var errTokenRefused = errors.New("the platform refused the credentials of the token exchange")

// exchange gets a token, with the rules of ReadToken. Its error is errTokenRefused after 400, 401 and 403.
func (a *TokenAPI) exchange(ctx context.Context, account credentials.Account) (string, time.Duration, error) {
	client := account.Field(a.ClientFields[0]) + ":" + account.Field(a.ClientFields[1])
	x := a.Client.Send(ctx, Request{
		Method: http.MethodPost, URL: account.BaseURL() + a.ExchangePath, Body: []byte("grant_type=client_credentials"),
		Header: map[string]string{
			"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(client)),
			"Content-Type":  "application/x-www-form-urlencoded",
		},
	})
	token, lifetime, isRefused, err := ReadToken(x)
	if isRefused || err != nil && x.Status == http.StatusBadRequest {
		err = errTokenRefused
	}
	return token, lifetime, err
}

// CheckBasicName refuses a name that Basic authorization cannot carry, such as one with a colon.
func CheckBasicName(text string) error {
	if strings.Contains(text, ":") {
		return errors.New("has a colon")
	}
	return operator.CheckHeaderText(text)
}
