package ledger

import (
	"cmp"
	"slices"
	"time"
)

// ClaimFlagAfter is how long an open claim of success is looked up like a pending payment. From then on it is flagged
// for a person (decision "pay-claims"). FlaggedClaimInterval is the time between its lookups from then on.
const (
	ClaimFlagAfter       = 48 * time.Hour
	FlaggedClaimInterval = 24 * time.Hour
)

// MaxConflicts bounds the conflicts of an entry. Each is kept once, and there are fewer kinds of them.
const MaxConflicts = 20

// The reasons and the sources of conflicts.
const (
	reasonFinal       = "final"
	reasonUnconfirmed = "unconfirmed"
	sourceCallback    = "callback"
	sourceLookup      = "getStatus"
	sourceResponse    = SourceResponse
	sourceManual      = "manual"
)

// SourceResponse is the source of a report that the operator's response to our own call made.
const SourceResponse = "response"

// FailureReason is why a payment was not paid, in the word that the merchant gets (decision "pay-failure-reason").
type FailureReason string

// The reasons. The values are stored and sent.
const (
	RefusedByPayer FailureReason = "refused-by-payer"
	NotEnoughFunds FailureReason = "not-enough-funds"
	LimitReached   FailureReason = "limit"
	WalletUnknown  FailureReason = "wallet-unknown"
	TimedOut       FailureReason = "timed-out"
	OperatorError  FailureReason = "operator-error" // never stored: every failure without another reason
)

// WhyNotPaid returns why a payment has a status: the operator's reason for Failed, and the reason that Cancelled and
// Expired imply. It is "" for every other status.
func (e *Entry) WhyNotPaid(status Status) FailureReason {
	switch status {
	case Failed:
		return cmp.Or(e.FailureReason, OperatorError)
	case Cancelled:
		return RefusedByPayer
	case Expired:
		return TimedOut
	default:
		return ""
	}
}

// Effect is the effect of a report about a payment or an SMS.
type Effect int

// The effects. After Unchanged there is nothing to write.
const (
	Unchanged   Effect = iota // known already, or without meaning: respond 200
	Applied                   // the status changed, and the merchant must be notified
	Conflicting               // kept as a conflict and not applied: alarm
)

// StatusReport is a final status of a payment with the values that the operator reported along with it.
type StatusReport struct {
	Status Status // Successful, Failed, Cancelled or Expired
	Source string // "callback", "getStatus" or SourceResponse
	// HasAmount is true if the operator reported the amount. AmountMinor is in the currency's minor units, -1 if the
	// text was not an amount. Currency is "" if none was reported.
	HasAmount   bool
	AmountMinor int64
	Currency    string
	// OperatorReference and MSISDN (of the payer) are "" if they were not reported.
	OperatorReference string
	MSISDN            string
	// UserSMS is true if the payer must get an SMS about a success, because the operator sends none itself.
	UserSMS bool
	// FailureReason goes with Failed; "" if the operator reported none that we know.
	FailureReason FailureReason
}

// ApplyFinalStatus applies a confirmed final status of a payment (decisions "pay-statuses" and "pay-claims"). Applied:
// the status is final, and its notification is in the outbox, for FastLease the relay's. A report with another final
// status, amount or currency than ours is kept as a conflict and never applied. After a release only a success applies:
// a failure adds nothing to "certainly not applied".
func (e *Entry) ApplyFinalStatus(r StatusReport, now time.Time) Effect {
	if e.Kind != Payment || !r.Status.endsPayment() {
		return Unchanged
	}
	if reason := e.mismatch(r); reason != "" {
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
	e.applyFinal(r, now)
	return Applied
}

// ContradictionsSince counts what contradicts the entry as it was before: new conflicts, and a success after a release,
// which was wrong to say that nothing was applied.
func (e *Entry) ContradictionsSince(before Entry) int {
	count := len(e.Conflicts) - len(before.Conflicts)
	if before.State == Released && e.Status == Successful {
		count++
	}
	return count
}

// rejectClaim ends an open claim of success on a released payment after the operator has confirmed the release: no
// lookup is left to make. Without a claim it is Unchanged.
func (e *Entry) rejectClaim(now time.Time) Effect {
	if e.Claim.Status == "" {
		return Unchanged
	}
	e.addUnconfirmed(e.Claim.Status, now)
	e.Claim, e.PollAt, e.PollAttempts = Claim{}, time.Time{}, 0
	e.Reschedule()
	return Conflicting
}

// applyFinal makes the status final, and queues the notification and the payer's SMS.
func (e *Entry) applyFinal(r StatusReport, now time.Time) {
	e.OperatorReference = cmp.Or(e.OperatorReference, r.OperatorReference, e.Claim.OperatorReference)
	e.MSISDNReported = cmp.Or(r.MSISDN, e.Claim.MSISDN, e.MSISDNReported)
	e.Status, e.FinalAt = r.Status, now
	if r.Status == Failed {
		e.FailureReason = r.FailureReason
	}
	e.Claim, e.PollAt, e.PollAttempts = Claim{}, time.Time{}, 0
	if !e.Leased(now) {
		e.State = Done
	}
	e.enqueue(r.Status, now)
	if r.Status == Successful && r.UserSMS && e.PayerMSISDN() != "" {
		e.UserSMS, e.UserSMSAt = UserSMSDue, now.Add(FastLease)
	}
	e.Reschedule()
}

// PayerMSISDN is the payer's number for the SMS about a success: user_msisdn as sent, or else the number that the
// operator reported; "" for none (decision "user-sms").
func (e *Entry) PayerMSISDN() string { return cmp.Or(e.MSISDN, e.MSISDNReported) }

// AddClaim keeps a callback's claim until a lookup confirms it; the first is at claim.CheckAt. Applied: the claim was
// stored. A success replaces every other claim, and no claim replaces it. The replaced or refused claim is kept as a
// conflict, as is a claim against a final status.
func (e *Entry) AddClaim(claim Claim, now time.Time) Effect {
	known := claim.Status == e.Status || claim.Status == e.Claim.Status
	if e.Kind != Payment || !claim.Status.endsPayment() || known {
		return Unchanged
	}
	if e.StatusFinal() {
		return e.recordConflict(Conflict{Status: claim.Status, Reason: reasonFinal, Source: sourceCallback, At: now})
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
	e.Claim, e.PollAttempts = claim, 0 // there is news, so the schedule of lookups starts again
	e.Reschedule()
	return Applied
}

// ReschedulePoll records a lookup without a final result, or one that is about to be made: the next one, also that of
// an open claim, is at next.
func (e *Entry) ReschedulePoll(next time.Time) {
	if !e.pollable() && !e.claimOpen() {
		return
	}
	e.PollAt = next
	e.PollAttempts++
	if e.claimOpen() {
		e.Claim.CheckAt = next
	}
	e.Reschedule()
}

// Expire ends a payment at the end of its lifetime, if a successful getStatus still reports it as pending or does not
// know it (decision "pay-poll"). Unchanged: it is too early, the status is final, or a claim of success is open.
func (e *Entry) Expire(lifetime time.Duration, now time.Time) Effect {
	if now.Sub(e.ReservedAt) < lifetime || e.Claim.Status == Successful || e.StatusFinal() {
		return Unchanged
	}
	return e.ApplyFinalStatus(StatusReport{Status: Expired, Source: sourceLookup}, now)
}

// EndNeverSent ends an unknown payment that certainly never reached its operator, or whose page no payer has got
// (decisions "never-sent" and "inert-payments"). If the merchant has got 201, the payment is failed. Otherwise it is
// released, so that a retry may send it. Unchanged: the payment is not unknown, or an open claim speaks against it, or
// that the operator knew its key.
func (e *Entry) EndNeverSent(now time.Time) Effect {
	if e.Kind != Payment || e.State != Unknown || e.StatusFinal() || e.Claim.Status != "" || e.KeyTaken {
		return Unchanged
	}
	e.EverUnknown, e.NothingSent = false, false
	if e.ResponseStatus != 0 {
		return e.ApplyFinalStatus(StatusReport{Status: Failed, Source: sourceLookup}, now)
	}
	e.State, e.PollAt, e.PollAttempts = Released, time.Time{}, 0
	e.Reschedule()
	return Applied
}

// ClaimFlagged is true if an open claim of success needs a person: no lookup has confirmed it for ClaimFlagAfter. The
// claim ends by a final lookup or a person, never by time.
func (e *Entry) ClaimFlagged(now time.Time) bool {
	return e.Claim.Status == Successful && !now.Before(e.Claim.At.Add(ClaimFlagAfter))
}

// Contradicts is true if the report has another amount or currency than the entry.
func (r StatusReport) Contradicts(e *Entry) bool { return e.mismatch(r) != "" }

// mismatch names the value of the report that differs from ours: "amount", "currency", or "" for neither.
func (e *Entry) mismatch(r StatusReport) string {
	switch {
	case r.Currency != "" && r.Currency != e.Currency:
		return "currency"
	case r.HasAmount && r.AmountMinor != e.AmountMinor:
		return "amount"
	default:
		return ""
	}
}

// addUnconfirmed keeps a callback's claim that no lookup confirmed.
func (e *Entry) addUnconfirmed(claimed Status, now time.Time) Effect {
	return e.recordConflict(Conflict{Status: claimed, Reason: reasonUnconfirmed, Source: sourceCallback, At: now})
}

// recordConflict is addConflict as an Effect: a known conflict is Unchanged, so that a repeated callback alarms once.
func (e *Entry) recordConflict(c Conflict) Effect {
	if !e.addConflict(c) {
		return Unchanged
	}
	return Conflicting
}

// addConflict keeps a conflict unless it is kept already, and returns whether it did.
func (e *Entry) addConflict(c Conflict) bool {
	known := slices.ContainsFunc(e.Conflicts, func(kept Conflict) bool {
		kept.At = c.At
		return kept == c
	})
	if known || len(e.Conflicts) >= MaxConflicts {
		return false
	}
	e.Conflicts = append(e.Conflicts, c)
	return true
}
