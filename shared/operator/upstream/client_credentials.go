package upstream

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
)

// ClientCredentials are exchanged for an access token by Basic authorization (RFC 6749, section 4.4).
type ClientCredentials struct {
	// Path is the path of the exchange below the account's address.
	Path string
	// ID and Secret are the fields of the account with the client's id and secret.
	ID, Secret string
	// HasNoForm is true for a platform that takes no body in an exchange.
	HasNoForm bool
	// RefusalError is the field error of a 500 that refuses the credentials; "" for none.
	RefusalError string
	// RenewBefore is how long before its end a token is renewed, at most half of its life; 0 for 15 seconds.
	RenewBefore time.Duration
}

// Limits of a token. No platform documents a longer life.
const (
	maxTokenLength   = 8 << 10
	maxTokenLifetime = 90 * 24 * time.Hour
)

// errTokenRefused is the error of an exchange in which the platform refused the account's credentials.
var errTokenRefused = logsafe.Errorf("%w in the token exchange", operator.ErrCredentialsRefused)

// token returns an access token of an account. A fault means that there is none: IntegrationRejected if the platform
// refused the credentials, else OperatorUnavailable.
func (b *Base) token(ctx context.Context, key string, account credentials.Account) (string, *fault.Fault) {
	client := []byte(account.Field(b.Credentials.ID) + ":" + account.Field(b.Credentials.Secret))
	request := Request{Method: http.MethodPost, URL: account.BaseURL() + b.Credentials.Path}
	form := map[string]string{}
	if !b.Credentials.HasNoForm {
		request.Body = []byte("grant_type=client_credentials")
		form["Content-Type"] = "application/x-www-form-urlencoded"
	}
	request.Header = b.header(account, "Basic "+base64.StdEncoding.EncodeToString(client), form)
	margin := cmp.Or(b.Credentials.RenewBefore, defaultMargin)
	token, err := b.Tokens.Get(ctx, key, margin, func(ctx context.Context) (string, time.Duration, error) {
		return readToken(b.Client.Send(ctx, request), b.Credentials.RefusalError)
	})
	switch {
	case err == nil:
		return token, nil
	case errors.Is(err, errTokenRefused):
		return "", &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	default:
		return "", &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
}

// readToken reads the response to a token exchange of OAuth 2: access_token, and expires_in as a number or a text of
// seconds. Without expires_in the token serves one call. The error is errTokenRefused after 400, 401 and 403, and after
// 500 with refusalError. Any other body, such as HTML with 200, is an error too. Errors have no text of the response.
func readToken(x Exchange, refusalError string) (token string, lifetime time.Duration, err error) {
	if x.Err != nil {
		return "", 0, logsafe.Errorf("the token exchange failed: %w", x.Err)
	}
	if response, isDocument := x.Document(); isDocument && x.IsSuccess() {
		token, _ = response.OptionalText("access_token", maxTokenLength)
		seconds, _ := strconv.Atoi(TextOrNumber(response, "expires_in"))
		lifetime = time.Duration(max(0, min(seconds, int(maxTokenLifetime/time.Second)))) * time.Second
	}
	switch {
	case operator.CheckToken(token) == nil:
		return token, lifetime, nil
	case x.Status == http.StatusBadRequest, x.IsRefused(),
		x.Status == http.StatusInternalServerError && refusalError != "" && x.ErrorCode("error") == refusalError:
		return "", 0, errTokenRefused
	}
	return "", 0, logsafe.Errorf("the token exchange responded %d without a token", x.Status)
}

// CheckBasicName refuses a name that Basic authorization cannot carry, such as one with a colon.
func CheckBasicName(text string) error {
	if strings.Contains(text, ":") {
		return logsafe.New("has a colon")
	}
	return operator.CheckHeaderText(text)
}
