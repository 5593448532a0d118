package ledger

import (
	"cmp"
	"slices"
	"time"
)

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

// recordCall keeps the result of an attempt after its outcome was applied. A first attempt that succeeds is not kept:
// the entry itself describes it, and a finished charge must stay within one write unit. at is when the attempt was
// reserved, or now for a former owner's.
func (e *Entry) recordCall(result CallResult, at, now time.Time) {
	if result == (CallResult{}) || result.Outcome == CallSucceeded && len(e.CallAttempts) == 0 {
		return
	}
	a := CallAttempt{
		At: at, Outcome: result.Outcome, Reason: result.Reason, HTTPStatus: result.HTTPStatus,
		Response: cmp.Or(e.ResponseStatus, outcomeUnknownResponse),
	}
	if e.ResponseStatus == 0 && e.State == Released {
		a.Response = result.Response
	}
	a.Millis = max(0, now.Sub(a.At).Milliseconds())
	e.addCallAttempt(a)
}

// addCallAttempt adds an attempt. The outcome of an attempt that was kept as lapsed replaces it.
func (e *Entry) addCallAttempt(a CallAttempt) {
	e.CallAttempts = slices.DeleteFunc(slices.Clone(e.CallAttempts), func(kept CallAttempt) bool {
		return kept.Outcome == CallLapsed && kept.At.Equal(a.At)
	})
	e.CallAttempts = append(e.CallAttempts, a)
	if len(e.CallAttempts) > MaxCallAttempts {
		e.CallAttempts = slices.Delete(e.CallAttempts, 1, 2)
	}
}
