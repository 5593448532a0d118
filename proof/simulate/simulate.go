// Package simulate runs the functions of the gateway, the code that ships, in a simulated world: clock, scheduler,
// DynamoDB, Secrets Manager, operators, merchants' servers, stream and schedule. A tape of choices decides what fails
// and in which order things happen, so the same seed gives the same history.
//
// A history has a time of faults, and then a time without faults in which everything must come to its end. Invariants
// are checked after every step and at the end; docs/reliability.md lists them. The package is for tests: a history runs
// in a bubble of testing/synctest.
//
// Three words name what goes wrong:
//
//	word    where                          drawn by                            understood by
//	fault   outside/fault.go               a model, at each call by its rate   outside; faultTable has their hazards
//	hazard  hazards/hazards.go             hazards.Draw, once in a history     what its plan sets
//	hazard  world/operators/kit/hazard.go  outside, by a fault or an outcome   the sandbox; other stubs name none
//	quirk   Quirks in the Spec of a stub   operators/stubs.go, once a history  that stub
package simulate

import (
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/plan"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
)

// Options select a history.
type Options struct {
	// Story keeps a line for each event.
	Story bool
	// Platforms mixes payments by the operators' platforms with orders by the gateway's protocol.
	Platforms bool
	// LostRetries lets an engineer run what restore check does with the entries that are present.
	LostRetries bool
	// Without are the places of orders whose clients send nothing.
	Without []int
}

// Result is what a history showed.
type Result struct {
	Violation error
	Choices   []int
	// Story has all lines, and Related those about what was violated.
	Story, Related []string
	Counts         history.Counts
	Orders         int
	Simulated      time.Duration
	// Faults has the number of injected faults by kind, and Sites the outside calls of functions.
	Faults map[string]int
	Sites  history.Sites
	Rows   map[string]int // the writes of entries, by the row of the table of transitions
}

// Run runs one history. Call it in a bubble of testing/synctest.
func Run(choices *tape.Tape, options Options) Result {
	w := world.New(choices)
	w.HasStory, w.Merchants.Without = options.Story, options.Without
	if options.Platforms {
		plan.DrawPlatforms(w)
	} else {
		plan.Draw(w)
	}
	if options.LostRetries {
		w.Engineers.PlanLostRetries(90*time.Second, 60)
	}
	w.Run()
	return Result{
		Violation: w.Violation, Choices: choices.Values(), Story: w.Story, Related: relatedLines(w), Counts: w.Counts,
		Orders: len(w.Merchants.Orders), Simulated: time.Since(history.Start), Faults: w.FaultCounts(), Sites: w.Sites,
		Rows: w.Rows,
	}
}
