package ledger

import (
	"cmp"
	"time"

	"mobilegateway/shared/logsafe"
)

// The manual outcomes of a charge or an SMS. A payment's is a final status: successful, failed or cancelled. Unknowable
// closes an SMS without an outcome: no source can report one any more.
const (
	ManuallyApplied    = "applied"
	ManuallyNotApplied = "not-applied"
	ManuallyUnknowable = "unknowable"
)

// ManualOutcome is a manual resolution with the values that it needs.
type ManualOutcome struct {
	ManualResolution
	// Reference is Manual.Reference.
	Reference string
	// Owner is the attempt that the person decided about. The decision does not apply to a later attempt.
	Owner string
	// ResponseStatus and ResponseBody are the response to repeats of a charge that was not applied.
	ResponseStatus int
	ResponseBody   []byte
	// NotifyURL is CallOutcome's.
	NotifyURL string
	// UserSMS is StatusReport's.
	UserSMS bool
	// Lifetime is how long an accepted payment may stay pending before it can be resolved manually.
	Lifetime time.Duration
}

// The reasons against a manual resolution. The entry is then unchanged.
var (
	ErrAttemptInFlight   = logsafe.New("an attempt is in flight: wait until its lease has ended")
	ErrLaterAttempt      = logsafe.New("a later attempt was made: decide again by a newer statement of the operator")
	ErrOutcomeKnown      = logsafe.New("its outcome is known")
	ErrStillPending      = logsafe.New("it is pending, and its operator may still end it")
	ErrInvalidResolution = logsafe.New("this resolution does not apply to it")
)

// ClockMargin is how much later something must have ended for a command than for a function, such as the lease of an
// attempt: the clock of the engineer's machine decides.
const ClockMargin = 2 * time.Minute

// OutcomeUncertain is true if the outcome is unknown, the lease has lapsed, or no lookup has confirmed a claim. An
// earlier version left an SMS unknown that has a final status.
func (e *Entry) OutcomeUncertain(now time.Time) bool {
	if e.Kind == SMS && e.State == Unknown {
		return true
	}
	return !e.StatusFinal() && (e.State == Unknown || e.LeaseLapsed(now) || e.Claim.Status != "")
}

// Unknowable is true for an unknown SMS that a person has closed: nothing lists it. A later attempt opens it again.
func (e *Entry) Unknowable() bool {
	return e.State == Unknown && e.Poll.At.IsZero() && e.Manual.Outcome == ManuallyUnknowable
}

// ResolveManually ends an unknown outcome by an engineer's decision (decision "unknown-by-hand"). It never changes a
// known outcome, one with an attempt in flight, or that of a later attempt than the person decided about.
//
//   - A payment gets its final status, and the merchant is notified.
//   - An applied charge is Done; the merchant's own repeat makes its response. One that was not applied is Refused. The
//     merchant is notified if NotifyURL is set.
//   - An applied SMS was sent, and is MessageWaiting. One that was not applied is DeliveryImpossible. The merchant is
//     notified.
//   - An unknowable SMS stays Unknown, for its retries too. It is not due any more. A receipt or a later decision ends
//     it.
//
// After an error nothing may be stored.
func (e *Entry) ResolveManually(m ManualOutcome, now time.Time) error {
	switch {
	case e.Leased(now.Add(-ClockMargin)):
		return ErrAttemptInFlight
	case e.Owner != m.Owner:
		return ErrLaterAttempt
	}
	resolve := m.resolveCall
	if e.Kind == Payment {
		resolve = m.resolvePayment
	}
	if err := resolve(e, now); err != nil {
		return err
	}
	e.Manual.ManualResolution = m.ManualResolution
	e.Manual.At, e.Manual.Reference = now, cmp.Or(m.Reference, e.Manual.Reference)
	return nil
}

// resolveCall is ResolveManually for a charge or an SMS.
func (m *ManualOutcome) resolveCall(e *Entry, now time.Time) error {
	applied, unknowable := m.Outcome == ManuallyApplied, m.Outcome == ManuallyUnknowable && e.Kind == SMS
	if !applied && !unknowable && m.Outcome != ManuallyNotApplied {
		return ErrInvalidResolution
	}
	if !e.OutcomeUncertain(now) || unknowable && e.hasReport(e.Kind) {
		return ErrOutcomeKnown
	}
	outcome := CallOutcome{State: Done}
	switch {
	case unknowable:
		e.MarkLapsed(now, now)
		e.Poll = Poll{}
		return nil
	case e.Kind == Charge && applied:
	case e.Kind == Charge && m.ResponseStatus != 0:
		outcome = CallOutcome{State: Refused, ResponseStatus: m.ResponseStatus, ResponseBody: m.ResponseBody}
	case e.Kind == SMS && applied:
		const created = 201 // as if the operator had responded; a message's response is never sent again
		outcome.Status, outcome.ResponseStatus = MessageWaiting, created
	case e.Kind == SMS && e.ApplyReceipt(DeliveryImpossible, now) == Applied:
		return nil
	default:
		return ErrInvalidResolution
	}
	outcome.NotifyURL = m.NotifyURL
	if !e.ApplyOutcome(e.Owner, outcome, now) {
		return ErrInvalidResolution
	}
	return nil
}

// resolvePayment is ResolveManually for a payment. One that was released was certainly not applied, so only a
// success changes its status. A failure ends an open claim of success: the payment stays released, and the claim is
// kept as a conflict.
func (m *ManualOutcome) resolvePayment(e *Entry, now time.Time) error {
	status := Status(m.Outcome)
	switch {
	case status != Successful && status != Failed && status != Cancelled:
		return ErrInvalidResolution
	case e.StatusFinal():
		return ErrOutcomeKnown
	case e.State == Released && e.Claim.Status != "" && status != Successful:
		e.rejectClaim(now)
		return nil
	case e.State == Done && !e.OutcomeUncertain(now) && now.Sub(e.ReservedAt) < m.Lifetime:
		return ErrStillPending
	case e.ApplyFinalStatus(StatusReport{Status: status, Source: SourceManual, UserSMS: m.UserSMS}, now) != Applied:
		return ErrOutcomeKnown
	}
	return nil
}
