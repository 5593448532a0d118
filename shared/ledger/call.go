package ledger

import (
	"cmp"
	"slices"
	"time"
)

// Call is our call of the operator: who may make it, what its attempts proved, and what the operator returned.
type Call struct {
	State State
	// Owner is the fencing token of the attempt that owns the reservation, or owned it last.
	Owner      string
	LeaseUntil time.Time // while Reserved
	// EverUnknown is true after an attempt with an unknown outcome, until a proof that nothing was ever sent.
	EverUnknown bool
	// NothingSent qualifies EverUnknown: the operator responded to every attempt that it knew the key, or had not
	// applied it. So no send of ours can have reached it.
	NothingSent bool
	// ForeignKey is true once the operator has reported a duplicate before a send of ours can have reached it. The key
	// is another transaction's, so no later duplicate proves a send of ours (decision "sms-duplicate").
	ForeignKey bool
	// ReleasedBefore is true if an earlier attempt of the same request was released. It may have been sent, so the key
	// stays bound to its body (decision "released").
	ReleasedBefore bool
	// SentAt is the earliest time at which an attempt that may have been applied can have been sent. The resend window
	// starts at it (decision "repeat-window"). A release moves it, because earlier attempts were certainly not applied.
	SentAt time.Time
	// ReservedAt is the last reservation. A payment's lifetime starts at it, because the operator accepted it after
	// that.
	ReservedAt time.Time
	// Attempts are the attempts to call the operator, oldest first, at most MaxCallAttempts. It is empty after a first
	// attempt that succeeded. Nothing is decided by it.
	Attempts []CallAttempt
	// OperatorReference is the operator's own id: serverReferenceCode, Transaction-id or the last segment of
	// resourceURL.
	OperatorReference string
	// LateReference is that id of a payment whose final status came before the operator's response, without an id. Its
	// notification was queued without the id, and stays so: each attempt under one webhook-id has the same body.
	LateReference string
	// DriverData is what the operator's driver needs for every later call: the operator's own key of the payment, or
	// its page's token. "" for none.
	DriverData string
}

// Reference is the operator's own id of the transaction, early or late; "" for none.
func (c *Call) Reference() string { return cmp.Or(c.OperatorReference, c.LateReference) }

// MaxCallAttempts bounds the attempts to call the operator that an entry remembers: the first one and the latest.
const MaxCallAttempts = 10

// The outcomes of an attempt to call the operator, as its own response proved them. The entry's State may differ: after
// an unknown attempt, a later one that was not applied leaves it Unknown.
const (
	CallSucceeded  = "succeeded"
	CallRefused    = "refused"
	CallNotApplied = "not-applied"
	CallUnknown    = "unknown"
	CallNotSent    = "not-sent" // released before the call
	CallLapsed     = "lapsed"   // the lease ended without a stored outcome
)

// ReasonRejected is the reason of a call that the operator refused because of our credentials or our integration.
const ReasonRejected = "rejected"

// CallResult describes an operator call for people; the zero value is not kept. Nothing is decided by it.
type CallResult struct {
	Outcome    string // CallSucceeded ...
	Reason     string // one word, or the operator's message id; "" for none. It never has a value of the merchant's
	HTTPStatus int    // of the operator's response, 0 for none
	Response   int    // HTTP status of the response to the merchant, if the entry is released by it
	// Code is the operator's own code of a call that did not succeed, as timeline.Event has it.
	Code string
}

// CallAttempt is one finished attempt to call the operator. The JSON tags are stored names.
type CallAttempt struct {
	At         time.Time `json:"at"`           // when it was reserved
	Millis     int64     `json:"ms,omitzero"`  // until its outcome was recorded
	Outcome    string    `json:"oc"`           // CallSucceeded ...
	Reason     string    `json:"re,omitempty"` // why
	HTTPStatus int       `json:"hs,omitzero"`  // of the operator's response, 0 for none
	Response   int       `json:"rs,omitzero"`  // HTTP status of the response to the merchant, 0 if unknown
}

// outcomeUnknownResponse is the HTTP status of the response to the merchant while the outcome is unknown.
const outcomeUnknownResponse = 504

// Leased is true while an attempt owns the reservation: another one must wait.
func (c *Call) Leased(now time.Time) bool { return c.State == Reserved && now.Before(c.LeaseUntil) }

// LeaseLapsed is true if the lease ended without a stored outcome: the reservation counts as unknown.
func (c *Call) LeaseLapsed(now time.Time) bool {
	return c.State == Reserved && !now.Before(c.LeaseUntil)
}

// LapseMargin is how long after its lease's end the sweep marks a reservation as lapsed. A sweep whose clock is ahead
// by less than that does not touch a live reservation. A merchant's retry does not wait for it.
const LapseMargin = time.Minute

// LapseDue is true if the sweep may mark the reservation as lapsed.
func (c *Call) LapseDue(now time.Time) bool { return c.LeaseLapsed(now.Add(-LapseMargin)) }

// MayHaveSent is true if an earlier attempt can have reached the operator.
func (c *Call) MayHaveSent() bool { return c.EverUnknown && !c.NothingSent }

// StoreDriverData stores what the operator returned before the payment itself, for the owner of a live reservation. It
// returns false if another attempt owns the entry, or if the lease has ended: the caller must not pay then.
func (c *Call) StoreDriverData(owner, data string, now time.Time) bool {
	if c.Owner != owner || !c.Leased(now) {
		return false
	}
	c.DriverData = data
	return true
}

// record keeps the result of an attempt after its outcome was applied. A first attempt that succeeds is not kept: the
// entry itself describes it, and a finished charge must stay within one write unit. response is the status of the
// stored response. at is when the attempt was reserved, or now for a former owner's.
func (c *Call) record(result CallResult, response int, at, now time.Time) {
	if result == (CallResult{}) || result.Outcome == CallSucceeded && len(c.Attempts) == 0 {
		return
	}
	a := CallAttempt{
		At: at, Outcome: result.Outcome, Reason: result.Reason, HTTPStatus: result.HTTPStatus,
		Response: cmp.Or(response, outcomeUnknownResponse),
	}
	if response == 0 && c.State == Released {
		a.Response = result.Response
	}
	a.Millis = max(0, now.Sub(a.At).Milliseconds())
	c.addAttempt(a)
}

// addAttempt adds an attempt. The outcome of an attempt that was kept as lapsed replaces it.
func (c *Call) addAttempt(a CallAttempt) {
	c.Attempts = slices.DeleteFunc(slices.Clone(c.Attempts), func(kept CallAttempt) bool {
		return kept.Outcome == CallLapsed && kept.At.Equal(a.At)
	})
	c.Attempts = append(c.Attempts, a)
	if len(c.Attempts) > MaxCallAttempts {
		c.Attempts = slices.Delete(c.Attempts, 1, 2)
	}
}
