// Package operation is what charge, pay and sms have in common: who may come in, how a transaction is held before the
// operator is called, and how what came of the call is kept and told.
//
// Each operation's own package shows its seven steps in one function; this package holds the steps that are the same
// in all three. Its invariant: nothing is answered that is not stored, and nothing is sent that is not held.
package operation

import (
	"context"
	"errors"
	"slices"
	"time"

	"mobilegateway/shared/apigw"
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
	// leaseMargin is how long a reservation outlasts the invocation that made it, against clocks that differ
	// (decision "leases").
	leaseMargin = 5 * time.Second
	// storeMargin is what an operator call leaves of the invocation's time for storing its outcome and answering.
	storeMargin = 5 * time.Second
	// resendMargin is how much earlier than the operator forgets a key we stop to send it again: for the time that the send
	// itself takes, and for clocks that differ (decision "repeat-window").
	resendMargin = 10 * time.Minute
)

// Authenticator finds the merchant behind an Authorization header. Its faults are MissingCredentials, InvalidCredentials and
// Internal.
type Authenticator interface {
	Authenticate(ctx context.Context, authorization string) (*merchant.Profile, error)
}

// Book holds and settles transactions; *ledger.Book is the one that ships.
type Book interface {
	Reserve(ctx context.Context, e *ledger.Entry, resendWindow func(operator string) time.Duration) (*ledger.Entry, ledger.Verdict, error)
	StoreOutcome(ctx context.Context, reservation *ledger.Entry, s ledger.CallOutcome) (*ledger.Entry, error)
}

var _ Book = (*ledger.Book)(nil)

// Pipeline is where every operation's request passes.
type Pipeline struct {
	Merchants Authenticator
	Book      Book
	Operators *operator.DriverDirectory
	// RateLimiter and Amounts hold merchants to their limits; they are asked only for those that have one.
	RateLimiter  RateLimiter
	DailyAmounts limit.AmountLimiter
	// OperatorTimeout bounds one operator call; the invocation's deadline bounds it further.
	OperatorTimeout time.Duration
	Now             func() time.Time
}

// Authenticate finds the merchant of a request, and then whether the merchant may send another one now: Throttled with
// the time to wait. Two Authorization headers that differ are InvalidCredentials: nobody could say which one is meant.
func Authenticate(ctx context.Context, req *apigw.Request, merchants Authenticator, rate RateLimiter) (*merchant.Profile, error) {
	if req.HasConflictingHeader("Authorization") {
		return nil, fault.New(fault.InvalidCredentials)
	}
	profile, err := merchants.Authenticate(ctx, req.Header("Authorization"))
	if err != nil {
		return nil, err
	}
	req.LogLine.SetMerchant(profile.Name)
	if err := checkRate(ctx, req, profile, rate); err != nil {
		return nil, err
	}
	return profile, nil
}

// AuthenticateAndDecode authenticates the caller and decodes the body, in the order of refusals: MissingCredentials or InvalidCredentials,
// Throttled, UnsupportedMediaType, then the body's JSON.
func (d *Pipeline) AuthenticateAndDecode(ctx context.Context, req *apigw.Request) (*merchant.Profile, *strictjson.Reader, error) {
	profile, err := Authenticate(ctx, req, d.Merchants, d.RateLimiter)
	if err != nil {
		return nil, nil, err
	}
	if err := apigw.RequireJSON(req); err != nil {
		return nil, nil, err
	}
	doc, err := strictjson.Parse(req.Body)
	if err != nil {
		return nil, nil, err
	}
	return profile, doc, nil
}

// SelectOperator picks the operator that serves a country for a merchant, where the request names none (charge and SMS,
// decision "charge-country"). Forbidden where the merchant is not entitled to the operation there.
func (d *Pipeline) SelectOperator(profile *merchant.Profile, operation string, country market.Country) (operator.Capabilities, error) {
	capabilities, found := operator.FirstServing(profile.Operators, country.Alpha2)
	if !found || !profile.Allows(operation, country.Alpha2, capabilities.Operator) {
		return operator.Capabilities{}, fault.New(fault.Forbidden)
	}
	return capabilities, nil
}

// Reserve reserves the entry, or finds what is already there. Exactly one of its results is set: held, to go on and call
// the operator; or stored, whose answer is to be repeated; or an error. keyParameter is the message part that carries the
// key, for the errors that name it.
func (d *Pipeline) Reserve(ctx context.Context, req *apigw.Request, e *ledger.Entry, key, keyParameter string) (reservation, existing *ledger.Entry, err error) {
	e.LeaseUntil = req.Deadline.Add(leaseMargin)
	e.Account, err = d.operatorAccount(ctx, e.Operator)
	if err != nil {
		return nil, nil, fault.FromError(err)
	}
	entry, verdict, err := d.Book.Reserve(ctx, e, d.resendWindow)
	if err != nil {
		return nil, nil, fault.NewInternal(err)
	}
	if verdict == ledger.NewReservation || verdict == ledger.TakenOver {
		return entry, nil, nil
	}
	if entry.Fingerprint != e.Fingerprint {
		req.LogLine.Increment(telemetry.MismatchedRepeats)
	}
	switch verdict {
	case ledger.StoredResponse:
		req.LogLine.SetRepeated(true)
		return nil, entry, nil
	case ledger.InFlight:
		return nil, nil, &fault.Fault{Kind: fault.RequestInProgress, Part: keyParameter, Value: key}
	case ledger.StillUnknown:
		return nil, nil, fault.New(fault.OutcomeUnknown)
	default: // ledger.Taken
		return nil, entry, &fault.Fault{Kind: fault.DuplicateKey, Part: keyParameter, Value: key}
	}
}

// operatorAccount is the operator's account that a new transaction is pinned to.
func (d *Pipeline) operatorAccount(ctx context.Context, name string) (string, error) {
	driver, _, found := d.Operators.Driver(name)
	if !found {
		return "", errNoDriver
	}
	return driver.CurrentAccountID(ctx, name)
}

var errNoDriver = errors.New("no driver for the operator")

// resendWindow says for how long from its first send a transaction may be sent again at its pinned operator.
func (d *Pipeline) resendWindow(name string) time.Duration {
	capabilities, found := operator.FindCapabilities(name)
	if !found {
		return 0
	}
	return max(0, capabilities.IdempotencyWindow-resendMargin)
}

// CallOperator runs one operator call under the deadline that leaves time to store its outcome, and notes how long it took.
func (d *Pipeline) CallOperator(ctx context.Context, req *apigw.Request, reservation *ledger.Entry, send func(context.Context, operator.Driver) operator.Result) operator.Result {
	driver, _, found := d.Operators.Driver(reservation.Operator)
	if !found {
		return operator.Result{Outcome: operator.NotApplied, Fault: &fault.Fault{Kind: fault.IntegrationRejected, Cause: errNoDriver}}
	}
	start := d.Now()
	deadline := start.Add(d.OperatorTimeout)
	if latest := req.Deadline.Add(-storeMargin); latest.Before(deadline) {
		deadline = latest
	}
	callCtx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	result := send(callCtx, driver)
	req.LogLine.AddOperatorTime(d.Now().Sub(start))
	return result
}

// CallOutcomes is what the ledger keeps for each way a call can end; the state is filled in here. Refused's answer is the
// rendered refusal; Unknown's answer is empty where an unknown outcome is answered by 504.
type CallOutcomes struct {
	Done    ledger.CallOutcome
	Refused ledger.CallOutcome
	Unknown ledger.CallOutcome
}

// RecordOutcome stores what came of the call and gives back the entry whose answer is to be sent. The answer follows what the
// ledger holds afterwards, which is not always what this call saw. Faults: OutcomeUnknown, or the result's own where
// the call was not applied.
func (d *Pipeline) RecordOutcome(ctx context.Context, req *apigw.Request, reservation *ledger.Entry, result operator.Result, outcomes CallOutcomes) (*ledger.Entry, error) {
	updated, err := d.Book.StoreOutcome(ctx, reservation, outcomes.callOutcome(reservation, result))
	if err != nil {
		// What is not stored is not told: the reservation lapses into unknown, and the merchant's retry settles it.
		req.LogLine.Increment(telemetry.UnknownOutcomes)
		return nil, &fault.Fault{Kind: fault.OutcomeUnknown, Cause: err}
	}
	logOutcome(req.LogLine, updated, result)
	req.LogLine.Add(telemetry.StatusConflicts, max(0, len(updated.Conflicts)-len(reservation.Conflicts)))
	d.refundLimit(ctx, req, updated)
	switch {
	case updated.ResponseStatus != 0:
		return updated, nil
	case updated.State == ledger.Released && result.Fault != nil:
		return nil, result.Fault
	default:
		return nil, unknownOutcomeFault(result.Fault)
	}
}

// logOutcome writes the outcome into the request's line and counts it. The operator's 9009xx to us is an alarm of its own.
func logOutcome(line *telemetry.LogLine, updated *ledger.Entry, result operator.Result) {
	line.SetOutcome(string(updated.State))
	switch updated.State {
	case ledger.Unknown:
		line.Increment(telemetry.UnknownOutcomes)
	case ledger.Released:
		line.Increment(telemetry.NotAppliedCalls)
	case ledger.Refused:
		line.Increment(telemetry.OperatorRefusals)
	}
	if result.Fault != nil && result.Fault.Kind == fault.IntegrationRejected {
		line.Increment(telemetry.OperatorAuthFailures)
	}
	if result.Fault != nil {
		line.SetCause(result.Fault)
	}
}

// callOutcome maps an operator's outcome to what the ledger keeps. A final refusal is stored as it is answered, byte
// for byte (decision "charge-refusal"). Once an attempt was unknown, a later "not applied" proves nothing about it
// (decision "unknown-sticks").
func (o CallOutcomes) callOutcome(reservation *ledger.Entry, result operator.Result) ledger.CallOutcome {
	switch {
	case result.Outcome == operator.Succeeded:
		s := o.Done
		s.State, s.OperatorReference = ledger.Done, result.OperatorReference
		return s
	case result.Outcome == operator.Refused:
		response := oneapi.Render(result.Fault)
		s := o.Refused
		s.State, s.ResponseStatus, s.ResponseBody = ledger.Refused, response.Status, response.Body
		return s
	case result.Outcome == operator.NotApplied && !reservation.EverUnknown:
		return ledger.CallOutcome{State: ledger.Released}
	default:
		s := o.Unknown
		s.State = ledger.Unknown
		return s
	}
}

func unknownOutcomeFault(f *fault.Fault) error {
	unknown := fault.New(fault.OutcomeUnknown)
	if f != nil {
		unknown.Cause = f
	}
	return unknown
}

// StoredResponse makes the answer that an entry keeps. replayed marks it as a repeat of an earlier answer.
func StoredResponse(e *ledger.Entry, location string, replayed bool) apigw.Response {
	header := map[string]string{"Content-Type": "application/json"}
	if replayed {
		header["Idempotent-Replayed"] = "true"
	}
	if location != "" && e.State == ledger.Done {
		header["Location"] = location
	}
	return apigw.Response{Status: e.ResponseStatus, Header: header, Body: e.ResponseBody}
}

// RequireConstant checks a part whose one valid value the specification or the deployment fixes (decision "constants").
func RequireConstant(doc *strictjson.Reader, path, valid string) {
	RequireOneOf(doc, path, []string{valid})
}

// RequireOneOf reads a required part that has a known set of valid values: Missing where it is absent, NotAllowed for any
// other text. No length is too long to be told so: the body's limit bounds it.
func RequireOneOf(doc *strictjson.Reader, path string, valid []string) string {
	value := doc.Text(path, apigw.DefaultMaxBodyBytes)
	CheckOneOf(doc, path, value, valid)
	return value
}

// CheckOneOf records a fault where a value is not in the list; an empty value has been recorded already.
func CheckOneOf(doc *strictjson.Reader, part, value string, valid []string) {
	if value != "" && !slices.Contains(valid, value) {
		doc.RecordFault(notAllowedFault(part, valid))
	}
}

// LogRouting puts what an entry is routed to into the request's line.
func LogRouting(req *apigw.Request, e *ledger.Entry) {
	req.LogLine.SetOperator(e.Operator)
	req.LogLine.SetCountry(e.Country)
	req.LogLine.SetChannel(e.Channel)
}
