// Package world puts the parts of a history together: the deployment, the operators, the merchants, the engineers, and
// the checker of the invariants.
package world

import (
	"time"

	"mobilegateway/proof/simulate/check"
	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/engineers"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/operators"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	model "mobilegateway/world/dynamodb"
)

// Rounds of the engineer follow each other once the world is calm. The last one leaves time for its results.
const (
	roundInterval  = 72 * time.Hour
	afterLastRound = 60 * time.Hour
)

// World is the gateway and everything around it, in one history.
type World struct {
	*deployment.Deployment
	Stream    *deployment.Stream
	Schedule  *deployment.Schedule
	Operators *operators.Operators
	Merchants *merchants.Merchants
	Engineers *engineers.Engineers
	Check     *check.Checker

	queue func(*model.Change) // of the stream
}

// New makes a world. Call it in a bubble of testing/synctest.
func New(choices *tape.Tape) *World {
	b, h := fixture.Load(), history.New(choices)
	secrets := &outside.Secrets{Faults: h.Faults, Trace: h.LogText}
	for name, value := range b.Secrets {
		secrets.Set(history.Start.Add(-time.Hour), name, value)
	}
	d := deployment.New(&deployment.Outside{
		Tables: deployment.NewTables(&deployment.Gate{History: h}, b.Database.Clone()), Secrets: secrets,
	})
	w := &World{
		Deployment: d, Stream: &deployment.Stream{Deployment: d}, Schedule: &deployment.Schedule{Deployment: d},
	}
	w.queue = w.Stream.Queue
	w.Check = check.New(d, &w.Stream.Off)
	w.Operators = operators.New(d, w.Check)
	w.Merchants = merchants.New(d, b.Shops, w.Check)
	w.Merchants.Visit = w.Operators.Visit
	w.Engineers = engineers.New(w.Merchants, w.Operators, w.Check)
	w.Check.Watch(w.Operators, w.Merchants, w.Engineers)
	return w
}

// Run runs the history to its end.
func (w *World) Run() {
	w.PlanRounds()
	w.Kernel.Observe = w.Observe
	if err := w.Kernel.Run(); err != nil {
		w.Fail("%s", err)
	}
	if w.Violation == nil {
		w.Check.AtEnd()
	}
	w.Counts.Steps = w.Kernel.Steps()
}

// PlanRounds plans the rounds of the engineer once the world is calm, each after a check of what should have ended.
func (w *World) PlanRounds() {
	w.BrokenUntil(w.FaultsEnd)
	w.Kernel.At(w.FaultsEnd, "end of the faults", w.EndFaults)
	w.End = history.Latest(w.End, w.CalmFrom.Add(history.QuietTime))
	w.LastRound = w.End.Add(-afterLastRound)
	for at := w.LastRound; at.After(w.CalmFrom.Add(check.FinalBound)); at = at.Add(-roundInterval) {
		w.Kernel.At(at, "round of the engineer", func() {
			w.Check.Progress()
			w.Engineers.Round()
		})
	}
}

// Observe runs between two steps: it passes changes on and checks the invariants.
func (w *World) Observe() error {
	if w.Stream.Follow(w.queue) {
		w.Schedule.Next()
	}
	return w.Violation
}
