package ledger

import "time"

// UserSMSClaim is a claim of an attempt to send the payer's SMS. The pair of Attempts and OpenClaims is its fence, as
// of a DeliveryClaim. MayHaveBeenSent is true if an earlier attempt may have reached the operator.
type UserSMSClaim struct {
	Attempts        int
	OpenClaims      int
	MayHaveBeenSent bool
}

// UserSMSClaim is the claim on the payer's SMS as it is. The relay uses it during FastLease, without a write. The
// relay's own attempt leaves no trace if it dies, so a claimed first attempt may follow one.
func (e *Entry) UserSMSClaim() UserSMSClaim {
	afterRelay := e.UserSMSClaims == 1 && e.UserSMSAttempts == 0 && e.NotifyURL != ""
	return UserSMSClaim{
		Attempts: e.UserSMSAttempts, OpenClaims: e.UserSMSClaims,
		MayHaveBeenSent: e.UserSMSMaybeSent || e.UserSMSClaims > 1 || afterRelay,
	}
}

// UserSMSAttemptDue is true if the payer's SMS is due for an attempt.
func (e *Entry) UserSMSAttemptDue(now time.Time) bool {
	return e.UserSMS == UserSMSDue && !e.UserSMSAt.After(now)
}

// ClaimUserSMS makes the next attempt at the payer's SMS the caller's: no other caller claims it before the claim's
// lease has ended. After MaxOpenClaims claims without an outcome the SMS becomes unknown instead. claim is nil if there
// is nothing to send. changed is true if the entry changed.
func (e *Entry) ClaimUserSMS(now time.Time) (claim *UserSMSClaim, changed bool) {
	if !e.UserSMSAttemptDue(now) {
		return nil, false
	}
	if e.UserSMSClaims >= MaxOpenClaims {
		e.UserSMS, e.UserSMSAt = UserSMSUnknown, time.Time{}
		e.Reschedule()
		return nil, true
	}
	e.UserSMSClaims++
	e.UserSMSAt = now.Add(claimLease(e.UserSMSClaims))
	e.Reschedule()
	claimed := e.UserSMSClaim()
	return &claimed, true
}

// PostponeUserSMS moves a due SMS to next without counting an attempt. It returns whether it was due.
func (e *Entry) PostponeUserSMS(now, next time.Time) bool {
	if !e.UserSMSAttemptDue(now) {
		return false
	}
	e.UserSMSAt = next
	e.Reschedule()
	return true
}

// UserSMSOutcome is the outcome of an attempt to send the payer's SMS. State is permanent, or UserSMSDue for a retry at
// NextAttemptAt. MaybeSent is true if this attempt may have reached the operator without proof.
type UserSMSOutcome struct {
	State         UserSMSState
	NextAttemptAt time.Time
	MaybeSent     bool
}

// RecordUserSMS records the outcome of a claimed attempt. A sent SMS always counts. Any other outcome is dropped if the
// attempt was claimed again or has an outcome. It returns whether the entry changed.
func (e *Entry) RecordUserSMS(claim UserSMSClaim, outcome UserSMSOutcome) bool {
	switch {
	case e.UserSMS == "" || e.UserSMS == UserSMSSent:
		return false
	case outcome.State == UserSMSSent:
	case e.UserSMS != UserSMSDue || e.UserSMSAttempts != claim.Attempts || e.UserSMSClaims != claim.OpenClaims:
		return false
	}
	e.UserSMSMaybeSent = claim.MayHaveBeenSent || e.UserSMSMaybeSent || outcome.MaybeSent
	e.UserSMS, e.UserSMSAt = outcome.State, time.Time{}
	e.UserSMSAttempts, e.UserSMSClaims = claim.Attempts+1, 0
	if outcome.State == UserSMSDue {
		e.UserSMSAt = outcome.NextAttemptAt
	}
	e.Reschedule()
	return true
}
