package explore

import (
	"cmp"
	"slices"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/shared/ledger"
)

// selector chooses what happens next.
type selector struct{ reductions }

// selectNext implements kernel.Selector: it lets the search choose among everything that can happen next.
func (x selector) selectNext(ready []kernel.Waiting, firstTimed time.Time) int {
	if x.search.frozen {
		return letTimePass // the run ends before the next step
	}
	if !x.jumpTo.IsZero() {
		if time.Now().Before(x.jumpTo) {
			return letTimePass
		}
		x.jumpTo = time.Time{}
	}
	all := x.alternatives(ready, firstTimed)
	for _, a := range all {
		if x.happensAtOnce(a) {
			return a.place
		}
	}
	if x.preparing != nil {
		return x.prepareNext(all, ready, firstTimed)
	}
	if len(all) == 0 {
		return x.selectNone(ready)
	}
	for _, a := range all {
		if x.scope.Full || !x.isAlone(a, all) {
			continue
		}
		caller := x.actorOf(a.task)
		if x.fault(caller.name+" stalls", 1) > 0 {
			x.stall(caller)
			return x.selectNext(ready, firstTimed)
		}
		return x.take(a, ready)
	}
	if !x.search.isRepeating() && !x.search.enter(x.stateHash(), x.budget) {
		return letTimePass
	}
	return x.take(all[x.search.choose("next", len(all))], ready)
}

// selectNone is the choice if there is no alternative.
func (x selector) selectNone(ready []kernel.Waiting) int {
	if slices.ContainsFunc(x.actors, func(a *actor) bool { return a.inFlight() && !isReady(a, ready) }) {
		return letTimePass // a task waits for a timer of its own
	}
	if slices.ContainsFunc(x.actors, (*actor).mustStall) {
		x.search.frozen = true // no time can pass: the history without the stall is another branch
		return letTimePass
	}
	return slices.IndexFunc(ready, func(r kernel.Waiting) bool { return r.Name == eventQuiet })
}

// take does what an alternative needs first, and returns its place.
func (x selector) take(chosen alternative, ready []kernel.Waiting) int {
	switch {
	case chosen.place == letTimePass:
		for _, a := range x.actors {
			if wouldStall(a, ready) {
				x.budget--
				x.stall(a)
			}
		}
		if !chosen.jumpTo.IsZero() {
			x.passTime(chosen.jumpTo)
		}
	case chosen.task != nil:
		x.actorOf(chosen.task).stalled = false
	}
	return chosen.place
}

// prepareNext runs the first actors, one after the other.
func (x selector) prepareNext(all []alternative, ready []kernel.Waiting, firstTimed time.Time) int {
	if x.preparing[0].ended {
		if x.preparing = x.preparing[1:]; len(x.preparing) == 0 {
			x.preparing = nil
		}
		return x.selectNext(ready, firstTimed)
	}
	for _, a := range all {
		if a.task == x.preparing[0].Instance || a.name == x.preparing[0].name {
			return a.place
		}
	}
	return letTimePass
}

// alternatives lists everything that can happen next, in an order that depends only on the state.
func (x selector) alternatives(ready []kernel.Waiting, firstTimed time.Time) []alternative {
	var all []alternative
	for place, r := range ready {
		a := alternative{place: place, name: r.Name, task: r.Instance}
		switch {
		case r.Instance != nil && x.actorOf(r.Instance).mustStall():
			continue
		case r.Instance != nil:
			a.order = r.Instance.Number()
		case r.Name == eventQuiet:
			continue
		default:
			starts := x.actorNamed(r.Name)
			if starts != nil && !starts.enabled() {
				continue
			}
			if starts != nil {
				a.order = 1000 + starts.Number()
			}
		}
		all = append(all, a)
	}
	slices.SortStableFunc(all, func(a, b alternative) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.name, b.name))
	})
	if !firstTimed.IsZero() && x.preparing == nil && x.stallCost(ready) <= x.budget {
		all = append(all, alternative{place: letTimePass, name: "time"})
	}
	return append(all, x.possibleJumps(ready, firstTimed)...)
}

func (x selector) actorNamed(name string) *actor {
	for _, a := range x.actors {
		if a.name == name && !a.started {
			return a
		}
	}
	return nil
}

// happensAtOnce reports whether an alternative is a step inside an instance, or continues a chosen one.
func (x selector) happensAtOnce(a alternative) bool {
	switch {
	case a.place == letTimePass:
		return false
	case a.task == nil:
		return a.name == eventContinues
	case a.task.Crashed():
		return true
	}
	_, isCall := x.accesses[a.name]
	return !isCall && a.name != "wait" // a start of a goroutine, or the end of a wait
}

// possibleJumps lists the times to which time may pass: the entry's next timer, and when a person may resolve it.
func (x selector) possibleJumps(ready []kernel.Waiting, firstTimed time.Time) []alternative {
	if x.preparing != nil || !x.mayJump() || len(x.late) > 0 || x.stallCost(ready) > x.budget || x.allEnded() {
		return nil
	}
	times := []time.Time{x.Entries.FirstDue()}
	for e := range x.Entries.All() {
		if e.State == ledger.Reserved {
			times = append(times, e.LeaseUntil.Add(manualMargin))
		}
	}
	var jumps []alternative
	for _, at := range times {
		if at.After(time.Now()) && (firstTimed.IsZero() || !firstTimed.Before(at)) {
			jumps = append(jumps, alternative{place: letTimePass, name: "time passes", jumpTo: at})
		}
	}
	return jumps
}

// manualMargin is how long after a lease a person waits before a manual resolution, and a little more.
const manualMargin = 2*time.Minute + time.Second

// stallCost is the number of invocations that stall if time passes now.
func (x selector) stallCost(ready []kernel.Waiting) int {
	cost := 0
	for _, a := range x.actors {
		if wouldStall(a, ready) {
			cost++
		}
	}
	return cost
}

// wouldStall reports whether an invocation stalls if time passes now: it does not wait itself.
func wouldStall(a *actor, ready []kernel.Waiting) bool {
	return a.inFlight() && !a.stalled && isReady(a, ready)
}

// isReady reports whether an actor can make a step.
func isReady(a *actor, ready []kernel.Waiting) bool {
	return slices.ContainsFunc(ready, func(r kernel.Waiting) bool { return r.Instance == a.Instance })
}

// stall lets an invocation make no step until time has passed.
func (x selector) stall(a *actor) {
	x.Logf("FAULT: %s stalls", a.name)
	a.stalled, a.stalledAt = true, time.Now()
}

// allEnded reports whether all actors have ended, so that time changes nothing any more.
func (x selector) allEnded() bool {
	return !slices.ContainsFunc(x.actors, func(a *actor) bool { return !a.over() })
}

// passTime lets time pass to a time.
func (x selector) passTime(at time.Time) {
	x.jumps++
	x.Logf("-- time passes to %s", at.Sub(history.Start))
	x.jumpTo = at
	x.Kernel.At(at, eventContinues, func() {})
}
