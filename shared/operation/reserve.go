package operation

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
)

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
	if claimErr == nil && owner == a.Stored.ID {
		return nil
	}
	reason, neverSent := "reference-taken", true
	refusal := &fault.Fault{Kind: fault.DuplicateKey, Part: a.Parts.Reference, Value: a.Entry.Request.ReferenceCode}
	if claimErr != nil {
		reason, neverSent, refusal = "reference-store", !a.Stored.EverUnknown, fault.NewInternal(claimErr)
	}
	_, err := p.release(ctx, a.Stored, reason, refusal, neverSent)
	switch failed := errors.Join(claimErr, err); {
	case !neverSent:
		return a.Unknown(failed)
	case failed != nil:
		return fault.NewInternal(failed)
	}
	return refusal
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

var errNoDriver = logsafe.New("the operator has no driver")

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
	reason, refusal := "limit-store", &fault.Fault{Kind: fault.OperatorUnavailable, Cause: reserveErr}
	overLimit, isOver := errors.AsType[*dailyamount.OverLimitError](reserveErr)
	if isOver {
		reason, refusal = "daily-amount", &fault.Fault{
			Kind: fault.DailyLimitExceeded, Part: a.Stored.Amount.Currency, Value: overLimit.Remaining,
		}
	} else {
		line.Increment(telemetry.LimitStoreFailures)
	}
	updated, err := p.release(ctx, a.Stored, reason, refusal, isOver)
	switch {
	case isOver && err != nil:
		return fault.NewInternal(err)
	case isOver && updated.State != ledger.Released: // a success was claimed in the meantime, or a successor is at work
		return a.Unknown(nil)
	case err != nil || updated.State != ledger.Released:
		return a.Unknown(errors.Join(reserveErr, err))
	case isOver:
		line.Increment(telemetry.DailyLimitRefusals)
	default:
		p.refundDailyAmount(ctx, line, a.Stored, updated)
	}
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

var errCircuitOpen = logsafe.New("the operator's account does not respond: its circuit is open")

// circuitOf is the circuit of an entry's account and operation.
func circuitOf(e *ledger.Entry) circuit.Key {
	return circuit.Key{Account: operator.PinOf(e).String(), Operation: string(e.Kind)}
}

// reserveFunc is one of the functions of a Book that reserve.
type reserveFunc func(
	ctx context.Context, e *ledger.Entry, resendWindow func(*ledger.Entry) time.Duration,
) (*ledger.Entry, ledger.Verdict, error)

// reserveByCircuit returns how to reserve a key that nothing else refuses, and the refusal of a new one (decision
// "circuit-breaker"). While the circuit is open nothing is written, and a key with an entry gets its response. While it
// is half open a key without an entry takes a probe, and is reserved then.
func (p *Pipeline) reserveByCircuit(a *Attempt, book *ledger.Book) (reserveFunc, error) {
	a.circuit = circuitOf(a.Entry)
	phase, wait := p.Circuits.Phase(a.circuit)
	switch phase {
	case circuit.Open:
		return book.FindExisting, circuitRefusal(wait)
	case circuit.HalfOpen:
		return p.probeFunc(a, book), circuitRefusal(wait)
	default:
		return book.Reserve, nil
	}
}

// circuitRefusal is the refusal by a circuit that takes no probe for a time.
func circuitRefusal(wait time.Duration) *fault.Fault {
	return &fault.Fault{
		Kind: fault.OperatorUnavailable, Reason: fault.ReasonCircuitOpen, Cause: errCircuitOpen,
		RetryAfter: int((wait + time.Second - 1) / time.Second),
	}
}

// bookOf returns the ledger of an attempt. A key that is taken over may be pinned to another account than a new one: it
// is refused if the circuit of that account is open.
func (p *Pipeline) bookOf(a *Attempt) *ledger.Book {
	if p.Circuits == nil {
		return p.Book
	}
	book := *p.Book
	book.MayTakeOver = func(next *ledger.Entry) error { return p.passCircuit(a, next) }
	return &book
}

// passCircuit checks the circuit of a takeover, unless reserveByCircuit has checked it. Its error is the refusal of an
// open circuit, and of a half-open one without a place for a probe.
func (p *Pipeline) passCircuit(a *Attempt, next *ledger.Entry) error {
	key := circuitOf(next)
	if key == a.circuit {
		return nil
	}
	var probe circuit.Probe
	switch phase, wait := p.Circuits.Phase(key); phase {
	case circuit.Open:
		return circuitRefusal(wait)
	case circuit.HalfOpen:
		var taken bool
		if probe, taken = p.Circuits.TakeProbe(key); !taken {
			return circuitRefusal(wait)
		}
	}
	a.circuit, a.probe = key, probe // a probe of another circuit is returned, because no call begins with it
	return nil
}

// probeFunc returns how to reserve under a probe: the key is looked up first, and reserved only after the probe was
// taken.
func (p *Pipeline) probeFunc(a *Attempt, book *ledger.Book) reserveFunc {
	return func(ctx context.Context, e *ledger.Entry, resendWindow func(*ledger.Entry) time.Duration) (
		*ledger.Entry, ledger.Verdict, error,
	) {
		existing, verdict, err := book.FindExisting(ctx, e, resendWindow)
		if err != nil || existing != nil {
			return existing, verdict, err
		}
		var taken bool
		if a.probe, taken = p.Circuits.TakeProbe(a.circuit); !taken {
			return nil, 0, nil
		}
		return book.Reserve(ctx, e, resendWindow)
	}
}

// stillUnknown is the fault of a repeat whose first request has an unknown outcome. To a charge that is not the first
// request it adds the parts that differ (decision "charge-repeat"). It names only parts that the first entry has
// stored: the others are in its hash, and a restored entry has lost some.
func (a *Attempt) stillUnknown() *fault.Fault {
	f, first, repeat := a.Unknown(nil), a.Stored, a.Entry
	sameBody := first.Request.Fingerprint == repeat.Request.Fingerprint
	if a.Parts == (ChargeParts{}) || sameBody || first.Request.Restored() {
		return f
	}
	var parts []string
	for _, part := range []struct{ name, first, again string }{
		{a.Parts.Amount, first.Amount.AsSent, repeat.Amount.AsSent},
		{a.Parts.Currency, first.Amount.Currency, repeat.Amount.Currency},
		{a.Parts.Reference, first.Request.ReferenceCode, repeat.Request.ReferenceCode},
	} {
		if part.first != part.again {
			parts = append(parts, part.name)
		}
	}
	f.Reason, f.Part = fault.ReasonOtherBody, strings.Join(parts, ", ")
	return f
}
