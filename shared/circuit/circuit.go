// Package circuit is the circuit breaker of an operation at a platform account (decision "circuit-breaker"). While an
// account does not respond, new transactions are refused at once, so that it does not hold the whole gateway.
//
// State is the pure state machine, which all processes share in one item of an account. Circuits is the view that one
// process has of it. The package does not depend on HTTP or DynamoDB; package circuit/dynamo stores the states. Its
// invariants: a healthy account costs no write, and a state that cannot be read or trusted counts as closed.
//
// A tool reads a state by Store.Load, Decode and Summarize. It opens and closes a circuit by Writer.Change.
package circuit

import "time"

const (
	// SlowAfter is how long an operator call waits until it counts as a failure. A later success takes that back.
	SlowAfter = 3 * time.Second
	// MaxOpenTime bounds the time for which a person opens a circuit.
	MaxOpenTime = 24 * time.Hour
	// Window is the time whose results decide whether a circuit opens.
	Window = windowSlots * slotLength * time.Millisecond
)

// The rules, with times in milliseconds.
const (
	// slotLength is the length of one slot of the results. A window has the last windowSlots slots, and with clocks
	// that differ also as many in the future.
	slotLength  = 5_000
	windowSlots = 6
	// waitSlots bounds how long a slow call counts as one that waits, because a process may die in it. A function ends
	// at most 20 s after the start of a call.
	waitSlots = 4
	// patienceSlots is how long a slow call that waits does not count among the 10: it has waited for 8 to 13 s then.
	patienceSlots = 2
	// minFailures is the number of failures in a window that opens a circuit, if they are also half of the results.
	minFailures = 10
	// suspectTime is how long all processes write their results after a failure.
	suspectTime int64 = 30_000
	// openTime is how long an open circuit takes no probe. After probeTime more it is closed without any evidence.
	openTime  int64 = 30_000
	probeTime int64 = 300_000
	// maxProbes bounds the outstanding probes. closingProbes of them must succeed before a circuit closes.
	maxProbes     = 3
	closingProbes = 3
	// maxClockSkew is the assumed difference between two clocks, each of which may be 20 s wrong. A time that is
	// further ahead is wrong.
	maxClockSkew int64 = 45_000
)

// Key names a circuit: an account as "platform/id", and one of the operations charge, pay and sms.
type Key struct{ Account, Operation string }

// Phase is what a circuit does now.
type Phase int

// The phases, from the zero value on.
const (
	Closed   Phase = iota // requests pass, and nothing is written
	Suspect               // requests pass, and their results are written
	Open                  // new transactions are refused
	HalfOpen              // a few new transactions pass as probes, and the others are refused
)

// String names the phase for people and tests.
func (p Phase) String() string {
	return [...]string{"closed", "suspect", "open", "half-open"}[p]
}

// Evidence is what an operator call shows about its account.
type Evidence int

// The kinds of evidence. None is for responses that show nothing: a rate limit, or refused credentials.
const (
	None      Evidence = iota
	Responded          // the platform responded
	Failed             // no connection, a cut one, or a 5xx without a readable code
	TimedOut           // our own time was over: a failure if the call was slow
)
