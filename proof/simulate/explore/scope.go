// Package explore explores every order of the outside calls of a few actors around one order of a merchant, with
// every position of a few faults. It does not sample. It runs the functions from the start for each path of choices,
// and leaves a path at a state that it knows (see search).
//
// Three rules keep it small, each without a loss. Single failures that the SDK repeats count only if all repeats fail.
// A crash before a call is the crash after the last call with an effect, or after the last wait. A call happens at once
// if no other actor of the world can reach its resource. Time passes in small steps to a timeout or a callback, or to
// the entry's next timer. An invocation that could make a step meanwhile has stalled, which is a fault. Only a callback
// that comes while others work stalls none of them.
package explore

import (
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/wiring"
	model "mobilegateway/world/dynamodb"
)

// Scope is a small world.
type Scope struct {
	// Kind is charge, sms, pay-web or pay-tpe.
	Kind string
	// Actors has a letter for each actor: R request (at most two), C callback, S sweep, L relay, A act of a person.
	Actors string
	// Faults is the greatest number of faults in a history.
	Faults int
	// Start is what came before: "" nothing, "accepted" a request with its response, "unknown" a request whose response
	// from the operator was lost, "reported" an accepted request and a callback.
	Start string
	// Jumps bounds how often time passes to the next timer of the entry; 0 is once.
	Jumps int
	// Full switches the reductions off, Paths also explores states that repeat again.
	Full, Paths bool
	// From and Until bound a part of the search by the values of the first choices of its paths. Until is not in the
	// part, nil does not bound it. A world is complete if its parts are, each explored by a process of its own.
	From, Until []int
	// Report, if set, gets the numbers of runs and states every 30 seconds of a long search. done is the part of the
	// search that is over, if all its branches are equally long.
	Report func(runs, states int, done float64)
	// Bug, if set, spoils the client of the tables, for a proof that the search finds a mistake.
	Bug func(wiring.DynamoDB) wiring.DynamoDB
}

// String names the world.
func (s Scope) String() string {
	text := s.Kind + " " + s.Actors
	if s.Start != "" {
		text += " after " + s.Start
	}
	return text
}

// Exploration is the result of a search.
type Exploration struct {
	Runs, States, Ends, Depth int
	// Long is the number of ends that needed a long quiet end.
	Long int
	// Violation is the first one, nil for none, and Story is its history.
	Violation error
	Story     []string
	// Complete is false if the search stopped at a violation or at its greatest number of runs.
	Complete bool
	// Finals has the hashes of all states in which all actors have ended.
	Finals map[uint64]bool
}

// World is what a search needs of a world, beside its deployment.
type World interface {
	// Shop is the merchant of the order. Add makes an order, and Take takes in a copy of one.
	Shop() *fixture.Shop
	Add(s *fixture.Shop, function string, number int) *merchants.Order
	Take(o *merchants.Order) *merchants.Order
	// Operator and Server are the models of a host, nil for none.
	Operator(host string) *outside.Operator
	Server(host string) *outside.MerchantServer
	// RespondedAgain and CalledBack check a response, and the status of the response to a callback.
	RespondedAgain(o *merchants.Order, response outside.Response)
	CalledBack(callback outside.Callback, status int)
	// Follow follows the changes since the last step. Observe also lets the stream and the schedule continue.
	// AtEnd checks what must hold at the end.
	Follow(wake func(*model.Change))
	Observe() error
	AtEnd()
	// HasEffects checks the number of an order's effects at the end.
	HasEffects(o *merchants.Order, effects int)
	// Resume lets everything else continue, with the records and the callbacks that are still to come. The engineer
	// works at the last round, or at each round after the end of the faults.
	Resume(records []*model.Change, o *outside.Operator, callbacks []outside.Callback, hasAllRounds bool)
	// Retry requests an order again after a wait.
	Retry(o *merchants.Order, wait time.Duration)
}

// Maker makes a world. Call it in a bubble of testing/synctest.
type Maker func() (*deployment.Deployment, World)
