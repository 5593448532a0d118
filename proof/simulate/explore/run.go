package explore

import (
	"slices"
	"time"

	"mobilegateway/proof/simulate/check"
	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	model "mobilegateway/world/dynamodb"
)

// The actors of a world.
const (
	actorFirst    = 'R' // a request
	actorCallback = 'C'
	actorSweep    = 'S'
	actorRelay    = 'L'
	actorPerson   = 'A'
)

// actor is one of the concurrent parts of a world. It acts once.
type actor struct {
	name           string
	kind           rune
	started, ended bool
	// stalled is true if time passes, or has passed, before the next step of its invocation. That is at stalledAt.
	stalled   bool
	stalledAt time.Time
	*instance
	enabled func() bool
	start   func()
}

// over reports whether the actor has ended, and no task continues behind its invocation.
func (a *actor) over() bool { return a.ended && !a.Busy() }

// inFlight reports whether the actor acts. Tasks of its last invocation may continue before it starts again.
func (a *actor) inFlight() bool { return a.started && !a.ended || a.Busy() }

// mustStall reports whether time must pass before the actor's next step.
func (a *actor) mustStall() bool { return a.inFlight() && a.stalled && !time.Now().After(a.stalledAt) }

// run is one run of a search.
type run struct {
	*deployment.Deployment
	world    World
	scope    Scope
	search   *search
	made     **merchants.Order // the order of the first run, as it was made; the others begin with its copy
	order    *merchants.Order
	budget   int // faults left
	accesses map[string]access
	cast
	outer
	clock
	isQuiet  bool
	quietFor time.Duration
}

// cast are the actors.
type cast struct {
	actors      []*actor
	lastRequest *actor
	requests    uint64   // that have started
	preparing   []*actor // to be run one after the other before the search begins
}

// outer is what is in progress outside the functions.
type outer struct {
	operator      *outside.Operator // that has got a request
	callbacks     []outside.Callback
	moreCallbacks int
	records       []*model.Change
	late          []lateWrite
	lateEffect    bool // a request may still reach the operator
}

// clock is how time passes.
type clock struct {
	jumps  int
	jumpTo time.Time
}

// lateWrite is a write that is applied later.
type lateWrite struct {
	id     uint64
	access access
}

// fault offers count faults while some are left: 0 is none.
func (x *run) fault(label string, count int) int {
	if x.budget == 0 || x.isQuiet || x.preparing != nil {
		return 0
	}
	value := x.search.choose(label, count+1)
	if value > 0 {
		x.budget--
		if x.HasStory {
			x.Logf("FAULT: %s (%d of %d)", label, value, count)
		}
	}
	return value
}

// Choose implements outside.Chooser. A payer's decision is not a fault.
func (x *run) Choose(label string, count int) int {
	switch outside.Group(label) {
	case outside.Payers:
		if x.isQuiet {
			return 0
		}
		return x.search.choose(label, count)
	case outside.CallbackContents:
		value := x.fault(label, count-1)
		if value > 0 {
			x.moreCallbacks++
		}
		return value
	case outside.OperatorCalls:
		if x.preparing != nil && x.scope.Start == "unknown" {
			return lostAfterEffect
		}
		return x.fault(label, count-1)
	case outside.Lookups, outside.Notifications:
		return x.fault(label, count-1)
	}
	if label == "operator: order of the contradicting callback" {
		return x.search.choose(label, count)
	}
	if label == "operator: time of the late effect" {
		x.lateEffect = true
	}
	return 0
}

// server is the merchant's server.
func (x *run) server() *outside.MerchantServer { return x.world.Server(x.order.Shop.Host) }

// nextCallback is the time of the operator's next own event, if that is soon.
func (x *run) nextCallback() (time.Time, bool) {
	if x.operator == nil {
		return time.Time{}, false
	}
	next, found := x.operator.Next()
	if next.Before(time.Now()) {
		next = time.Now()
	}
	return next, found && time.Until(next) <= maxSoon
}

// actorOf is the actor whose instance has a task.
func (x *run) actorOf(task *kernel.Instance) *actor {
	place := slices.IndexFunc(x.actors, func(a *actor) bool { return a.Instance == task })
	return x.actors[place]
}

// mayJump reports whether time may still pass to a timer.
func (x *run) mayJump() bool { return x.jumps < max(1, x.scope.Jumps) }

// maxSoon is the longest wait that may pass while invocations are in progress: a timeout of the operator.
const maxSoon = 15 * time.Second

// stateHash is a hash of everything that decides how the history can continue, except the faults that are left.
func (x *run) stateHash() uint64 {
	h := newHash()
	h.add(x.outsideHash())
	for _, a := range x.actors {
		status := uint64(0)
		switch {
		case a.ended:
			status = 1
		case a.started:
			status = 2
		}
		h.add(status)
		if a.over() {
			continue
		}
		if a.stalled {
			h.add(3)
		}
		if a.mustStall() {
			h.add(4)
		}
		h.add(a.seen.sum)
	}
	h.add(uint64(x.jumps))         //nolint:gosec // small
	h.add(uint64(x.moreCallbacks)) //nolint:gosec // small
	if x.lateEffect {
		h.add(5)
	}
	var late uint64 // of a set
	for _, write := range x.late {
		late += tape.Mix(write.id)
	}
	h.add(late)
	return h.sum
}

// outsideHash is a hash of everything outside the functions: tables, operator, servers, stream, clients and the time.
func (x *run) outsideHash() uint64 {
	h := newHash()
	h.add(uint64(time.Now().UnixNano()))
	h.add(x.Database.Hash())
	h.add(x.server().Hash())
	if x.operator != nil {
		h.add(x.operator.Hash())
	}
	for _, callback := range x.callbacks {
		h.addText(callback.Key + callback.Status + string(callback.Content))
	}
	for _, change := range x.records {
		h.add(model.HashItem(change.New()))
	}
	for _, r := range x.order.Responses {
		if check.IsKnown(r) {
			h.add(uint64(r.Status)) //nolint:gosec // positive
			h.addText(r.Body)
		}
	}
	return h.sum
}

// lostAfterEffect is the number of ResetAfter among the explored faults of an operator's call.
const lostAfterEffect = 2

// eventContinues and eventQuiet are events of the explorer.
const (
	eventContinues = "continues"
	eventQuiet     = "quiet"
)
