package ledger

import (
	"errors"
	"time"
)

// SourceManual is the source of what a person settled.
const SourceManual = "person"

// What a person can say of a charge or an SMS. Of a payment it is a final status: successful, failed or cancelled.
const (
	ManuallyApplied    = "applied"
	ManuallyNotApplied = "not-applied"
)

// ManualResolution is what a person said of an outcome that nobody knew, kept with the entry (decision "unknown-by-hand").
type ManualResolution struct {
	Outcome string    `json:"said,omitempty"`
	Who     string    `json:"who,omitempty"`
	Reason  string    `json:"why,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// ManualOutcome is a word with what else follows from it.
type ManualOutcome struct {
	ManualResolution
	// ResponseStatus and ResponseBody are what the repeats of a charge that was not applied are told.
	ResponseStatus int
	ResponseBody   []byte
	// UserSMS is Resolution's.
	UserSMS bool
	// Lifetime is how long a payment that the operator accepted may stay pending before a person may end it.
	Lifetime time.Duration
}

// Why a person's word is not taken. The entry is then as it was.
var (
	ErrAttemptInFlight   = errors.New("an attempt is under way: wait until its lease has ended")
	ErrOutcomeKnown      = errors.New("its outcome is known")
	ErrStillPending      = errors.New("it is pending, and its operator may still end it")
	ErrInvalidResolution = errors.New("this cannot be said of it")
)

// manualMargin is how long after its lease's end an attempt still counts as under way for a person, whose own machine's clock
// decides.
const manualMargin = 2 * time.Minute

// OutcomeUncertain is true where nobody knows what came of an entry: its outcome is unknown, its lease has lapsed, or a claim
// stands that getStatus has not confirmed.
func (e *Entry) OutcomeUncertain(now time.Time) bool {
	return !e.StatusFinal() && (e.State == Unknown || e.LeaseLapsed(now) || e.Claim.Status != "")
}

// ResolveManually settles by a person's word what nobody else could (decision "unknown-by-hand"). What is known already, and what
// is being worked on, never gives way to it. A payment gets its final status, of which the merchant is told; a charge
// that was applied is done, and has its answer made by the merchant's own repeat; one that was not is refused for good; a
// message was sent, or is DeliveryImpossible, of which the merchant is told. An error stores nothing.
func (e *Entry) ResolveManually(j ManualOutcome, now time.Time) error {
	if e.Leased(now.Add(-manualMargin)) {
		return ErrAttemptInFlight
	}
	if e.Kind == Payment {
		return e.resolvePaymentManually(j, now)
	}
	if j.Outcome != ManuallyApplied && j.Outcome != ManuallyNotApplied {
		return ErrInvalidResolution
	}
	if !e.OutcomeUncertain(now) {
		return ErrOutcomeKnown
	}
	applied := j.Outcome == ManuallyApplied
	changed := false
	switch {
	case e.Kind == Charge && applied:
		changed = e.ApplyOutcome(e.Owner, CallOutcome{State: Done}, now)
	case e.Kind == Charge && j.ResponseStatus != 0:
		changed = e.ApplyOutcome(e.Owner, CallOutcome{State: Refused, ResponseStatus: j.ResponseStatus, ResponseBody: j.ResponseBody}, now)
	case e.Kind == SMS && applied:
		const created = 201 // as if the operator had answered; a message's answer is never sent again
		changed = e.ApplyOutcome(e.Owner, CallOutcome{State: Done, Status: MessageWaiting, ResponseStatus: created}, now)
	case e.Kind == SMS:
		changed = e.ApplyReceipt(DeliveryImpossible, now) == Applied
	}
	if !changed {
		return ErrInvalidResolution
	}
	e.storeManualResolution(j.ManualResolution, now)
	return nil
}

// resolvePaymentManually is Judge for a payment. One that was released was certainly not applied: only a success says more.
func (e *Entry) resolvePaymentManually(j ManualOutcome, now time.Time) error {
	status := Status(j.Outcome)
	switch {
	case status != Successful && status != Failed && status != Cancelled:
		return ErrInvalidResolution
	case e.StatusFinal():
		return ErrOutcomeKnown
	case e.State == Done && !e.OutcomeUncertain(now) && now.Sub(e.ReservedAt) < j.Lifetime:
		return ErrStillPending
	}
	if e.ApplyFinalStatus(StatusReport{Status: status, Source: SourceManual, UserSMS: j.UserSMS}, now) != Applied {
		return ErrOutcomeKnown
	}
	e.storeManualResolution(j.ManualResolution, now)
	return nil
}

func (e *Entry) storeManualResolution(w ManualResolution, now time.Time) {
	w.At = now
	e.Manual = w
}
