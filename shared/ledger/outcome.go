package ledger

import (
	"cmp"
	"slices"
	"time"

	"mobilegateway/shared/timeline"
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
	DriverData        string
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

// TakeOver returns the entry after incoming's attempt took it over: a new owner and lease, and the next version.
// Operator, account, upstream key, ids and CreatedAt stay as first reserved. Only after a release that binds no body do
// incoming's fields replace them. The caller has checked with Decide that a takeover is allowed.
func (e *Entry) TakeOver(incoming *Entry, owner string, now time.Time) *Entry {
	next := e.Clone()
	next.ReleasedBefore = e.ReleasedBefore || e.State == Released
	if e.State == Released && e.Request.Fingerprint == "" {
		next = incoming.Clone()
		next.CreatedAt, next.Merchant.DayShard = e.CreatedAt, e.Merchant.DayShard
		next.Status, next.Claim, next.Conflicts, next.Extra = e.Status, e.Claim, e.Clone().Conflicts, e.Extra
		next.Call.Attempts, next.ForeignKey = e.Clone().Call.Attempts, e.ForeignKey
		next.Timeline = e.Timeline
	}
	if e.State == Reserved {
		next.addAttempt(CallAttempt{At: e.ReservedAt, Outcome: CallLapsed})
	}
	next.Route.CallbackKeys = slices.Compact(slices.Concat(e.Route.CallbackKeys, incoming.Route.CallbackKeys))
	next.EverUnknown = e.EverUnknown || e.State == Unknown || e.State == Reserved
	next.NothingSent = e.NothingSent && e.State != Reserved
	next.Outbox.markRelayNotified()
	next.Version, next.Owner, next.State = e.Version+1, owner, Reserved
	next.LeaseUntil, next.ReservedAt, next.UpdatedAt = incoming.LeaseUntil, now, now
	next.Poll = Poll{}
	if e.State == Released {
		next.SentAt, next.Amount.CountsDaily = now, incoming.Amount.CountsDaily
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
	if !outcome.apply(e, owner, now) {
		return false
	}
	if late && (e.State == Done || e.State == Refused) {
		outcome.enqueueLate(e, e.Status != status, now)
	}
	e.ApplyReceipts(outcome.Receipts, now)
	if outcome.State == Done && !outcome.BindAt.IsZero() {
		e.BindAt = outcome.BindAt
	}
	return true
}

// enqueueLate queues the notification of an outcome that became known after the merchant had got 504: of a charge to
// NotifyURL, of an SMS its new delivery status. It is never the outcome of a retry: that is recorded while the retry
// owns the reservation, and the retry's response reports it. An entry becomes Done or Refused only once, so a charge is
// notified once.
func (o *CallOutcome) enqueueLate(e *Entry, statusChanged bool, now time.Time) {
	switch {
	case e.Kind == Charge && o.NotifyURL != "":
		e.Outbox.URL, e.Outbox.From = o.NotifyURL, AddressOfProfile
		status := Successful
		if e.State == Refused {
			status = Failed
		}
		e.Outbox.enqueue(e.Key, status, now)
	case e.Kind == SMS && statusChanged:
		e.Outbox.enqueue(e.Key, e.Status, now)
	}
}

// apply is ApplyOutcome without a notification.
func (o *CallOutcome) apply(e *Entry, owner string, now time.Time) bool {
	if o.State == Done {
		if !o.succeed(e, now) {
			return false
		}
		at := e.ReservedAt
		if e.Owner != owner {
			at = now
		}
		e.record(o.Call, e.Response.Status, at, now)
		return true
	}
	if e.Owner != owner || (e.State != Reserved && e.State != Unknown) {
		return false
	}
	switch {
	case o.State == Refused && !e.contradictsRefusal(e.Kind):
		e.State, e.Poll.At = Refused, time.Time{}
		o.store(e)
		o.finishRefused(e, now)
	case o.State == Released && o.releasable(e):
		e.State, e.Poll.At = Released, time.Time{}
		if o.UnbindBody {
			e.EverUnknown, e.NothingSent = false, false // nothing that may have been applied was ever sent
		}
		if o.UnbindBody && !e.ReleasedBefore {
			e.Request.Fingerprint = ""
		}
	default:
		o.leaveUnknown(e, now)
	}
	e.record(o.Call, e.Response.Status, e.ReservedAt, now)
	if o.Call.Code != "" && o.Call.Code != o.Call.Reason {
		e.AddReport(timeline.Event{Kind: timeline.Call, At: e.ReservedAt, Code: o.Call.Code})
	}
	return true
}

// succeed is ApplyOutcome for a success of any owner, former or not.
func (o *CallOutcome) succeed(e *Entry, now time.Time) bool {
	switch {
	case e.State == Refused:
		return e.addConflict(Conflict{Status: Successful, Reason: reasonFinal, Source: SourceResponse, At: now})
	case e.State == Done && (e.Response.Status != 0 || o.ResponseStatus == 0):
		return false
	}
	e.State, e.Poll.At = Done, time.Time{}
	o.store(e)
	switch {
	case e.Kind == Payment && !e.StatusFinal():
		e.Status = Pending
		o.schedulePoll(e, now)
	case e.Kind == SMS && o.Status.progress() > e.Status.progress():
		e.Status = o.Status
	}
	return true
}

// leaveUnknown makes the entry unknown. It is done if the operator has reported already and the merchant has a
// response, or if a receipt proves that a message was sent. A refusal is then a conflict.
func (o *CallOutcome) leaveUnknown(e *Entry, now time.Time) {
	e.ForeignKey = e.ForeignKey || o.DuplicateKey && !e.MayHaveSent()
	e.NothingSent = o.NothingSent && !e.MayHaveSent()
	e.State, e.EverUnknown = Unknown, true
	if o.State == Unknown {
		o.store(e)
	}
	if e.hasReport(e.Kind) && (e.Kind == SMS || o.State == Unknown && e.Response.Status != 0) {
		e.State = Done
	}
	if o.State == Refused {
		e.addConflict(Conflict{Status: Failed, Reason: reasonFinal, Source: SourceResponse, At: now})
	}
	o.schedulePoll(e, now)
}

// schedulePoll sets the first lookup: at FirstPollAt, or by default.
func (o *CallOutcome) schedulePoll(e *Entry, now time.Time) {
	e.Poll = Poll{At: o.FirstPollAt}
	switch {
	case !e.pollable(e.Kind, e.State):
		e.Poll.At = time.Time{}
	case o.FirstPollAt.IsZero() && e.Kind == Payment:
		e.Poll.At = now.Add(FirstPollAfter)
	case o.FirstPollAt.IsZero():
		e.Poll.At = now.Add(StaleAfter)
	}
}

// releasable is true if no attempt of the entry can have been applied, not only this one.
func (o *CallOutcome) releasable(e *Entry) bool {
	if e.hasReport(e.Kind) || e.Claim.Status != "" {
		return false
	}
	return o.UnbindBody || !e.EverUnknown
}

// finishRefused makes a refused payment failed, and gives a refused message the outcome's status. It notifies nothing:
// the merchant gets the refusal as its response.
func (o *CallOutcome) finishRefused(e *Entry, now time.Time) {
	switch {
	case e.StatusFinal():
	case e.Kind == Payment:
		e.Status, e.FinalAt, e.Claim = Failed, now, Claim{}
		e.FailureReason = o.FailureReason
	case e.Kind == SMS && o.Status.Final():
		e.Status, e.FinalAt = o.Status, now
	}
}

// store stores the response and the operator's values, unless there are some already. After its final status a payment
// keeps the values that its notification was queued with: each attempt under one webhook-id has the same body (decision
// "notifications"). An SMS has neither value in its notification, and needs its reference for its receipts.
func (o *CallOutcome) store(e *Entry) {
	if e.Response.Status == 0 && o.ResponseStatus != 0 {
		e.Response = Response{Status: o.ResponseStatus, Body: o.ResponseBody}
	}
	e.DriverData = cmp.Or(e.DriverData, o.DriverData)
	if e.Kind == Payment && e.StatusFinal() {
		if e.OperatorReference == "" {
			e.LateReference = cmp.Or(e.LateReference, o.OperatorReference)
		}
		return
	}
	e.OperatorReference = cmp.Or(e.OperatorReference, o.OperatorReference)
	e.Outbox.NotifToken = cmp.Or(e.Outbox.NotifToken, o.NotifToken)
}

// MarkLapsed applies the end of a reservation's lease, LapseMargin later: the entry is unknown, and the sweep processes
// it at next. If the operator has reported already, it is done. It returns whether the entry changed.
func (e *Entry) MarkLapsed(now, next time.Time) bool {
	if !e.LapseDue(now) {
		return false
	}
	e.State, e.EverUnknown, e.NothingSent, e.Poll.At = Unknown, true, false, next
	e.addAttempt(CallAttempt{At: e.ReservedAt, Outcome: CallLapsed})
	if e.hasReport(e.Kind) {
		e.State, e.Poll.At = Done, time.Time{}
	}
	return true
}
