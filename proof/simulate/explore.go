package simulate

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/wiring"
	model "mobilegateway/world/dynamodb"
)

// The exhaustive mode explores every order of the outside calls of a few actors around one order of a merchant, with
// every position of a few faults. It does not sample. It runs the functions from the start for each path of choices,
// and leaves a path at a state that it knows (see search).
//
// Three rules keep it small, each without a loss. Single failures that the SDK repeats count only if all repeats fail.
// A crash before a call is the crash after the last call with an effect, or after the last wait. A call happens at once
// if no other actor of the world can reach its resource. Time passes in small steps to a timeout or a callback, or to
// the entry's next timer. An invocation that could make a step meanwhile has stalled, which is a fault. Only a callback
// that comes while others work stalls none of them.

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

const (
	// maxSoon is the longest wait that may pass while invocations are in progress: a timeout of the operator.
	maxSoon = 15 * time.Second
	// eventContinues and eventQuiet are events of the explorer.
	eventContinues = "continues"
	eventQuiet     = "quiet"
	// quietEnd is the time after the explored part in which everything must end. If not, history.QuietTime counts.
	quietEnd = 2 * time.Hour
	// reportInterval is the time between two reports of a long search.
	reportInterval = 30 * time.Second
)

// errKnown ends a run that has reached a known state.
var errKnown = errors.New("known state")

// explorer is one run of a search.
type explorer struct {
	scope  Scope
	search *search
	world  *World
	order  *order
	actors []*actor
	budget int // faults left

	operator      *outside.Operator // that has got a request
	callbacks     []outside.Callback
	moreCallbacks int
	lastRequest   *actor
	requests      uint64 // that have started
	records       []*model.Change
	accesses      map[string]access
	late          []lateWrite
	lateEffect    bool // a request may still reach the operator
	jumps         int
	timePassed    bool // or may pass, while an actor delivers: it can have passed its deadline
	lastSelected  time.Time
	jumpTo        time.Time
	preparing     []*actor // to be run one after the other before the search begins
	quiet         bool
	quietFor      time.Duration
}

// Explore explores a world. run runs a function in a bubble of testing/synctest. maxRuns bounds the search, 0 for no
// bound.
func Explore(scope Scope, maxRuns int, run func(func())) Exploration {
	s := newPart(scope.From, scope.Until)
	s.keepsPaths = scope.Paths
	e, reported, more := Exploration{}, time.Now(), true
	for ; more && (maxRuns == 0 || s.runs < maxRuns); more = s.next() {
		s.begin()
		run(func() { e.Violation = exploreOnce(scope, s, quietEnd, nil) })
		for s.recorded.missing != 0 {
			s.repeat()
			run(func() { e.Violation = exploreOnce(scope, s, quietEnd, nil) })
		}
		if e.Violation != nil {
			e.Long++
			run(func() { e.Violation = replayPath(scope, s, &e.Story) })
		}
		if e.Violation != nil {
			break
		}
		if scope.Report != nil && time.Since(reported) >= reportInterval {
			reported = time.Now()
			scope.Report(s.runs, len(s.states), s.done())
		}
	}
	e.Complete = !more
	e.Runs, e.States, e.Ends, e.Depth, e.Finals = s.runs, len(s.states), len(s.ends), s.depth, s.ends
	return e
}

// replayPath runs the last path again, with a story and a long quiet end. It returns the violation if it is still one.
func replayPath(scope Scope, s *search, story *[]string) error {
	again := newSearch()
	again.isReplay = true
	again.path = append(again.path, s.path...)
	return exploreOnce(scope, again, history.QuietTime, story)
}

// exploreOnce runs one path. Call it in a bubble.
func exploreOnce(scope Scope, s *search, quietFor time.Duration, story *[]string) error {
	w := newWorld(loadBlueprint(), tape.FromChoices(nil))
	w.HasStory = story != nil
	x := &explorer{
		scope: scope, search: s, world: w, budget: scope.Faults, quietFor: quietFor, accesses: map[string]access{},
	}
	x.prepare()
	w.Kernel.Observe = x.observe
	w.Kernel.Select = x.selectNext
	if err := w.Kernel.Run(); err != nil && !errors.Is(err, errKnown) {
		w.Fail("%s", err)
	}
	if w.Violation == nil && !x.quiet && !s.frozen {
		w.Fail("the explored part stopped before its end")
	}
	if w.Violation == nil && !s.frozen && quietFor == quietEnd && !x.hasEnded() {
		w.Fail("not everything has ended after %s", quietFor)
	}
	if w.Violation == nil && !s.frozen {
		w.checkEnd()
		x.checkResponses()
	}
	if story != nil {
		*story = w.Story
	}
	return w.Violation
}

// prepare makes the order, the faults and the actors.
func (x *explorer) prepare() {
	w := x.world
	function := map[string]string{
		"charge": functionCharge, "sms": functionSMS, "pay-web": functionPay, "pay-tpe": functionPay,
	}[x.scope.Kind]
	s := *w.shops[0]
	s.Operators = []string{"sandbox"}
	x.order = x.newOrder(&s, function)
	w.Faults.Even = true
	for group, faults := range exploredFaults {
		for _, fault := range faults {
			w.Faults.Set(group, fault, 1)
		}
	}
	w.secrets.Set(history.Start, operatorSecret, exploredCredentials())
	w.Kernel.At(time.Time{}, eventQuiet, x.beginQuiet)
	if x.scope.Start != "" {
		x.preparing = append(x.preparing, x.addRequest("first request"))
	}
	if x.scope.Start == "reported" {
		x.preparing = append(x.preparing, x.addCallback("first callback"))
	}
	x.addActors()
}

// newOrder makes the order of the world. The first run of a search makes it, the others begin with its copy.
func (x *explorer) newOrder(s *shop, function string) *order {
	w := x.world
	if x.search.order == nil {
		made := *w.newOrder(s, function, payChannels[x.scope.Kind])
		x.search.order = &made
		return w.orders[0]
	}
	o := *x.search.order
	if function == functionPay {
		w.checker.addNumber(o.wanted.Payer)
	}
	w.orders = append(w.orders, &o)
	return &o
}

// exploredCredentials is the operators' secret with one operator only: the functions parse it in each run.
var exploredCredentials = sync.OnceValue(func() []byte {
	return must(json.Marshal(map[string]any{"sandbox": operatorAccounts(operatorToken)["sandbox"]}))
})

// payChannels are the numbers of orders by their channel, modulo 3.
var payChannels = map[string]int{"pay-web": 0, "pay-tpe": 1}

// exploredFaults has one fault for each class: what happened, and what the gateway sees.
var exploredFaults = map[outside.Group][]outside.Fault{
	outside.OperatorCalls: {
		outside.ConnectRefused, outside.ResetAfter, outside.HangAfter, outside.HangLate, outside.ServerErrorBefore,
		outside.ServerErrorAfter, outside.FinalRefusal,
	},
	outside.Lookups:          {outside.ResetBefore, outside.NotFoundYet},
	outside.Payers:           {outside.PayerFails},
	outside.CallbackContents: {outside.CallbackTwice, outside.CallbackContradicting, outside.CallbackWrongAmount},
	outside.Notifications:    {outside.ResetAfter, outside.ServerErrorBefore, outside.EndpointGone, outside.HangAfter},
}

// lostAfterEffect is the number of ResetAfter among the explored faults of an operator's call.
const lostAfterEffect = 2

// fault offers count faults while some are left: 0 is none.
func (x *explorer) fault(label string, count int) int {
	if x.budget == 0 || x.quiet || x.preparing != nil {
		return 0
	}
	value := x.search.choose(label, count+1)
	if value > 0 {
		x.budget--
		if x.world.HasStory {
			x.world.Logf("FAULT: %s (%d of %d)", label, value, count)
		}
	}
	return value
}

// Choose implements outside.Chooser. A payer's decision is not a fault.
func (x *explorer) Choose(label string, count int) int {
	switch outside.Group(label) {
	case outside.Payers:
		if x.quiet {
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

// observe runs between two steps: it notes the changes and checks the invariants.
func (x *explorer) observe() error {
	w := x.world
	if x.search.frozen {
		return errKnown
	}
	if x.quiet {
		return w.observe()
	}
	w.readChanges(func(record *model.Change) { x.records = append(x.records, record) })
	return w.Violation
}

// hasEnded reports whether the order has ended, with nothing left to deliver. If not, the path is run again with a long
// quiet end, and all bounds of liveness.
func (x *explorer) hasEnded() bool {
	for _, e := range x.world.checker.entries {
		isOpen := e.State == ledger.Reserved || e.State == ledger.Unknown
		if e.Kind == ledger.Payment {
			isOpen = !e.StatusFinal() && e.State != ledger.Released
		}
		if isOpen || len(e.Outbox.Waiting) > 0 || e.UserSMS.State == ledger.UserSMSDue {
			return false
		}
	}
	return true
}

// checkResponses checks that an order has exactly one effect if a response reported its success (invariant 1).
func (x *explorer) checkResponses() {
	if x.operator == nil {
		return
	}
	effects := 0
	for _, effect := range x.operator.Effects() {
		if effect.Kind != outside.KindPayerSMS {
			effects += effect.Count
		}
	}
	for _, r := range x.order.responses {
		if r.Status == 201 && x.order.function != functionPay && effects != 1 {
			x.world.Fail("invariant 1: a response was %d, and there are %d effects", r.Status, effects)
		}
	}
}
