package ledger

import (
	"cmp"
	"slices"
	"time"
)

// FirstPollAfter is when a payment that is pending or unknown is first looked up, unless the caller names a time.
// StaleAfter is when an unknown charge or SMS, which cannot be looked up, is first listed for a manual resolution.
const (
	FirstPollAfter = time.Minute
	StaleAfter     = 15 * time.Minute
)

// CallOutcome is the outcome of an operator call.
type CallOutcome struct {
	// State is Done, Refused, Unknown or Released.
	State State
	// Status is Pending for a payment that is done or unknown, and the status in the response to an SMS, if any. A
	// refused payment becomes Failed without it. Every other final status of a payment comes only by ApplyFinalStatus.
	Status Status
	// ResponseStatus and ResponseBody are the response to store and to replay, without otp_code; 0 for none. They are
	// stored with Unknown too: tpe and ussd respond 201 pending.
	ResponseStatus    int
	ResponseBody      []byte
	OperatorReference string
	NotifToken        string
	Material          string
	// Report goes with Done of a payment that its operator decided at once; nil for pending.
	Report *StatusReport
	// Receipts goes with Done of an SMS: the operator's receipts that came before its response.
	Receipts []Status
	// BindAt goes with Done of an SMS whose binding failed: its next attempt.
	BindAt time.Time
	// FailureReason goes with a refused payment.
	FailureReason FailureReason
	// NothingSent goes with Unknown: this attempt sent nothing, because the operator knew the key or did not apply it.
	// DuplicateKey is the first of these.
	NothingSent, DuplicateKey bool
	// NotifyURL goes with Done and Refused of a charge: the address of the notification if the outcome becomes known
	// late, "" for none (decision "charge-notif"). An SMS has its own.
	NotifyURL string
	// UnbindBody goes with Released. Nothing that may have been applied was sent under this key, so it binds no body:
	// the referenceCode is taken, or the amount is over its merchant's limit. An earlier release still binds its body,
	// because that attempt may have been sent.
	UnbindBody bool
	// Call describes the operator call for people. The zero value, such as of a manual resolution, is not kept.
	Call CallResult
	// FirstPollAt is the first lookup of a pending payment, or when the sweep first processes an unknown entry; zero
	// for FirstPollAfter or StaleAfter from now.
	FirstPollAt time.Time
}

// BeginReservation makes a prepared entry the first reservation of its key: Version 1, owned, and Reserved until
// LeaseUntil, which the caller has set.
func (e *Entry) BeginReservation(owner string, now time.Time) {
	e.Version, e.Owner, e.State = 1, owner, Reserved
	e.CreatedAt, e.SentAt, e.ReservedAt, e.UpdatedAt = now, now, now, now
	e.Status = ""
	if e.Kind == Payment {
		e.Status = Pending
	}
	e.Reschedule()
}

// TakeOver returns the entry after incoming's attempt took it over: a new owner and lease, and the next version.
// Operator, account, upstream key, ids and CreatedAt stay as first reserved. Only after a release that binds no body do
// incoming's fields replace them. The caller has checked with Decide that a takeover is allowed.
func (e *Entry) TakeOver(incoming *Entry, owner string, now time.Time) *Entry {
	next := e.Clone()
	next.ReleasedBefore = e.ReleasedBefore || e.State == Released
	if e.State == Released && e.Fingerprint == "" {
		next = incoming.Clone()
		next.CreatedAt = e.CreatedAt
		next.Status, next.Claim, next.Conflicts, next.Extra = e.Status, e.Claim, e.Clone().Conflicts, e.Extra
		next.CallAttempts, next.KeyTaken = e.Clone().CallAttempts, e.KeyTaken
	}
	if e.State == Reserved {
		next.addCallAttempt(CallAttempt{At: e.ReservedAt, Outcome: CallLapsed})
	}
	next.CallbackKeys = slices.Compact(slices.Concat(e.CallbackKeys, incoming.CallbackKeys))
	next.EverUnknown = e.EverUnknown || e.State == Unknown || e.State == Reserved
	next.NothingSent = e.NothingSent && e.State != Reserved
	next.markRelayNotified()
	next.Version, next.Owner, next.State = e.Version+1, owner, Reserved
	next.LeaseUntil, next.ReservedAt, next.UpdatedAt = incoming.LeaseUntil, now, now
	next.PollAt, next.PollAttempts = time.Time{}, 0
	if e.State == Released {
		next.SentAt, next.CountsDailyAmount = now, incoming.CountsDailyAmount
	}
	if incoming.ExpireAt.After(e.ExpireAt) && !e.ExpireAt.IsZero() {
		next.ExpireAt = incoming.ExpireAt
	}
	next.Reschedule()
	return next
}

// ApplyOutcome applies the outcome of owner's operator call, and returns whether the entry changed. The caller responds
// by the entry afterwards, not by the outcome: another attempt or a callback may have come first.
//
//   - The owner's outcome applies to its reservation, also after the sweep has marked that as lapsed (Unknown).
//   - A success is never lost. It makes a reserved, unknown or released entry Done, also if another attempt owns it,
//     because all attempts use one upstream key. The successor's own outcome then changes nothing. After a final
//     refusal the success is kept as a conflict.
//   - Every other outcome of a former owner is dropped: the successor's counts.
//   - After an unknown attempt a release proves nothing: the entry stays Unknown (decision "unknown-sticks"). Only
//     UnbindBody releases it all the same.
//   - A status that the operator reported meanwhile stays: only the response is added.
//   - An outcome that no response reports to the merchant goes to the outbox.
func (e *Entry) ApplyOutcome(owner string, outcome CallOutcome, now time.Time) bool {
	late, status := e.State == Unknown || e.LeaseLapsed(now), e.Status
	if !e.applyCall(owner, outcome, now) {
		return false
	}
	if outcome.State == Done && outcome.Report != nil {
		e.ApplyFinalStatus(*outcome.Report, now)
	}
	if late && (e.State == Done || e.State == Refused) {
		e.enqueueLate(outcome.NotifyURL, e.Status != status, now)
	}
	e.ApplyReceipts(outcome.Receipts, now)
	if outcome.State == Done && !outcome.BindAt.IsZero() {
		e.BindAt = outcome.BindAt
		e.Reschedule()
	}
	return true
}

// enqueueLate queues the notification of an outcome that became known after the merchant had got 504: of a charge to
// chargeURL, of an SMS its new delivery status. It is never the outcome of a retry: that is recorded while the retry
// owns the reservation, and the retry's response reports it. An entry becomes Done or Refused only once, so a charge is
// notified once.
func (e *Entry) enqueueLate(chargeURL string, statusChanged bool, now time.Time) {
	switch {
	case e.Kind == Charge && chargeURL != "":
		e.NotifyURL, e.NotifyFrom = chargeURL, AddressOfProfile
		status := Successful
		if e.State == Refused {
			status = Failed
		}
		e.enqueue(status, now)
	case e.Kind == SMS && statusChanged:
		e.enqueue(e.Status, now)
	}
	e.Reschedule()
}

// applyCall is ApplyOutcome without a notification.
func (e *Entry) applyCall(owner string, outcome CallOutcome, now time.Time) bool {
	if outcome.State == Done {
		if !e.applySuccess(outcome, now) {
			return false
		}
		at := e.ReservedAt
		if e.Owner != owner {
			at = now
		}
		e.recordCall(outcome.Call, at, now)
		return true
	}
	if e.Owner != owner || (e.State != Reserved && e.State != Unknown) {
		return false
	}
	switch {
	case outcome.State == Refused && !e.contradictsRefusal():
		e.State, e.PollAt = Refused, time.Time{}
		e.storeResponse(outcome)
		e.finishRefused(outcome, now)
	case outcome.State == Released && e.releasable(outcome.UnbindBody):
		e.State, e.PollAt = Released, time.Time{}
		if outcome.UnbindBody {
			e.EverUnknown, e.NothingSent = false, false // nothing that may have been applied was ever sent
		}
		if outcome.UnbindBody && !e.ReleasedBefore {
			e.Fingerprint = ""
		}
	default:
		e.applyUnknown(outcome, now)
	}
	e.recordCall(outcome.Call, e.ReservedAt, now)
	e.Reschedule()
	return true
}

// applySuccess is ApplyOutcome for a success of any owner, former or not.
func (e *Entry) applySuccess(outcome CallOutcome, now time.Time) bool {
	reported := Successful
	if outcome.Report != nil {
		reported = outcome.Report.Status
	}
	switch {
	case e.State == Refused && reported == e.Status:
		return false
	case e.State == Refused:
		return e.addConflict(Conflict{Status: reported, Reason: reasonFinal, Source: sourceResponse, At: now})
	case e.State == Done && (e.ResponseStatus != 0 || outcome.ResponseStatus == 0):
		return false
	}
	e.State, e.PollAt = Done, time.Time{}
	e.storeResponse(outcome)
	switch {
	case e.Kind == Payment && !e.StatusFinal():
		e.Status = Pending
		e.schedulePoll(outcome.FirstPollAt, now)
	case e.Kind == SMS && outcome.Status.progress() > e.Status.progress():
		e.Status = outcome.Status
	}
	e.Reschedule()
	return true
}

// MayHaveSent is true if an earlier attempt can have reached the operator.
func (e *Entry) MayHaveSent() bool { return e.EverUnknown && !e.NothingSent }

// applyUnknown makes the entry unknown. It is done if the operator has reported already and the merchant has a
// response, or if a receipt proves that a message was sent. A refusal is then a conflict.
func (e *Entry) applyUnknown(outcome CallOutcome, now time.Time) {
	e.KeyTaken = e.KeyTaken || outcome.DuplicateKey && !e.MayHaveSent()
	e.NothingSent = outcome.NothingSent && !e.MayHaveSent()
	e.State, e.EverUnknown = Unknown, true
	if outcome.State == Unknown {
		e.storeResponse(outcome)
	}
	if e.reportedByOperator() && (e.Kind == SMS || outcome.State == Unknown && e.ResponseStatus != 0) {
		e.State = Done
	}
	if outcome.State == Refused {
		e.addConflict(Conflict{Status: Failed, Reason: reasonFinal, Source: sourceResponse, At: now})
	}
	e.schedulePoll(outcome.FirstPollAt, now)
}

// schedulePoll sets the first lookup: at due, or by default.
func (e *Entry) schedulePoll(due, now time.Time) {
	e.PollAt, e.PollAttempts = due, 0
	switch {
	case !e.pollable():
		e.PollAt = time.Time{}
	case due.IsZero() && e.Kind == Payment:
		e.PollAt = now.Add(FirstPollAfter)
	case due.IsZero():
		e.PollAt = now.Add(StaleAfter)
	}
}

// contradictsRefusal is true if the operator has reported or claimed a success: its refusal then does not apply.
func (e *Entry) contradictsRefusal() bool {
	return e.Status == Successful || e.Claim.Status == Successful || (e.Kind == SMS && e.Status != "")
}

// releasable is true if no attempt of the entry can have been applied, not only this one.
func (e *Entry) releasable(unbind bool) bool {
	if e.reportedByOperator() || e.Claim.Status != "" {
		return false
	}
	return unbind || !e.EverUnknown
}

// finishRefused makes a refused payment failed, and gives a refused message the outcome's status. It notifies nothing:
// the merchant gets the refusal as its response.
func (e *Entry) finishRefused(outcome CallOutcome, now time.Time) {
	switch {
	case e.StatusFinal():
	case e.Kind == Payment:
		e.Status, e.FinalAt, e.Claim = Failed, now, Claim{}
		e.FailureReason = outcome.FailureReason
	case e.Kind == SMS && outcome.Status.Final():
		e.Status, e.FinalAt = outcome.Status, now
	}
}

// storeResponse stores the response and the operator's values, unless there are some already.
func (e *Entry) storeResponse(outcome CallOutcome) {
	if e.ResponseStatus == 0 && outcome.ResponseStatus != 0 {
		e.ResponseStatus, e.ResponseBody = outcome.ResponseStatus, outcome.ResponseBody
	}
	e.OperatorReference = cmp.Or(e.OperatorReference, outcome.OperatorReference)
	e.NotifToken = cmp.Or(e.NotifToken, outcome.NotifToken)
	e.Material = cmp.Or(e.Material, outcome.Material)
}

// StoreMaterial stores what the operator returned before the payment itself, for the owner of a live reservation. It
// returns false if another attempt owns the entry, or if the lease has ended: the caller must not pay then.
func (e *Entry) StoreMaterial(owner, material string, now time.Time) bool {
	if e.Owner != owner || !e.Leased(now) {
		return false
	}
	e.Material = material
	return true
}

// MarkLapsed applies the end of a reservation's lease, LapseMargin later: the entry is unknown, and the sweep processes
// it at next. If the operator has reported already, it is done. It returns whether the entry changed.
func (e *Entry) MarkLapsed(now, next time.Time) bool {
	if !e.LapseDue(now) {
		return false
	}
	e.State, e.EverUnknown, e.NothingSent, e.PollAt = Unknown, true, false, next
	e.addCallAttempt(CallAttempt{At: e.ReservedAt, Outcome: CallLapsed})
	if e.reportedByOperator() {
		e.State, e.PollAt = Done, time.Time{}
	}
	e.Reschedule()
	return true
}
