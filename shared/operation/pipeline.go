// Package operation is the pipeline that charge, pay and sms share: authenticate, reserve, call the operator, record
// the outcome.
//
// Each operation shows its seven steps in one function of its own package; the steps that are the same in all three are
// here. Its invariant: no request is sent to an operator without a reservation, and no outcome of a call is reported
// before it is stored. If it cannot be stored, the merchant gets 504 and retries.
package operation

import (
	"cmp"
	"context"
	"errors"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/oneapi"
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

	circuit circuit.Key   // that lets the transaction pass
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
	if reason := a.Profile.ReasonNotAllowed(operation, country.Alpha2, ""); reason != "" {
		return fault.NotEntitled(reason)
	}
	if country.Alpha2 == "" {
		return fault.NotEntitled("the profile has no country")
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
		a.Choice.Refusal = fault.NotEntitled("no operator of the profile has a platform for " + operation)
	}
	return nil
}

// CheckFunc returns why the driver's platform does not take a request. common is filled in from the new entry.
type CheckFunc func(ctx context.Context, driver operator.Driver, common operator.Call) *fault.Fault

// Reserve fills in the entry's merchant, lease and account, and reserves it, then the referenceCode of a charge. It
// sets a.Stored, and returns whether that is our reservation: then call the operator, else repeat the stored response.
// RequestInProgress, OutcomeUnknown and DuplicateKey set a.Stored too. check, if any, refuses before anything is
// stored. That, a choice that refuses the request and an account that cannot be used refuse only a key without an entry
// (decision "routes").
func (p *Pipeline) Reserve(ctx context.Context, a *Attempt, check CheckFunc) (reserved bool, err error) {
	line, e := a.Request.LogLine, a.Entry
	line.SetTransactionKey(a.Key.Value)
	e.Route.Operator = cmp.Or(e.Route.Operator, a.Choice.Operator)
	line.SetRouting(e.Route.Operator, e.Route.Country, e.Request.Channel)
	e.Merchant = ledger.Merchant{ID: a.Profile.ID, Name: a.Profile.Name, DayShard: a.Profile.DayShard(e.Key)}
	_, e.Amount.CountsDaily = a.Profile.DailyAmounts[e.Amount.Currency]
	e.LeaseUntil = a.Request.Deadline.Add(leaseMargin)
	refusal := a.Choice.Refusal
	if refusal == nil {
		refusal = p.pin(ctx, a, check)
	}
	book := p.bookOf(a)
	var reserve reserveFunc
	switch {
	case a.Choice.NotYet != nil:
		reserve, refusal = book.FindExisting, a.Choice.NotYet
	case refusal != nil:
		reserve = book.ReserveExisting
	default:
		reserve, refusal = p.reserveByCircuit(a, book)
	}
	stored, verdict, err := reserve(ctx, e, p.resendWindow)
	if isOpen := errors.Is(err, errCircuitOpen); isOpen {
		stored, refusal = nil, err
	} else if err != nil {
		return false, fault.NewInternal(err)
	}
	if stored == nil {
		refused := fault.FromError(refusal)
		countOwnFault(line, refused)
		if refused.Reason == fault.ReasonCircuitOpen {
			line.Increment(telemetry.CircuitRefusals)
		}
		return false, refused
	}
	a.Stored = stored
	if verdict == ledger.NewReservation || verdict == ledger.TakenOver {
		err := p.bindReference(ctx, a)
		return err == nil, err
	}
	if stored.Request.Fingerprint != e.Request.Fingerprint {
		line.Increment(telemetry.MismatchedRepeats)
	}
	switch verdict {
	case ledger.StoredResponse:
		line.SetRepeated(true)
		return false, nil
	case ledger.InFlight:
		return false, &fault.Fault{Kind: fault.RequestInProgress, Part: a.Key.Part, Value: a.Key.Value}
	case ledger.StillUnknown:
		return false, a.stillUnknown()
	default: // ledger.KeyTaken
		return false, &fault.Fault{Kind: fault.DuplicateKey, Part: a.Key.Part, Value: a.Key.Value}
	}
}

// bindReference binds the referenceCode of a reserved charge. If another charge owns it, ours is released: none of our
// attempts can have been sent, because the reference is always bound before the call (decision "charge-reference"). If
// the store failed, an earlier attempt may have been sent: the charge stays unknown (decision "unknown-sticks").
func (p *Pipeline) bindReference(ctx context.Context, a *Attempt) error {
	if a.Stored.Kind != ledger.Charge {
		return nil
	}
	owner, claimErr := p.Book.BindReference(ctx, a.Stored)
	if claimErr != nil {
		failed, neverSent := fault.NewInternal(claimErr), !a.Stored.EverUnknown
		_, err := p.release(ctx, a.Stored, "reference-store", failed, neverSent)
		if !neverSent {
			return a.Unknown(errors.Join(claimErr, err))
		}
		return fault.NewInternal(errors.Join(claimErr, err))
	}
	if owner == a.Stored.ID {
		return nil
	}
	taken := &fault.Fault{Kind: fault.DuplicateKey, Part: a.Parts.Reference, Value: a.Entry.Request.ReferenceCode}
	if _, err := p.release(ctx, a.Stored, "reference-taken", taken, true); err != nil {
		return fault.NewInternal(err)
	}
	return taken
}

// pin sets what a new transaction is pinned to. An error means that the account or the platform cannot serve it.
func (p *Pipeline) pin(ctx context.Context, a *Attempt, check CheckFunc) error {
	driver, _, found := p.Operators.Driver(a.Choice.Platform)
	if !found {
		return errNoDriver
	}
	pin := operator.Pin{Platform: a.Choice.Platform}
	if a.Choice.Account != "" {
		pin = operator.ParsePin(a.Choice.Account, a.Choice.Operator)
	}
	account, err := driver.FindAccount(ctx, pin.Platform, pin.Account)
	a.Entry.Route.Account = cmp.Or(a.Choice.Account, account)
	if err != nil || check == nil {
		return err
	}
	if refused := check(ctx, driver, operator.NewCall(a.Entry)); refused != nil {
		return refused
	}
	return nil
}

var errNoDriver = errors.New("the operator has no driver")

// resendWindow is how long after its first send a transaction may be sent again to its platform.
func (p *Pipeline) resendWindow(e *ledger.Entry) time.Duration {
	if phase, _ := p.Circuits.Phase(circuitOf(e)); phase == circuit.Open || phase == circuit.HalfOpen {
		return 0 // the entry may be pinned to another account than that of a new key
	}
	return operator.CapabilitiesOf(e).SafeResendWindow()
}

// ReserveDailyAmount counts a reservation in the merchant's day, before the operator is called. After a nil
// error the caller continues. After any other error this attempt sends nothing (decision "merchant-limits"):
//
//   - DailyLimitExceeded: the amount does not fit, and the reservation is released. A key under which nothing was ever
//     sent binds no body.
//   - OperatorUnavailable: the table of limits does not respond, and the reservation is released.
//   - OutcomeUnknown: an earlier attempt may have been applied (decision "unknown-sticks").
//   - Internal: the refusal could not be stored.
func (p *Pipeline) ReserveDailyAmount(ctx context.Context, a *Attempt) error {
	reserveErr := p.DailyAmounts.Reserve(ctx, a.Profile, a.Stored)
	if reserveErr == nil {
		return nil
	}
	line := a.Request.LogLine
	if overLimit, isOver := errors.AsType[*dailyamount.OverLimitError](reserveErr); isOver {
		refusal := &fault.Fault{
			Kind: fault.DailyLimitExceeded, Part: a.Stored.Amount.Currency,
			Value: overLimit.Remaining,
		}
		updated, err := p.release(ctx, a.Stored, "daily-amount", refusal, true)
		switch {
		case err != nil:
			return fault.NewInternal(err)
		case updated.State != ledger.Released: // a success was claimed in the meantime, or a successor is at work
			return a.Unknown(nil)
		}
		line.Increment(telemetry.DailyLimitRefusals)
		return refusal
	}
	line.Increment(telemetry.LimitStoreFailures)
	refusal := &fault.Fault{Kind: fault.OperatorUnavailable, Cause: reserveErr}
	updated, err := p.release(ctx, a.Stored, "limit-store", refusal, false)
	if err != nil || updated.State != ledger.Released {
		return a.Unknown(errors.Join(reserveErr, err))
	}
	p.refundDailyAmount(ctx, line, a.Stored, updated)
	return refusal
}

// release releases a reservation before the operator was called, with the fault that the merchant gets, and returns the
// entry as stored. unbindBody is for a key under which nothing was ever sent (ledger.CallOutcome).
func (p *Pipeline) release(
	ctx context.Context, reservation *ledger.Entry, reason string, refusal *fault.Fault, unbindBody bool,
) (*ledger.Entry, error) {
	return p.Book.StoreOutcome(ctx, reservation, ledger.ReleaseUncalled, ledger.CallOutcome{
		State: ledger.Released, UnbindBody: unbindBody, Call: ledger.CallResult{
			Outcome: ledger.CallNotSent, Reason: reason, Response: oneapi.Render(refusal).Status,
		},
	})
}
