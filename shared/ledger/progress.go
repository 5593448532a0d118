package ledger

import (
	"cmp"
	"slices"
	"time"
)

// Progress is what the merchant is notified of, and what the operator has reported so far.
type Progress struct {
	Status  Status
	FinalAt time.Time // when Status became final
	// FailureReason is why a payment is Failed, as its operator reported it; "" for no reason that we know. WhyNotPaid
	// is for readers.
	FailureReason FailureReason
	Payer         string // the payer's number as the callback or getStatus reported it
	// Claim is a status that an operator's callback claimed and no lookup has confirmed yet. Conflicts are the reports
	// that contradicted a final status or our amount, oldest first, at most MaxConflicts.
	Claim     Claim
	Conflicts []Conflict
	Poll      Poll
}

// The JSON tags below are stored names, short for the item's size. docs/operations.md has them beside the long names.

// Claim is a status that an operator's callback claimed. A lookup must confirm it.
type Claim struct {
	Status            Status    `json:"su,omitempty"`
	OperatorReference string    `json:"opr,omitempty"`
	MSISDN            string    `json:"mn,omitempty"`
	At                time.Time `json:"at,omitzero"`
	CheckAt           time.Time `json:"ck,omitzero"` // the next lookup for it
}

// Conflict is a report that was kept and never applied.
type Conflict struct {
	Status Status    `json:"su"`
	Reason string    `json:"re"` // "final", "amount", "currency", "unconfirmed"
	Source string    `json:"so"` // SourceCallback ...
	At     time.Time `json:"at"`
}

// Poll is the next lookup of a payment that is pending or unknown. For another unknown entry it is the next time that
// the sweep lists it for a person. Attempts counts both.
type Poll struct {
	At       time.Time
	Attempts int
}

// ClaimFlagAfter is how long an open claim of success is looked up like a pending payment. From then on it is flagged
// for a person (decision "pay-claims"). FlaggedClaimInterval is the time between its lookups from then on.
const (
	ClaimFlagAfter       = 48 * time.Hour
	FlaggedClaimInterval = 24 * time.Hour
)

// MaxConflicts bounds the conflicts of an entry. Each is kept once, and there are fewer kinds of them.
const MaxConflicts = 20

// The reasons of conflicts.
const (
	reasonFinal       = "final"
	reasonUnconfirmed = "unconfirmed"
)

// The sources of a report, as conflicts name them. The values are stored.
const (
	SourceCallback = "callback"
	SourceLookup   = "getStatus"
	SourceResponse = "response" // the operator's response to our own call
	SourceManual   = "manual"
)

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
func (p *Progress) WhyNotPaid(status Status) FailureReason {
	switch status {
	case Failed:
		return cmp.Or(p.FailureReason, OperatorError)
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
	Source string // SourceCallback ...
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

// Amount is what the payer pays, in minor units with the currency's exponent, and as it was sent.
type Amount struct {
	Minor    int64
	Exponent int
	Currency string
	AsSent   string
	// CountsDaily is true if the amount counts against its merchant's limit of SentAt's day. Like SentAt, it is fixed
	// by the first reservation, and again after a release (decision "merchant-limits").
	CountsDaily bool
}

// mismatch names the value of the report that differs from ours: "amount", "currency", or "" for neither.
func (a Amount) mismatch(r StatusReport) string {
	switch {
	case r.Currency != "" && r.Currency != a.Currency:
		return "currency"
	case r.HasAmount && r.AmountMinor != a.Minor:
		return "amount"
	default:
		return ""
	}
}

// StatusFinal is true if the entry's status is final. State is another dimension: a charge that is Done has no status.
func (p *Progress) StatusFinal() bool { return p.Status.Final() }

// hasReport is true if the operator reported the result other than in its response to our call: a payment's final
// status, or any receipt of an SMS.
func (p *Progress) hasReport(kind Kind) bool {
	switch kind {
	case Payment:
		return p.StatusFinal()
	case SMS:
		return p.Status != ""
	default:
		return false
	}
}

// contradictsRefusal is true if the operator has reported or claimed a success: its refusal then does not apply.
func (p *Progress) contradictsRefusal(kind Kind) bool {
	return p.Status == Successful || p.Claim.Status == Successful || (kind == SMS && p.Status != "")
}

// pollable is true while Poll.At counts: a payment's status is not final, or another entry is unknown and waits for its
// merchant's retry or a manual resolution. A reservation has its lease instead.
func (p *Progress) pollable(kind Kind, state State) bool {
	if kind == Payment {
		return state != Reserved && !p.StatusFinal()
	}
	return state == Unknown
}

// claimOpen is true while a claim waits for its confirmation, also during a reservation.
func (p *Progress) claimOpen() bool { return p.Claim.Status != "" && !p.StatusFinal() }

// ClaimFlagged is true if an open claim of success needs a person: no lookup has confirmed it for ClaimFlagAfter. The
// claim ends by a final lookup or a person, never by time.
func (p *Progress) ClaimFlagged(now time.Time) bool {
	return p.Claim.Status == Successful && !now.Before(p.Claim.At.Add(ClaimFlagAfter))
}

// rejectClaim ends an open claim of success on a released payment after the operator has confirmed the release: no
// lookup is left to make. Without a claim it is Unchanged.
func (p *Progress) rejectClaim(now time.Time) Effect {
	if p.Claim.Status == "" {
		return Unchanged
	}
	p.addUnconfirmed(p.Claim.Status, now)
	p.Claim, p.Poll = Claim{}, Poll{}
	return Conflicting
}

// addUnconfirmed keeps a callback's claim that no lookup confirmed.
func (p *Progress) addUnconfirmed(claimed Status, now time.Time) Effect {
	return p.recordConflict(Conflict{Status: claimed, Reason: reasonUnconfirmed, Source: SourceCallback, At: now})
}

// recordConflict is addConflict as an Effect: a known conflict is Unchanged, so that a repeated callback alarms once.
func (p *Progress) recordConflict(c Conflict) Effect {
	if !p.addConflict(c) {
		return Unchanged
	}
	return Conflicting
}

// addConflict keeps a conflict unless it is kept already, and returns whether it did.
func (p *Progress) addConflict(c Conflict) bool {
	known := slices.ContainsFunc(p.Conflicts, func(kept Conflict) bool {
		kept.At = c.At
		return kept == c
	})
	if known || len(p.Conflicts) >= MaxConflicts {
		return false
	}
	p.Conflicts = append(p.Conflicts, c)
	return true
}
