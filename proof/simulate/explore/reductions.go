package explore

import (
	"net/http"
	"slices"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/kernel"
)

// letTimePass lets the kernel advance to the first timed task.
const letTimePass = -1

// alternative is one way to continue: a task or an event, or a jump of the time.
type alternative struct {
	place  int // among the ready ones; letTimePass
	order  int // for a canonical order
	name   string
	task   *kernel.Instance
	jumpTo time.Time
}

// A call that no other actor can notice, and that can notice no other actor, is made at once: with it first, the world
// has the same ends. This file decides which calls these are. Its statements on the actors are checked in every run.

// reductions decides which calls need no other order.
type reductions struct{ *run }

// footprints are what the calls of an actor can reach. A request also counts as one for the payer's SMS, because the
// operator numbers both in one sequence.
var footprints = map[rune]access{
	actorFirst: {writes: resourceEntry | resourceReference | resourceLimit | resourceOperator | resourcePayerSMS},
	actorCallback: {
		reads: resourceOperator, writes: resourceEntry | resourceLimit,
	},
	actorSweep: {
		reads:  resourceOperator,
		writes: resourceEntry | resourceLimit | resourceHealth | resourcePayerSMS | resourceMerchant,
	},
	actorRelay:  {writes: resourceEntry | resourceHealth | resourcePayerSMS | resourceMerchant},
	actorPerson: {writes: resourceEntry | resourceLimit | resourceHealth},
}

// requestAccess is what an HTTP request reads or writes.
func (x reductions) requestAccess(server resources, method, name string) access {
	switch {
	case method == http.MethodGet:
		return access{reads: server}
	case server == resourceOperator && name == payerSMSCall && x.order.Function != deployment.SMS:
		return access{writes: resourcePayerSMS}
	}
	return access{writes: server}
}

// payerSMSCall is the name of the call that sends an SMS.
const payerSMSCall = "http sms"

// checkAccess fails the world if a call is outside of its actor's footprint: a reduction could then lose something.
func (x reductions) checkAccess(i *instance, name string, made access) {
	for _, a := range x.actors {
		if a.instance != i || x.isQuiet {
			continue
		}
		reaches := footprints[a.kind]
		if made.writes&^reaches.writes != 0 || made.reads&^(reaches.reads|reaches.writes) != 0 {
			x.Fail("explore: the call %s is outside of the footprint of %s", name, a.name)
		}
		for _, other := range i.pending {
			if !i.NamesTasks && other.meets(made) {
				x.Fail("explore: %s makes two calls at once that meet, one is %s", a.name, name)
			}
		}
	}
}

// isAlone reports whether no other task can notice when a call happens. Only time could: it passes before the call if
// the caller stalls, which is a choice of its own. A stalled caller may wait for more time.
func (x reductions) isAlone(a alternative, all []alternative) bool {
	timePasses := func(other alternative) bool { return other.place == letTimePass }
	if a.task == nil {
		return false
	}
	if x.actorOf(a.task).stalled && (x.budget > 0 || x.mayJump() || slices.ContainsFunc(all, timePasses)) {
		return false
	}
	made := x.accesses[a.name]
	if slices.ContainsFunc(x.late, func(write lateWrite) bool { return write.access.meets(made) }) {
		return false
	}
	hasSibling := slices.ContainsFunc(all, func(o alternative) bool { return o.task == a.task && o.place != a.place })
	for _, other := range x.actors {
		switch {
		case other.over():
		case other.Instance == a.task && other.started:
			// Calls that a function makes at once do not meet, but a crash in one of them prevents the others.
			if hasSibling && (x.budget > 0 || other.NamesTasks && footprints[other.kind].meets(made)) {
				return false
			}
		case x.mayWait(other), footprints[other.kind].meets(made):
			return false
		}
	}
	return true
}

// mayWait reports whether an actor may let time pass: a callback waits until the operator sends it.
func (x reductions) mayWait(a *actor) bool {
	if a.kind != actorCallback || a.started && x.moreCallbacks == 0 {
		return false
	}
	next, soon := x.nextCallback()
	return x.moreCallbacks > 0 || len(x.callbacks) == 0 && (!soon || next.After(time.Now()))
}
