package ledger

import (
	"errors"
	"time"
)

// SourcePerson is the source of what a person settled.
const SourcePerson = "person"

// What a person can say of a charge or an SMS. Of a payment it is a final status: successful, failed or cancelled.
const (
	WordApplied    = "applied"
	WordNotApplied = "not-applied"
)

// Word is what a person said of an outcome that nobody knew, kept with the entry (decision "unknown-by-hand").
type Word struct {
	Said string    `json:"said,omitempty"`
	Who  string    `json:"who,omitempty"`
	Why  string    `json:"why,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// Judgement is a word with what else follows from it.
type Judgement struct {
	Word
	// AnswerStatus and AnswerBody are what the repeats of a charge that was not applied are told.
	AnswerStatus int
	AnswerBody   []byte
	// UserSMS is Resolution's.
	UserSMS bool
	// Lifetime is how long a payment that the operator accepted may stay pending before a person may end it.
	Lifetime time.Duration
}

// Why a person's word is not taken. The entry is then as it was.
var (
	ErrUnderWay = errors.New("an attempt is under way: wait until its lease has ended")
	ErrKnown    = errors.New("its outcome is known")
	ErrPending  = errors.New("it is pending, and its operator may still end it")
	ErrWord     = errors.New("this cannot be said of it")
)

// judgeMargin is how long after its lease's end an attempt still counts as under way for a person, whose own machine's clock
// decides.
const judgeMargin = 2 * time.Minute

// Doubtful is true where nobody knows what came of an entry: its outcome is unknown, its lease has lapsed, or a claim
// stands that getStatus has not confirmed.
func (e *Entry) Doubtful(now time.Time) bool {
	return !e.Settled() && (e.State == Unknown || e.Lapsed(now) || e.Claim.Status != "")
}

// Judge settles by a person's word what nobody else could (decision "unknown-by-hand"). What is known already, and what
// is being worked on, never gives way to it. A payment gets its final status, of which the merchant is told; a charge
// that was applied is done, and has its answer made by the merchant's own repeat; one that was not is refused for good; a
// message was sent, or is DeliveryImpossible, of which the merchant is told. An error stores nothing.
func (e *Entry) Judge(j Judgement, now time.Time) error {
	if e.Live(now.Add(-judgeMargin)) {
		return ErrUnderWay
	}
	if e.Kind == Payment {
		return e.judgePayment(j, now)
	}
	if j.Said != WordApplied && j.Said != WordNotApplied {
		return ErrWord
	}
	if !e.Doubtful(now) {
		return ErrKnown
	}
	applied := j.Said == WordApplied
	changed := false
	switch {
	case e.Kind == Charge && applied:
		changed = e.Settle(e.Owner, Settlement{State: Done}, now)
	case e.Kind == Charge && j.AnswerStatus != 0:
		changed = e.Settle(e.Owner, Settlement{State: Refused, AnswerStatus: j.AnswerStatus, AnswerBody: j.AnswerBody}, now)
	case e.Kind == SMS && applied:
		const created = 201 // as if the operator had answered; a message's answer is never sent again
		changed = e.Settle(e.Owner, Settlement{State: Done, Status: MessageWaiting, AnswerStatus: created}, now)
	case e.Kind == SMS:
		changed = e.Receipt(DeliveryImpossible, now) == Applied
	}
	if !changed {
		return ErrWord
	}
	e.keepWord(j.Word, now)
	return nil
}

// judgePayment is Judge for a payment. One that was released was certainly not applied: only a success says more.
func (e *Entry) judgePayment(j Judgement, now time.Time) error {
	status := Status(j.Said)
	switch {
	case status != Successful && status != Failed && status != Cancelled:
		return ErrWord
	case e.Settled():
		return ErrKnown
	case e.State == Done && !e.Doubtful(now) && now.Sub(e.ReservedAt) < j.Lifetime:
		return ErrPending
	}
	if e.Resolve(Resolution{Status: status, Source: SourcePerson, UserSMS: j.UserSMS}, now) != Applied {
		return ErrKnown
	}
	e.keepWord(j.Word, now)
	return nil
}

func (e *Entry) keepWord(w Word, now time.Time) {
	w.At = now
	e.Word = w
}
