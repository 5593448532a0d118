// Package operation is the pipeline that charge, pay and sms share: authenticate, reserve, call the operator, record
// the outcome.
//
// Each operation shows its five parts in one function of its own package; what is the same in all three is
// here. Its invariant: no request is sent to an operator without a reservation, and no outcome of a call is reported
// before it is stored. If it cannot be stored, the merchant gets 504 and retries.
package operation

import (
	"context"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/telemetry"
)

const (
	// leaseMargin is how long a lease outlasts its invocation, because clocks differ (decision "leases").
	leaseMargin = 5 * time.Second
	// storeMargin is the rest of the invocation after an operator call, to store its outcome and to respond.
	storeMargin = 5 * time.Second
)

// Pipeline has the dependencies of the steps. It has no state of its own and is safe for concurrent use.
type Pipeline struct {
	Merchants Authenticator
	Book      *ledger.Book
	Operators *operator.DriverDirectory
	// RateLimiter and DailyAmounts are used only for merchants that have a limit.
	RateLimiter  *limit.RateLimiter
	DailyAmounts *dailyamount.Counter
	// OperatorTimeout bounds one operator call. The invocation's deadline bounds it further.
	OperatorTimeout time.Duration
	// Circuits refuse new transactions of an account that does not respond; nil for none.
	Circuits *circuit.Circuits
	Now      func() time.Time
}

// ExpireAt returns when an entry that is reserved now expires; a retention of 0 keeps it without limit.
func (p *Pipeline) ExpireAt(retention time.Duration) time.Time {
	if retention <= 0 {
		return time.Time{}
	}
	return p.Now().Add(retention)
}

// Attempt is one request on its way through the steps of an operation. Each step fills in what the next ones need.
type Attempt struct {
	Request *apigw.Request
	Profile *merchant.Profile
	Body    *strictjson.Reader
	// Choice is the platform and the account of a new transaction.
	Choice Choice
	Key    IdempotencyKey
	// Parts are the parts of a charge that its entry stores; empty for other operations.
	Parts ChargeParts
	// Location is the URL at which the merchant can look the transaction up; "" for a payment.
	Location string
	// Entry is the transaction that the request describes.
	Entry *ledger.Entry
	// Stored is the entry that the ledger has under the key: this attempt's reservation with its outcome, or the entry
	// of an earlier request; nil before Reserve.
	Stored *ledger.Entry

	circuit circuit.Key   // of the account that the transaction is pinned to; set with a reservation
	probe   circuit.Probe // of that circuit, if it is half open; the zero value for none
}

// Unknown is the fault of an unknown outcome. It has the transaction's URL, so that the merchant can look it up
// (decision "charge-unknown"). Use it only after the reservation.
func (a *Attempt) Unknown(cause error) *fault.Fault {
	return &fault.Fault{Kind: fault.OutcomeUnknown, Location: a.Location, Cause: cause}
}

// IdempotencyKey is the key under which a request has an effect at most once. Part is the message part that carries it;
// faults name it.
type IdempotencyKey struct{ Value, Part string }

// ChargeParts are the message parts of what a charge's entry stores as the merchant sent it. Faults name them.
type ChargeParts struct{ Amount, Currency, Reference string }

// Choice is the platform and the account of a new transaction, or the refusal of a key without an entry.
type Choice struct {
	operator.Selection
	// Refusal is set if nothing serves the request now. A key that has an entry already gets its response.
	Refusal error
	// NotYet is set while nothing can be sent. It refuses a key that is new or released; nothing is written then.
	NotYet *fault.Fault
}

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

// partMCO names the country of a charge or an SMS.
const partMCO = "X-Operator-MCO"

// SelectOperator chooses the operator of a country for a charge or an SMS, which name none (decision "charge-country").
// It is the first in the profile's order that has a platform for it. The error is Forbidden if the merchant may not use
// the operation there.
func (p *Pipeline) SelectOperator(ctx context.Context, a *Attempt, operation string, country market.Country) error {
	if reason := a.Profile.ReasonNotAllowed(operation, country.Alpha2, ""); reason != nil {
		return fault.NotEntitled(reason)
	}
	if country.Alpha2 == "" {
		return fault.NotEntitled(logsafe.New("the profile has no country"))
	}
	routes, err := p.Operators.Routes(ctx)
	if err != nil {
		a.Choice.Refusal = err
		return nil
	}
	for _, name := range a.Profile.Operators {
		service := operator.Service{Operator: name, Country: country.Alpha2, Operation: operation}
		if selection, found := routes.Select(service); found {
			a.Choice.Selection = selection
			return nil
		}
	}
	var codes []string
	for _, c := range market.All() {
		if len(routes.Operators(a.Profile.Operators, c.Alpha2, operation)) > 0 {
			codes = append(codes, c.MCO)
		}
	}
	a.Choice.Refusal = fault.NotAllowed(partMCO, codes)
	if len(codes) == 0 {
		a.Choice.Refusal = fault.NotEntitled(
			logsafe.Errorf("no operator of the profile has a platform for %s", logsafe.Name(operation)))
	}
	return nil
}
