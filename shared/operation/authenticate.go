package operation

import (
	"context"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/telemetry"
)

// Authenticator finds the merchant of an Authorization header. Its faults are MissingCredentials, InvalidCredentials
// and Internal.
type Authenticator interface {
	Authenticate(ctx context.Context, authorization string) (*merchant.Profile, error)
}

// Authenticate finds the merchant of a request and checks the merchant's rate. It returns RateLimited with the time to
// wait if the merchant is over it. Two different Authorization headers are InvalidCredentials, because the intended
// credential is ambiguous.
func Authenticate(
	ctx context.Context, req *apigw.Request, merchants Authenticator, rate *limit.RateLimiter,
) (*merchant.Profile, error) {
	if req.HasConflictingHeader("Authorization") {
		return nil, fault.New(fault.InvalidCredentials)
	}
	profile, err := merchants.Authenticate(ctx, req.Header("Authorization"))
	if err != nil {
		return nil, err
	}
	req.LogLine.SetMerchant(profile.Name)
	if err := CheckRate(ctx, req, profile, rate); err != nil {
		return nil, err
	}
	return profile, nil
}

// CheckRate returns RateLimited for a request over its merchant's rate. Call it only after the credentials have
// matched, so that no other client uses up the rate. A request is admitted if the table of limits does not respond:
// this limit protects capacity, and the API has another one in front of it (decision "merchant-limits").
func CheckRate(ctx context.Context, req *apigw.Request, profile *merchant.Profile, rate *limit.RateLimiter) error {
	perSecond, burst, limited := profile.RateLimit()
	if !limited {
		return nil
	}
	wait, err := rate.Take(ctx, profile.ID, perSecond, burst)
	if err != nil {
		req.LogLine.Increment(telemetry.LimitStoreFailures)
		req.LogLine.SetCause(err)
		return nil
	}
	if wait <= 0 {
		return nil
	}
	req.LogLine.Increment(telemetry.RateLimitedRequests)
	return &fault.Fault{Kind: fault.RateLimited, RetryAfter: int((wait + time.Second - 1) / time.Second)}
}

// AuthenticateAndReadBody authenticates the merchant and reads the JSON body. It checks in the order of refusals:
// credentials, rate, media type, JSON.
func (p *Pipeline) AuthenticateAndReadBody(ctx context.Context, req *apigw.Request) (*Attempt, error) {
	profile, err := Authenticate(ctx, req, p.Merchants, p.RateLimiter)
	if err != nil {
		return nil, err
	}
	if err := apigw.RequireJSON(req); err != nil {
		return nil, err
	}
	doc, err := strictjson.Parse(req.Body)
	if err != nil {
		return nil, err
	}
	return &Attempt{Request: req, Profile: profile, Body: doc}, nil
}
