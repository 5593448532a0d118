package ledger

import "time"

// MaxConflicts bounds the conflicts kept in an entry. Each is kept once, and there are fewer kinds of them.
const MaxConflicts = 20

// Effect says what a report about a payment or an SMS changed.
type Effect int

// What a report can do. With Same the entry is untouched: nothing need be written.
const (
	Unchanged   Effect = iota // known already, or without meaning: answer 200, write nothing
	Applied                   // the status changed; the merchant is to be told
	Conflicting               // kept as a conflict and not applied: alarm
)

// StatusReport is a payment's final status with what the operator told along with it.
type StatusReport struct {
	Status Status // Successful, Failed, Cancelled or Expired
	Source string // "callback" or "getStatus"
	// HasAmount is true where the operator told the amount; Minor is in the currency's minor units, -1 where the text
	// was not an amount at all. Currency is "" where it told none.
	HasAmount   bool
	AmountMinor int64
	Currency    string
	// OperatorReference and MSISDN (of the purchaser) are "" where it told none.
	OperatorReference string
	MSISDN            string
	// UserSMS is true where the purchaser is owed an SMS for a success: the operator does not send it itself.
	UserSMS bool
}

// ApplyFinalStatus applies a confirmed final status of a payment (decisions "pay-statuses" and "pay-claims"). Applied: the status
// is final, and its notification stands in the outbox, the relay's for FastLease. Another final status, amount or
// currency than ours is kept as a conflict and never applied. After a release only a success applies: the request was
// certainly not applied, and a failure says no more than that.
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
		return e.recordConflict(Conflict{Status: r.Status, Reason: "final", Source: r.Source, At: now})
	}
	if e.State == Released && r.Status != Successful {
		return e.rejectClaim(now)
	}
	if e.Claim.Status != "" && e.Claim.Status != r.Status {
		e.addConflict(Conflict{Status: e.Claim.Status, Reason: "unconfirmed", Source: "callback", At: now})
	}
	e.applyFinal(r, now)
	return Applied
}

// rejectClaim ends an open claim of success after a release, which the operator's own word now confirms: nothing is left
// to be asked about. Without a claim it is Same.
func (e *Entry) rejectClaim(now time.Time) Effect {
	if e.Claim.Status == "" {
		return Unchanged
	}
	e.addConflict(Conflict{Status: e.Claim.Status, Reason: "unconfirmed", Source: "callback", At: now})
	e.Claim, e.PollAt, e.PollAttempts = Claim{}, time.Time{}, 0
	e.Reschedule()
	return Conflicting
}

// applyFinal makes the status final and appends what follows from it.
func (e *Entry) applyFinal(r StatusReport, now time.Time) {
	e.OperatorReference = firstOf(e.OperatorReference, r.OperatorReference, e.Claim.OperatorReference)
	e.MSISDNReported = firstOf(r.MSISDN, e.Claim.MSISDN, e.MSISDNReported)
	e.Status, e.FinalAt = r.Status, now
	e.Claim, e.PollAt, e.PollAttempts = Claim{}, time.Time{}, 0
	if !e.Leased(now) {
		e.State = Done
	}
	e.enqueue(r.Status, now)
	if r.Status == Successful && r.UserSMS && e.PurchaserMSISDN() != "" {
		e.UserSMS, e.UserSMSAt, e.UserSMSAttempts = UserSMSDue, now.Add(FastLease), 0
	}
	e.Reschedule()
}

// PurchaserMSISDN is the number to tell about a success: user_msisdn as sent, or else the one the operator gave; "" for
// none (decision "user-sms").
func (e *Entry) PurchaserMSISDN() string { return firstOf(e.MSISDN, e.MSISDNReported) }

// AddClaim keeps a callback's claim that is not confirmed yet; getStatus is asked about it at claim.Due. Applied: the
// claim was stored. A success is never displaced by another claim, and displaces any; the one that gives way is kept as
// a conflict, as is a claim against a final status.
func (e *Entry) AddClaim(claim Claim, now time.Time) Effect {
	if e.Kind != Payment || !claim.Status.endsPayment() || claim.Status == e.Status || claim.Status == e.Claim.Status {
		return Unchanged
	}
	if e.StatusFinal() {
		return e.recordConflict(Conflict{Status: claim.Status, Reason: "final", Source: "callback", At: now})
	}
	if e.State == Released && claim.Status != Successful {
		return Unchanged
	}
	if e.Claim.Status != "" {
		if claim.Status != Successful {
			return e.recordConflict(Conflict{Status: claim.Status, Reason: "unconfirmed", Source: "callback", At: now})
		}
		e.addConflict(Conflict{Status: e.Claim.Status, Reason: "unconfirmed", Source: "callback", At: now})
	}
	claim.At = now
	e.Claim, e.PollAttempts = claim, 0 // the schedule of lookups begins anew: something has happened
	e.Reschedule()
	return Applied
}

// ReschedulePoll notes a lookup that settled nothing, or is about to be made: the next one is at next, for an open claim too.
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

// Expire ends a payment that an answered getStatus still calls pending (or does not know) at the end of its lifetime
// (decision "pay-poll"). Same: it is too early, the status is final, or a claim of success is open.
func (e *Entry) Expire(lifetime time.Duration, now time.Time) Effect {
	if now.Sub(e.ReservedAt) < lifetime || e.Claim.Status == Successful || e.StatusFinal() {
		return Unchanged
	}
	return e.ApplyFinalStatus(StatusReport{Status: Expired, Source: "getStatus"}, now)
}

// mismatch names what the operator told otherwise than we asked: "amount", "currency", or "" for neither.
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

// recordConflict keeps a conflict. One that is kept already is Same, so that a repeated callback alarms once.
func (e *Entry) recordConflict(c Conflict) Effect {
	if !e.addConflict(c) {
		return Unchanged
	}
	return Conflicting
}

// addConflict keeps a conflict unless it is kept already, and says whether it did.
func (e *Entry) addConflict(c Conflict) bool {
	for _, kept := range e.Conflicts {
		if kept.Status == c.Status && kept.Reason == c.Reason && kept.Source == c.Source {
			return false
		}
	}
	if len(e.Conflicts) >= MaxConflicts {
		return false
	}
	e.Conflicts = append(e.Conflicts, c)
	return true
}

// firstOf is the first text that is not empty.
func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// Contradicts is true where the operator told another amount or currency than the entry's.
func (r StatusReport) Contradicts(e *Entry) bool { return e.mismatch(r) != "" }
