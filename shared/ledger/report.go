package ledger

import (
	"cmp"
	"time"

	"mobilegateway/shared/money"
	"mobilegateway/shared/timeline"
)

// reportOutcomes are the statuses as Entry.Timeline has them.
var reportOutcomes = map[Status]timeline.Outcome{
	Pending: timeline.Pending, Successful: timeline.Successful, Failed: timeline.Failed,
	Cancelled: timeline.Cancelled, Expired: timeline.Expired, MessageWaiting: timeline.Waiting,
	DeliveredToNetwork: timeline.Network, DeliveredToTerminal: timeline.Terminal,
	DeliveryUncertain: timeline.Uncertain, DeliveryImpossible: timeline.Impossible,
	NotificationNotSupp: timeline.Unsupported,
}

// ReportOutcome returns a status as Entry.Timeline has it; timeline.UnknownStatus for another text.
func ReportOutcome(status Status) timeline.Outcome {
	return cmp.Or(reportOutcomes[status], timeline.UnknownStatus)
}

// AddReport adds a report to the timeline of an entry, which another change stores.
func (e *Entry) AddReport(report timeline.Event) {
	e.Timeline = e.Timeline.Add(e.reportTimes(), report)
}

// CompleteReport adds the outcome to a report that the timeline has without one.
func (e *Entry) CompleteReport(report timeline.Event) {
	e.Timeline = e.Timeline.Complete(e.reportTimes(), report)
}

// Reports returns the last reports of each kind.
func (e *Entry) Reports() []timeline.Event { return e.Timeline.Events(e.reportTimes()) }

func (e *Entry) reportTimes() timeline.Times {
	return timeline.Times{Created: e.CreatedAt, Final: e.FinalAt}
}

// ApplyFinalStatus applies a confirmed final status of a payment (decisions "pay-statuses" and "pay-claims"). Applied:
// the status is final, and its notification is in the outbox, for FastLease the relay's. A report with another final
// status, amount or currency than ours is kept as a conflict and never applied. After a release only a success applies:
// a failure adds nothing to "certainly not applied".
func (e *Entry) ApplyFinalStatus(r StatusReport, now time.Time) Effect {
	if e.Kind != Payment || !r.Status.endsPayment() {
		return Unchanged
	}
	if reason := e.contradiction(r); reason != "" {
		return e.recordConflict(Conflict{Status: r.Status, Reason: reason, Source: r.Source, At: now})
	}
	if e.StatusFinal() {
		if e.Status == r.Status {
			return Unchanged
		}
		return e.recordConflict(Conflict{Status: r.Status, Reason: reasonFinal, Source: r.Source, At: now})
	}
	if e.State == Released && r.Status != Successful {
		return e.rejectClaim(now)
	}
	if e.Claim.Status != "" && e.Claim.Status != r.Status {
		e.addUnconfirmed(e.Claim.Status, now)
	}
	r.makeFinal(e, now)
	return Applied
}

// makeFinal makes the status final, and queues the notification and the payer's SMS. The payer of a restored payment
// may have got that SMS before the loss, and a second one would not be recognised as a repeat.
func (r *StatusReport) makeFinal(e *Entry, now time.Time) {
	e.OperatorReference = cmp.Or(e.OperatorReference, r.OperatorReference, e.Claim.OperatorReference)
	e.Payer = cmp.Or(r.MSISDN, e.Claim.MSISDN, e.Payer)
	if e.lacksAmount() {
		e.Amount.Minor, e.Amount.AsSent = r.AmountMinor, money.Format(r.AmountMinor, e.Amount.Exponent)
	}
	e.Status, e.FinalAt = r.Status, now
	if r.Status == Failed {
		e.FailureReason = r.FailureReason
	}
	e.Claim, e.Poll = Claim{}, Poll{}
	if !e.Leased(now) {
		e.State = Done
	}
	e.Outbox.enqueue(e.Key, r.Status, now)
	if r.Status == Successful && r.UserSMS && e.PayerMSISDN() != "" && !e.Request.Restored() {
		e.UserSMS.State, e.UserSMS.At = UserSMSDue, now.Add(FastLease)
	}
}

// AddClaim keeps a callback's claim until a lookup confirms it; the first is at claim.CheckAt. Applied: the claim was
// stored. A success replaces every other claim, and no claim replaces it. The replaced or refused claim is kept as a
// conflict, as is a claim against a final status.
func (e *Entry) AddClaim(claim Claim, now time.Time) Effect {
	known := claim.Status == e.Status || claim.Status == e.Claim.Status
	if e.Kind != Payment || !claim.Status.endsPayment() || known {
		return Unchanged
	}
	if e.StatusFinal() {
		return e.recordConflict(Conflict{Status: claim.Status, Reason: reasonFinal, Source: SourceCallback, At: now})
	}
	if e.State == Released && claim.Status != Successful {
		return Unchanged
	}
	if e.Claim.Status != "" {
		if claim.Status != Successful {
			return e.addUnconfirmed(claim.Status, now)
		}
		e.addUnconfirmed(e.Claim.Status, now)
	}
	claim.At = now
	e.Claim, e.Poll.Attempts = claim, 0 // there is news, so the schedule of lookups starts again
	return Applied
}

// ReschedulePoll records a lookup without a final result, or one that is about to be made: the next one, also that of
// an open claim, is at next.
func (e *Entry) ReschedulePoll(next time.Time) {
	if !e.pollable(e.Kind, e.State) && !e.claimOpen() {
		return
	}
	e.Poll.At = next
	e.Poll.Attempts++
	if e.claimOpen() {
		e.Claim.CheckAt = next
	}
}

// Expire ends a payment at the end of its lifetime, if a successful getStatus still reports it as pending or does not
// know it (decision "pay-poll"). Unchanged: it is too early, the status is final, a claim of success is open, or the
// entry is restored.
func (e *Entry) Expire(lifetime time.Duration, now time.Time) Effect {
	if now.Sub(e.ReservedAt) < lifetime || e.Claim.Status == Successful || e.StatusFinal() || e.Request.Restored() {
		return Unchanged
	}
	return e.ApplyFinalStatus(StatusReport{Status: Expired, Source: SourceLookup}, now)
}

// EndNeverSent ends an unknown payment that certainly never reached its operator (decisions "never-sent" and
// "prepare"). If the merchant has got 201, the payment is failed. Otherwise it is released, so that a retry may send
// it. Unchanged: the payment is not unknown, it is restored, or an open claim or that the operator knew its key speaks
// against it.
func (e *Entry) EndNeverSent(now time.Time) Effect {
	if e.Kind != Payment || e.State != Unknown || e.StatusFinal() || e.Claim.Status != "" || e.ForeignKey ||
		e.Request.Restored() {
		return Unchanged
	}
	e.EverUnknown, e.NothingSent = false, false
	if e.Response.Status != 0 {
		return e.ApplyFinalStatus(StatusReport{Status: Failed, Source: SourceLookup}, now)
	}
	e.State, e.Poll = Released, Poll{}
	return Applied
}

// Contradicts is true if the report has another amount or currency than the entry.
func (r StatusReport) Contradicts(e *Entry) bool { return e.contradiction(r) != "" }

// lacksAmount is true for a restored entry without its amount.
func (e *Entry) lacksAmount() bool { return e.Amount.Minor == 0 && e.Request.Restored() }

// contradiction is Amount.mismatch. A restored entry without an amount takes that of the operator's report. Without
// one, only a person can make its status final.
func (e *Entry) contradiction(r StatusReport) string {
	if !e.lacksAmount() {
		return e.Amount.mismatch(r)
	}
	known := e.Amount
	known.Minor = r.AmountMinor
	if r.Source != SourceManual && r.AmountMinor <= 0 {
		return "amount"
	}
	return known.mismatch(r)
}

// UserSMSClaim is the claim on the payer's SMS as it is. The relay uses it during FastLease, without a write. The
// relay's own attempt leaves no trace if it dies, so a claimed first attempt may follow one.
func (e *Entry) UserSMSClaim() UserSMSClaim {
	s := e.UserSMS
	afterRelay := s.UnrecordedAttempts == 1 && s.Attempts == 0 && e.Outbox.URL != ""
	return UserSMSClaim{
		Attempts: s.Attempts, UnrecordedAttempts: s.UnrecordedAttempts,
		MayHaveBeenSent: s.MaybeSent || s.UnrecordedAttempts > 1 || afterRelay,
		Unleased:        s.UnrecordedAttempts == 0 && e.Outbox.URL != "",
	}
}

// ClaimUserSMS makes the next attempt at the payer's SMS the caller's: no other caller claims it before the claim's
// lease has ended. After MaxUnrecordedAttempts claims without an outcome the SMS becomes unknown instead (GivenUp).
// Otherwise UserSMSClaim is the claim. It returns whether the entry changed.
func (e *Entry) ClaimUserSMS(now time.Time) bool {
	if !e.UserSMS.Due(now) {
		return false
	}
	e.UserSMS.claim(now)
	return true
}

// ApplyReceipts applies delivery receipts in their order, and reports whether one of them changed the entry.
func (e *Entry) ApplyReceipts(statuses []Status, now time.Time) bool {
	changed := false
	for _, status := range statuses {
		changed = e.ApplyReceipt(status, now) == Applied || changed
	}
	return changed
}

// The waits before the next attempt to bind a message grow with its age, between these bounds.
const (
	FirstBindWait = time.Minute
	maxBindWait   = time.Hour
)

// BindDue is true if an SMS is due to be bound to its operator's id.
func (e *Entry) BindDue(now time.Time) bool { return reached(e.BindAt, now) }

// ClaimBind claims an attempt to bind an SMS by moving the next one, and returns false if none is due.
func (e *Entry) ClaimBind(now time.Time) bool {
	if !e.BindDue(now) {
		return false
	}
	e.BindAt = now.Add(min(max(now.Sub(e.SentAt), FirstBindWait), maxBindWait))
	return true
}

// RecordBound ends the attempts to bind an SMS, and applies the receipts that came before. It returns whether the entry
// changed.
func (e *Entry) RecordBound(early []Status, now time.Time) bool {
	changed := e.ApplyReceipts(early, now) || !e.BindAt.IsZero()
	e.BindAt = time.Time{}
	return changed
}

// ApplyReceipt applies an operator's delivery receipt (decision "sms-receipts"). A further status is Applied, and goes
// to the outbox once if the merchant requested receipts. The same status, a step back, and any status after a final one
// are Unchanged. It may come before the response to our own call. A receipt proves that the message was sent, so an
// unknown or released message becomes Done.
func (e *Entry) ApplyReceipt(status Status, now time.Time) Effect {
	if e.Kind != SMS || status.progress() <= e.Status.progress() {
		return Unchanged
	}
	e.Status = status
	if status.Final() {
		e.FinalAt = now
	}
	if e.State == Unknown || e.State == Released || e.LeaseLapsed(now) {
		e.State, e.Poll.At = Done, time.Time{}
	}
	e.Outbox.enqueue(e.Key, status, now)
	return Applied
}

// terminal is the progress of the final statuses of an SMS.
const terminal = 3

// progress orders the delivery statuses of an SMS: it only ever grows. 0: not a delivery status.
func (s Status) progress() int {
	switch s {
	case MessageWaiting:
		return 1
	case DeliveredToNetwork:
		return 2
	case DeliveredToTerminal, DeliveryUncertain, DeliveryImpossible, NotificationNotSupp:
		return terminal
	default:
		return 0
	}
}
