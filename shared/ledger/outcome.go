package ledger

import "time"

// FirstPollAfter is when a payment that is pending or unknown is first looked up, where the caller names no time.
// StaleAfter is when a charge or an SMS that is unknown, and cannot be looked up, is first listed for a person.
const (
	FirstPollAfter = time.Minute
	StaleAfter     = 15 * time.Minute
)

// CallOutcome is what came of an operator call, as the flow hands it to Settle.
type CallOutcome struct {
	// State is Done, Refused, Unknown or Released.
	State State
	// Status is Pending for a payment that is done or unknown; of an SMS the status its answer told, if any. A refused
	// payment becomes Failed by itself. Any other final status of a payment comes by Resolve alone.
	Status Status
	// ResponseStatus and ResponseBody are the answer to be stored and replayed, without otp_code; 0 for none. With Unknown
	// they are stored too (tpe and ussd answer 201 pending).
	ResponseStatus    int
	ResponseBody      []byte
	OperatorReference string
	NotifToken        string
	// UnbindBody goes with Released: nothing was sent under this key that may have been applied, and it binds no body (a taken
	// referenceCode, an amount over its merchant's limit), unless an attempt before was released, which may have been sent.
	UnbindBody bool
	// FirstPollAt is the first status lookup of a payment that is pending, or when the sweep takes up what is unknown; zero for
	// FirstPollAfter or StaleAfter from now.
	FirstPollAt time.Time
}

// BeginReservation makes a prepared entry the first reservation of its key: Version 1, owned, in the state Reserved until its
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

// TakeOver is the entry after incoming's attempt took it over: a new owner and lease, one version on. What was pinned at
// the first reservation stays: operator, account, upstream key, ids, CreatedAt. Only a release that bound no body gives
// way to the facts of incoming. Whether it may be taken over is Decide's to say.
func (e *Entry) TakeOver(incoming *Entry, owner string, now time.Time) *Entry {
	next := e.Clone()
	next.ReleasedBefore = e.ReleasedBefore || e.State == Released
	if e.State == Released && e.Fingerprint == "" {
		next = incoming.Clone()
		next.CreatedAt = e.CreatedAt
		next.Status, next.Conflicts, next.Extra = e.Status, e.Clone().Conflicts, e.Extra
	}
	next.EverUnknown = e.EverUnknown || e.State == Unknown || e.State == Reserved
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

// ApplyOutcome writes down what came of owner's operator call, and says whether the entry changed. The caller answers by the
// entry afterwards, not by s: another attempt or a callback may have come first, and a release may not stand.
//
//   - The owner settles its reservation, also after the sweep has marked it as lapsed (Unknown).
//   - A success is never lost: whoever owns the entry by now, it makes a reserved, unknown or released entry Done, since
//     all attempts go under one upstream key. The successor's own settlement then finds it done and changes nothing. Only
//     after a final refusal it is kept as a conflict.
//   - Anything else from a former owner is dropped: the entry is its successor's to settle.
//   - Once an attempt was unknown, a release proves nothing: it stays Unknown (decision "unknown-sticks"). Unbind alone
//     releases all the same.
//   - What the operator itself reported meanwhile stands: the answer is added, a final Status never changes.
func (e *Entry) ApplyOutcome(owner string, s CallOutcome, now time.Time) bool {
	if s.State == Done {
		return e.applySuccess(s, now)
	}
	if e.Owner != owner || (e.State != Reserved && e.State != Unknown) {
		return false
	}
	switch {
	case s.State == Refused && !e.contradictsRefusal():
		e.State = Refused
		e.storeResponse(s)
		e.PollAt = time.Time{}
		e.finishRefused(s, now)
	case s.State == Released && e.releasable(s.UnbindBody):
		e.State = Released
		e.PollAt = time.Time{}
		if s.UnbindBody {
			e.EverUnknown = false // nothing was ever sent that may have been applied
		}
		if s.UnbindBody && !e.ReleasedBefore {
			e.Fingerprint = ""
		}
	default:
		return e.applyUnknown(s, now)
	}
	e.Reschedule()
	return true
}

// applySuccess applies a success.
func (e *Entry) applySuccess(s CallOutcome, now time.Time) bool {
	switch {
	case e.State == Refused:
		return e.addConflict(Conflict{Status: Successful, Reason: "final", Source: "answer", At: now})
	case e.State == Done && e.ResponseStatus != 0:
		return false
	}
	if e.State == Done && s.ResponseStatus == 0 {
		return false
	}
	e.State = Done
	e.PollAt = time.Time{}
	e.storeResponse(s)
	switch {
	case e.Kind == Payment && !e.StatusFinal():
		e.Status = Pending
		e.schedulePoll(s.FirstPollAt, now)
	case e.Kind == SMS && s.Status.progress() > e.Status.progress():
		e.Status = s.Status
	}
	e.Reschedule()
	return true
}

// applyUnknown leaves the entry unknown; where the operator has reported already and there is an answer, it is done.
func (e *Entry) applyUnknown(s CallOutcome, now time.Time) bool {
	e.State, e.EverUnknown = Unknown, true
	if s.State == Unknown {
		e.storeResponse(s)
		if e.reportedByOperator() && (e.ResponseStatus != 0 || e.Kind == SMS) {
			e.State = Done // the receipt says that it was sent
		}
	}
	if s.State == Refused {
		e.addConflict(Conflict{Status: Failed, Reason: "final", Source: "answer", At: now})
	}
	e.schedulePoll(s.FirstPollAt, now)
	e.Reschedule()
	return true
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

// contradictsRefusal is true where the operator has reported or claimed a success, so that its refusal cannot stand.
func (e *Entry) contradictsRefusal() bool {
	return e.Status == Successful || e.Claim.Status == Successful || (e.Kind == SMS && e.Status != "")
}

// releasable is true where "certainly not applied" may be believed of the whole entry, not of this attempt alone.
func (e *Entry) releasable(unbind bool) bool {
	if e.reportedByOperator() || e.Claim.Status != "" {
		return false
	}
	return unbind || !e.EverUnknown
}

// finishRefused makes a refused payment failed, and a refused message what s says of it: the merchant has the refusal as
// its answer, so nothing is notified.
func (e *Entry) finishRefused(s CallOutcome, now time.Time) {
	switch {
	case e.StatusFinal():
	case e.Kind == Payment:
		e.Status, e.FinalAt, e.Claim = Failed, now, Claim{}
	case e.Kind == SMS && s.Status.Final():
		e.Status, e.FinalAt = s.Status, now
	}
}

// storeResponse stores the answer if there is none yet, and what the operator gave along.
func (e *Entry) storeResponse(s CallOutcome) {
	if e.ResponseStatus == 0 && s.ResponseStatus != 0 {
		e.ResponseStatus, e.ResponseBody = s.ResponseStatus, s.ResponseBody
	}
	if e.OperatorReference == "" {
		e.OperatorReference = s.OperatorReference
	}
	if e.NotifToken == "" {
		e.NotifToken = s.NotifToken
	}
}

// MarkLapsed writes down that a reservation's lease has ended: the entry is unknown and taken up at next, or done where the
// operator has reported already. It says whether the entry changed.
func (e *Entry) MarkLapsed(now, next time.Time) bool {
	if !e.LeaseLapsed(now) {
		return false
	}
	e.State, e.EverUnknown, e.PollAt = Unknown, true, next
	if e.reportedByOperator() {
		e.State, e.PollAt = Done, time.Time{}
	}
	e.Reschedule()
	return true
}
