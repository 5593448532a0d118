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
	// settleReserve is what an operator call leaves of the invocation's time for storing its outcome and answering.
	settleReserve = 5 * time.Second
	// repeatMargin is how much earlier than the operator forgets a key we stop to send it again: for the time that the send
	// itself takes, and for clocks that differ (decision "repeat-window").
	repeatMargin = 10 * time.Minute
)

// Authenticator finds the merchant behind an Authorization header. Its faults are NoCredentials, BadCredentials and
// Internal.
type Authenticator interface {
	Authenticate(ctx context.Context, authorization string) (*merchant.Profile, error)
}

// Book holds and settles transactions; *ledger.Book is the one that ships.
type Book interface {
	Hold(ctx context.Context, e *ledger.Entry, repeatSafe func(operator string) time.Duration) (*ledger.Entry, ledger.Verdict, error)
	Settle(ctx context.Context, held *ledger.Entry, s ledger.Settlement) (*ledger.Entry, error)
}

var _ Book = (*ledger.Book)(nil)

// Desk is where every operation's request passes.
type Desk struct {
	Merchants Authenticator
	Book      Book
	Operators *operator.Directory
	// Rate and Amounts hold merchants to their limits; they are asked only for those that have one.
	Rate    Rate
	Amounts limit.Counter
	// OperatorTimeout bounds one operator call; the invocation's deadline bounds it further.
	OperatorTimeout time.Duration
	Now             func() time.Time
}

// Authenticate finds the merchant of a request, and then whether the merchant may send another one now: Throttled with
// the time to wait. Two Authorization headers that differ are BadCredentials: nobody could say which one is meant.
func Authenticate(ctx context.Context, req *apigw.Request, merchants Authenticator, rate Rate) (*merchant.Profile, error) {
	if req.HeaderRepeated("Authorization") {
		return nil, fault.Of(fault.BadCredentials)
	}
	profile, err := merchants.Authenticate(ctx, req.Header("Authorization"))
	if err != nil {
		return nil, err
	}
	req.Event.SetMerchant(profile.Name)
	if err := throttle(ctx, req, profile, rate); err != nil {
		return nil, err
	}
	return profile, nil
}

// Admit authenticates the caller and decodes the body, in the order of refusals: NoCredentials or BadCredentials,
// Throttled, MediaType, then the body's JSON.
func (d *Desk) Admit(ctx context.Context, req *apigw.Request) (*merchant.Profile, *strictjson.Reader, error) {
	profile, err := Authenticate(ctx, req, d.Merchants, d.Rate)
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

// Carrier picks the operator that serves a country for a merchant, where the request names none (charge and SMS,
// decision "charge-country"). Forbidden where the merchant is not entitled to the operation there.
func (d *Desk) Carrier(profile *merchant.Profile, operation string, country market.Country) (operator.Capabilities, error) {
	able, found := operator.For(profile.Operators, country.Alpha2)
	if !found || !profile.Allows(operation, country.Alpha2, able.Operator) {
		return operator.Capabilities{}, fault.Of(fault.Forbidden)
	}
	return able, nil
}

// Hold reserves the entry, or finds what is already there. Exactly one of its results is set: held, to go on and call
// the operator; or stored, whose answer is to be repeated; or an error. keyPart is the message part that carries the
// key, for the errors that name it.
func (d *Desk) Hold(ctx context.Context, req *apigw.Request, e *ledger.Entry, key, keyPart string) (held, stored *ledger.Entry, err error) {
	e.LeaseUntil = req.Deadline.Add(leaseMargin)
	e.Account, err = d.account(ctx, e.Operator)
	if err != nil {
		return nil, nil, fault.As(err)
	}
	entry, verdict, err := d.Book.Hold(ctx, e, d.repeatSafe)
	if err != nil {
		return nil, nil, fault.Because(err)
	}
	if verdict == ledger.Fresh || verdict == ledger.Retaken {
		return entry, nil, nil
	}
	if entry.Fingerprint != e.Fingerprint {
		req.Event.Count(telemetry.MismatchedReplays)
	}
	switch verdict {
	case ledger.Replay:
		req.Event.SetReplayed(true)
		return nil, entry, nil
	case ledger.Busy:
		return nil, nil, &fault.Fault{Kind: fault.InFlight, Part: keyPart, Value: key}
	case ledger.StillUnknown:
		return nil, nil, fault.Of(fault.OutcomeUnknown)
	default: // ledger.Taken
		return nil, entry, &fault.Fault{Kind: fault.Duplicate, Part: keyPart, Value: key}
	}
}

// account is the operator's account that a new transaction is pinned to.
func (d *Desk) account(ctx context.Context, name string) (string, error) {
	driver, _, found := d.Operators.Driver(name)
	if !found {
		return "", errNoDriver
	}
	return driver.Account(ctx, name)
}

var errNoDriver = errors.New("no driver for the operator")

// repeatSafe says for how long from its first send a transaction may be sent again at its pinned operator.
func (d *Desk) repeatSafe(name string) time.Duration {
	able, found := operator.Find(name)
	if !found {
		return 0
	}
	return max(0, able.RepeatSafeFor-repeatMargin)
}

// Call runs one operator call under the deadline that leaves time to store its outcome, and notes how long it took.
func (d *Desk) Call(ctx context.Context, req *apigw.Request, held *ledger.Entry, send func(context.Context, operator.Driver) operator.Result) operator.Result {
	driver, _, found := d.Operators.Driver(held.Operator)
	if !found {
		return operator.Result{Outcome: operator.Released, Fault: &fault.Fault{Kind: fault.OperatorRefusedUs, Cause: errNoDriver}}
	}
	start := d.Now()
	deadline := start.Add(d.OperatorTimeout)
	if latest := req.Deadline.Add(-settleReserve); latest.Before(deadline) {
		deadline = latest
	}
	callCtx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	result := send(callCtx, driver)
	req.Event.AddUpstream(d.Now().Sub(start))
	return result
}

// Outcomes is what the ledger keeps for each way a call can end; the state is filled in here. Refused's answer is the
// rendered refusal; Unknown's answer is empty where an unknown outcome is answered by 504.
type Outcomes struct {
	Done    ledger.Settlement
	Refused ledger.Settlement
	Unknown ledger.Settlement
}

// Settle stores what came of the call and gives back the entry whose answer is to be sent. The answer follows what the
// ledger holds afterwards, which is not always what this call saw. Faults: OutcomeUnknown, or the result's own where
// the call was not applied.
func (d *Desk) Settle(ctx context.Context, req *apigw.Request, held *ledger.Entry, result operator.Result, outcomes Outcomes) (*ledger.Entry, error) {
	settled, err := d.Book.Settle(ctx, held, outcomes.settlement(held, result))
	if err != nil {
		// What is not stored is not told: the reservation lapses into unknown, and the merchant's retry settles it.
		req.Event.Count(telemetry.Unknowns)
		return nil, &fault.Fault{Kind: fault.OutcomeUnknown, Cause: err}
	}
	note(req.Event, settled, result)
	req.Event.Add(telemetry.Conflicts, max(0, len(settled.Conflicts)-len(held.Conflicts)))
	d.giveBack(ctx, req, settled)
	switch {
	case settled.AnswerStatus != 0:
		return settled, nil
	case settled.State == ledger.Released && result.Fault != nil:
		return nil, result.Fault
	default:
		return nil, unknownBecause(result.Fault)
	}
}

// note writes the outcome into the request's line and counts it. The operator's 9009xx to us is an alarm of its own.
func note(line *telemetry.Event, settled *ledger.Entry, result operator.Result) {
	line.SetOutcome(string(settled.State))
	switch settled.State {
	case ledger.Unknown:
		line.Count(telemetry.Unknowns)
	case ledger.Released:
		line.Count(telemetry.Released)
	case ledger.Refused:
		line.Count(telemetry.Refused)
	}
	if result.Fault != nil && result.Fault.Kind == fault.OperatorRefusedUs {
		line.Count(telemetry.OperatorAuthFailures)
	}
	if result.Fault != nil {
		line.SetCause(result.Fault)
	}
}

// settlement maps an operator's outcome to what the ledger keeps. A final refusal is stored as it is answered, byte
// for byte (decision "charge-refusal"). Once an attempt was unknown, a later "not applied" proves nothing about it
// (decision "unknown-sticks").
func (o Outcomes) settlement(held *ledger.Entry, result operator.Result) ledger.Settlement {
	switch {
	case result.Outcome == operator.Done:
		s := o.Done
		s.State, s.OperatorReference = ledger.Done, result.OperatorReference
		return s
	case result.Outcome == operator.Refused:
		answer := oneapi.Render(result.Fault)
		s := o.Refused
		s.State, s.AnswerStatus, s.AnswerBody = ledger.Refused, answer.Status, answer.Body
		return s
	case result.Outcome == operator.Released && !held.EverUnknown:
		return ledger.Settlement{State: ledger.Released}
	default:
		s := o.Unknown
		s.State = ledger.Unknown
		return s
	}
}

func unknownBecause(f *fault.Fault) error {
	unknown := fault.Of(fault.OutcomeUnknown)
	if f != nil {
		unknown.Cause = f
	}
	return unknown
}

// Stored makes the answer that an entry keeps. replayed marks it as a repeat of an earlier answer.
func Stored(e *ledger.Entry, location string, replayed bool) apigw.Response {
	header := map[string]string{"Content-Type": "application/json"}
	if replayed {
		header["Idempotent-Replayed"] = "true"
	}
	if location != "" && e.State == ledger.Done {
		header["Location"] = location
	}
	return apigw.Response{Status: e.AnswerStatus, Header: header, Body: e.AnswerBody}
}

// Constant checks a part whose one valid value the specification or the deployment fixes (decision "constants").
func Constant(doc *strictjson.Reader, path, valid string) { Choice(doc, path, []string{valid}) }

// Choice reads a required part that has a known set of valid values: Missing where it is absent, NotAllowed for any
// other text. No length is too long to be told so: the body's limit bounds it.
func Choice(doc *strictjson.Reader, path string, valid []string) string {
	value := doc.Text(path, apigw.DefaultMaxBody)
	OneOf(doc, path, value, valid)
	return value
}

// OneOf records a fault where a value is not in the list; an empty value has been recorded already.
func OneOf(doc *strictjson.Reader, part, value string, valid []string) {
	if value != "" && !slices.Contains(valid, value) {
		doc.Fail(notAllowed(part, valid))
	}
}

// Note puts what an entry is routed to into the request's line.
func Note(req *apigw.Request, e *ledger.Entry) {
	req.Event.SetOperator(e.Operator)
	req.Event.SetCountry(e.Country)
	req.Event.SetChannel(e.Channel)
}
