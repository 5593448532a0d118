package explore

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
	model "mobilegateway/world/dynamodb"
)

const (
	// quietEnd is the time after the explored part in which everything must end. If not, history.QuietTime counts.
	quietEnd = 2 * time.Hour
	// reportInterval is the time between two reports of a long search.
	reportInterval = 30 * time.Second
)

// errKnown ends a run that has reached a known state.
var errKnown = errors.New("known state")

// Explore explores a world. inBubble runs a function in a bubble of testing/synctest. maxRuns bounds the search, 0 for
// no bound.
func Explore(scope Scope, newWorld Maker, maxRuns int, inBubble func(func())) Exploration {
	s := newPart(scope.From, scope.Until)
	s.keepsPaths = scope.Paths
	var order *merchants.Order // as each run begins with it
	e, reported, more := Exploration{}, time.Now(), true
	for ; more && (maxRuns == 0 || s.runs < maxRuns); more = s.next() {
		s.begin()
		inBubble(func() {
			e.Violation = exploreOnce(&run{scope: scope, search: s, made: &order, quietFor: quietEnd}, newWorld, nil)
		})
		if e.Violation != nil {
			e.Long++
			inBubble(func() { e.Violation = replayPath(scope, s, newWorld, &e.Story) })
		}
		if e.Violation != nil {
			break
		}
		if scope.Report != nil && time.Since(reported) >= reportInterval {
			reported = time.Now()
			scope.Report(s.runs, len(s.states), s.explored())
		}
	}
	e.Complete = !more
	e.Runs, e.States, e.Ends, e.Depth, e.Finals = s.runs, len(s.states), len(s.ends), s.depth, s.ends
	return e
}

// replayPath runs the last path again, with a story and a long quiet end. It returns the violation if it is still one.
func replayPath(scope Scope, s *search, newWorld Maker, story *[]string) error {
	again := newSearch()
	again.isReplay = true
	again.path = append(again.path, s.path...)
	r := &run{scope: scope, search: again, made: new(*merchants.Order), quietFor: history.QuietTime}
	return exploreOnce(r, newWorld, story)
}

// exploreOnce runs one path. Call it in a bubble.
func exploreOnce(r *run, newWorld Maker, story *[]string) error {
	r.Deployment, r.world = newWorld()
	r.HasStory, r.budget, r.accesses = story != nil, r.scope.Faults, map[string]access{}
	x, s := explorer{r}, r.search
	x.prepare()
	r.Kernel.Observe = x.observe
	r.Kernel.Select = selector{reductions{r}}.selectNext
	if err := r.Kernel.Run(); err != nil && !errors.Is(err, errKnown) {
		r.Fail("%s", err)
	}
	if r.Violation == nil && !r.isQuiet && !s.frozen {
		r.Fail("the explored part stopped before its end")
	}
	if r.Violation == nil && !s.frozen && r.quietFor == quietEnd && !x.hasEnded() {
		r.Fail("not everything has ended after %s", r.quietFor)
	}
	if r.Violation == nil && !s.frozen {
		r.world.AtEnd()
		x.checkResponses()
	}
	if story != nil {
		*story = r.Story
	}
	return r.Violation
}

// explorer begins and ends one run.
type explorer struct{ *run }

// prepare makes the order, the faults and the actors.
func (x explorer) prepare() {
	x.newOrder()
	x.Faults.Even = true
	for group, faults := range exploredFaults {
		for _, fault := range faults {
			x.Faults.Set(group, fault, 1)
		}
	}
	x.Secrets.Set(history.Start, fixture.OperatorSecret, exploredCredentials())
	x.Kernel.At(time.Time{}, eventQuiet, x.beginQuiet)
	actors := stage{gates(x)}
	if x.scope.Start != "" {
		x.preparing = append(x.preparing, actors.addRequest("first request"))
	}
	if x.scope.Start == "reported" {
		x.preparing = append(x.preparing, actors.addCallback("first callback"))
	}
	actors.addActors()
}

// addActors adds the actors of a world.
func (x stage) addActors() {
	number := 0
	for _, kind := range x.scope.Actors {
		switch kind {
		case actorFirst:
			number++
			x.addRequest([]string{"request 1", "request 2"}[number-1])
		case actorCallback:
			x.addCallback("callback")
		case actorSweep:
			a := x.newActor(kind, "sweep", deployment.Sweep)
			a.enabled = func() bool { due := x.Entries.FirstDue(); return !due.IsZero() && !due.After(time.Now()) }
			a.start = func() { x.invoke(a, []byte(`{}`), func(deployment.Result) {}) }
		case actorRelay:
			x.addRelay()
		case actorPerson:
			x.addPerson()
		}
	}
}

// newOrder makes the order of the world. The first run of a search makes it, the others begin with its copy.
func (x explorer) newOrder() {
	if *x.made != nil {
		o := **x.made
		x.order = x.world.Take(&o)
		return
	}
	function := map[string]string{
		"charge": deployment.Charge, "sms": deployment.SMS, "pay-web": deployment.Pay, "pay-tpe": deployment.Pay,
	}[x.scope.Kind]
	s := *x.world.Shop()
	s.Operators = []string{"sandbox"}
	x.order = x.world.Add(&s, function, payChannels[x.scope.Kind])
	made := *x.order
	*x.made = &made
}

// exploredCredentials is the operators' secret with one operator only: the functions parse it in each run.
var exploredCredentials = sync.OnceValue(func() []byte {
	all := fixture.OperatorAccounts(fixture.OperatorToken)
	return fixture.Must(json.Marshal(map[string]any{"sandbox": all["sandbox"]}))
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

// observe runs between two steps: it notes the changes and checks the invariants.
func (x explorer) observe() error {
	switch {
	case x.search.frozen:
		return errKnown
	case x.isQuiet:
		return x.world.Observe()
	}
	x.world.Follow(func(record *model.Change) { x.records = append(x.records, record) })
	return x.Violation
}

// hasEnded reports whether the order has ended, with nothing left to deliver. If not, the path is run again with a long
// quiet end, and all bounds of liveness.
func (x explorer) hasEnded() bool {
	for e := range x.Entries.All() {
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

// checkResponses checks that an order has exactly one effect if a response reported its success.
func (x explorer) checkResponses() {
	if x.operator == nil {
		return
	}
	effects := 0
	for _, effect := range x.operator.Effects() {
		if effect.Kind != outside.KindPayerSMS {
			effects += effect.Count
		}
	}
	x.world.HasEffects(x.order, effects)
}

// beginQuiet ends the explored part. The faults are over, and everything must come to its end.
func (x explorer) beginQuiet() {
	x.isQuiet = true
	x.Kernel.Select = nil
	end := x.outsideHash()
	if x.search.ends[end] && !x.search.isReplay {
		x.search.frozen = true
		return
	}
	x.search.ends[end] = true
	x.Logf("-- the quiet end")
	now, isLong := time.Now(), x.quietFor > quietEnd
	if isLong {
		x.FaultsEnd = now
	} else {
		x.CalmFrom, x.LastRound, x.End = now, now.Add(x.quietFor/2), now.Add(x.quietFor)
	}
	x.world.Resume(x.records, x.operator, x.callbacks, isLong)
	if len(x.order.Responses) == 0 && strings.HasPrefix(x.scope.Actors, "RR") {
		x.world.Retry(x.order, 10*time.Minute)
	}
}
