// Package token is the token endpoint: POST /token, the client credentials grant of OAuth 2.0 (RFC 6749, 4.4; decision
// "token-endpoint").
//
// It makes one strongly consistent read of the merchant's profile. It stores no token, because its tokens are signed;
// its only write counts the request against the rate of a merchant that has one. Its invariant: it issues a token only
// for a live client secret of an active merchant.
package token

import (
	"context"
	"errors"
	"net/http"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/strictjson"
)

// Operation is the token endpoint. TokenLifetime is the lifetime of an access token (ACCESS_TOKEN_LIFETIME).
type Operation struct {
	Store         merchant.Store
	RateLimiter   *limit.RateLimiter
	Keys          *keyring.RefreshingRing
	TokenLifetime time.Duration
	Now           func() time.Time
}

// Route returns the operation's route, as in template.yaml. "/token/" has the same route.
func (o *Operation) Route() apigw.Route {
	return apigw.Route{Method: "POST", Resource: "/token", Handle: o.Handle}
}

// tokenResponse is the body of a successful response (RFC 6749, 5.1).
type tokenResponse struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"` // seconds
}

// Handle responds with 200 and an access token, or with an error of RFC 6749 that also has the requestError of this
// API. It never returns an error, so that each failure has the form that OAuth clients expect.
func (o *Operation) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	params, refused := readTokenRequest(req)
	if refused != nil {
		return refused.response(req), nil
	}
	profile, refused := o.authenticateClient(ctx, req, params)
	if refused != nil {
		return refused.response(req), nil
	}
	if refused := params.checkGrant(); refused != nil {
		return refused.response(req), nil
	}
	key, err := o.Keys.SigningKey(ctx)
	switch {
	case errors.Is(err, keyring.ErrNoSigningKey):
		return unavailable(err).response(req), nil
	case err != nil:
		return serverError(err).response(req), nil
	}
	expires := o.Now().Add(o.TokenLifetime)
	response := tokenResponse{
		AccessToken: merchant.SignShortLivedToken(profile, key, expires),
		TokenType:   "Bearer",
		ExpiresIn:   max(int64(o.TokenLifetime/time.Second), 1),
	}
	req.LogLine.SetOutcome("issued")
	return apigw.Response{Status: http.StatusOK, Header: noStoreHeaders(), Body: strictjson.Marshal(response)}, nil
}

// authenticateClient returns the profile of the merchant to which the client secret belongs. The request then counts
// against the merchant's rate; one with a wrong secret does not, so that no other client uses it up.
func (o *Operation) authenticateClient(
	ctx context.Context, req *apigw.Request, params *tokenParams,
) (*merchant.Profile, *refusal) {
	if !params.hasCredentials {
		return nil, invalidClient(fault.MissingCredentials, logsafe.New("client authentication is required"))
	}
	if !merchant.IsWellFormedClientSecret(params.clientID, params.clientSecret) {
		return nil, authenticationFailed()
	}
	profile, err := o.Store.Profile(ctx, params.clientID)
	if err != nil {
		return nil, serverError(err)
	}
	if profile == nil || !profile.VerifyClientSecret(params.clientSecret, o.Now()) {
		return nil, authenticationFailed()
	}
	req.LogLine.SetMerchant(profile.Name)
	if !profile.Active() {
		return nil, merchantSuspended()
	}
	if err := operation.CheckRate(ctx, req, profile, o.RateLimiter); err != nil {
		return nil, rateLimited(err)
	}
	return profile, nil
}

// noStoreHeaders returns the headers that forbid caches to keep the response (RFC 6749, 5.1).
func noStoreHeaders() map[string]string {
	return map[string]string{"Cache-Control": "no-store", "Pragma": "no-cache"}
}
