package ledger

import "time"

// UserSMS is the SMS to the payer of a successful payment (decision "user-sms").
type UserSMS struct {
	State              UserSMSState
	At                 time.Time // the next attempt while due
	Attempts           int       // attempts with a recorded outcome
	UnrecordedAttempts int       // claims since the last recorded outcome
	MaybeSent          bool      // an attempt may have reached the operator
}

// UserSMSState is the state of the SMS to the payer of a successful payment.
type UserSMSState string

// The states of the payer's SMS. Empty: none will be sent.
const (
	UserSMSDue     UserSMSState = "due"
	UserSMSSent    UserSMSState = "sent"
	UserSMSFailed  UserSMSState = "failed"
	UserSMSUnknown UserSMSState = "unknown"
)

// UserSMSClaim is a claim of an attempt to send the payer's SMS. The pair of Attempts and UnrecordedAttempts is its
// fence, as of a DeliveryClaim. MayHaveBeenSent is true if an earlier attempt may have reached the operator. Unleased
// is true of the relay's claim, which no write precedes. The stream may repeat its record, so the attempt may follow
// another one that left no trace.
type UserSMSClaim struct {
	Attempts           int
	UnrecordedAttempts int
	MayHaveBeenSent    bool
	Unleased           bool
}

// Due is true if the payer's SMS is due for an attempt.
func (s *UserSMS) Due(now time.Time) bool { return s.State == UserSMSDue && !s.At.After(now) }

// GivenUp is true if the payer's SMS ended without proof that it was sent.
func (s *UserSMS) GivenUp() bool { return s.State == UserSMSFailed || s.State == UserSMSUnknown }

// claim makes the next attempt the caller's, or the SMS unknown after MaxUnrecordedAttempts claims without an outcome.
func (s *UserSMS) claim(now time.Time) {
	if s.UnrecordedAttempts >= MaxUnrecordedAttempts {
		s.State, s.At = UserSMSUnknown, time.Time{}
		return
	}
	s.UnrecordedAttempts++
	s.At = now.Add(claimLease(s.UnrecordedAttempts))
}

// Postpone moves a due SMS to next without counting an attempt. It returns whether it was due.
func (s *UserSMS) Postpone(now, next time.Time) bool {
	if !s.Due(now) {
		return false
	}
	s.At = next
	return true
}

// UserSMSOutcome is the outcome of an attempt to send the payer's SMS. State is permanent, or UserSMSDue for a retry at
// NextAttemptAt. MaybeSent is true if this attempt, or one that it may follow, may have reached the operator without
// proof.
type UserSMSOutcome struct {
	State         UserSMSState
	NextAttemptAt time.Time
	MaybeSent     bool
}

// Record records the outcome of a claimed attempt. A sent SMS always counts. Any other outcome is dropped if the
// attempt was claimed again or has an outcome. It returns whether the SMS changed.
func (s *UserSMS) Record(claim UserSMSClaim, outcome UserSMSOutcome) bool {
	switch {
	case s.State == "" || s.State == UserSMSSent:
		return false
	case outcome.State == UserSMSSent:
	case s.State != UserSMSDue || s.Attempts != claim.Attempts || s.UnrecordedAttempts != claim.UnrecordedAttempts:
		return false
	}
	s.MaybeSent = claim.MayHaveBeenSent || s.MaybeSent || outcome.MaybeSent
	s.State, s.At = outcome.State, time.Time{}
	s.Attempts, s.UnrecordedAttempts = claim.Attempts+1, 0
	if outcome.State == UserSMSDue {
		s.At = outcome.NextAttemptAt
	}
	return true
}
