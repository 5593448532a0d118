// Package simulate runs the functions of the gateway, the code that ships, in a simulated world: clock, scheduler,
// DynamoDB, Secrets Manager, operators, merchants' servers, stream and schedule. A tape of choices decides what fails
// and in which order things happen, so the same seed gives the same history.
//
// A history has a time of faults, and then a time without faults in which everything must come to its end. Invariants
// are checked after every step and at the end; docs/reliability.md lists them. The package is for tests: a history runs
// in a bubble of testing/synctest.
package simulate

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
	model "mobilegateway/world/dynamodb"
)

const (
	// quietTime is the time without faults at the end of a history: longer than all deliveries and lookups.
	quietTime = 11 * 24 * time.Hour
	// rounds of the engineer follow each other once the world is calm; the last one leaves time for its results.
	roundInterval  = 72 * time.Hour
	afterLastRound = 60 * time.Hour
	// maxSkew is the greatest difference between two clocks.
	maxSkew = 40 * time.Second
	// maxSteps bounds a history.
	maxSteps = 1_000_000
)

// loadBlueprint makes the blueprint of all worlds.
var loadBlueprint = sync.OnceValue(newBlueprint)

// World is one history.
type World struct {
	tape       *tape.Tape
	kernel     *kernel.Kernel
	database   *model.Database
	secrets    *outside.Secrets
	operators  map[string]*outside.Operator       // by host
	platforms  map[string]*platform               // by host; none but in a history of platforms
	isSmooth   bool                               // a history of platforms without faults
	servers    map[string]*outside.MerchantServer // by host
	shops      []*shop
	tools      *sync.Pool // the blueprint's
	orders     []*order
	without    []int // places of orders that send nothing
	rates      rates
	crashProne crashProne
	faults     *outside.Faults
	confined   *outside.Faults // of the one merchant and the one operator with faults
	faultsEnd  time.Time
	calmFrom   time.Time // nothing is broken any more
	lastRound  time.Time // of the engineer
	end        time.Time
	pool       map[string][]*instance

	stream       stream
	nextSweep    time.Time // zero: none is scheduled
	bareClient   *model.Client
	noItems      *dynamodb.QueryOutput // the result of a query of an empty shard
	writer       *instance             // that made the last call of a table
	operatorNext map[string]time.Time
	checker      *checker
	violation    error
	auditItems   []auditlog.Item
	auditCopies  []string

	// The changes by hazards.
	unreadable         map[string]window // profiles, by merchant id
	readOnly           window            // the ledger's table
	timersStop         bool              // while an instance is frozen, its deadline does not come nearer
	losesRefusals      bool              // some refusals make it read-only for a time
	streamOff          window
	undecodable        bool // the ledger's table has an item that cannot be decoded
	hasNewerVersion    bool
	hasDeniedAddresses bool
	hasOtherAmounts    bool // the other body of some orders has another amount, not another text
	hasSharedKeys      bool // two merchants use the same keys for some orders
	hasLargeAmounts    bool // some amounts are more than half of the daily limit
	smsRetention       time.Duration
	refused            map[string]time.Time      // when a token was revoked
	changed            map[string]*merchantState // by merchant
	// affected reports whether something that an entry depends on is broken; nil if everything may be.
	affected func(*ledger.Entry) bool
	// amountsMayStay is true after a crash or a freeze of a function that counts amounts, or after a write
	// without a response: an amount may stay counted.
	amountsMayStay bool

	counts   Counts
	faultsBy map[string]int // counts of the world's own faults
	sites    map[siteName]*Site
	story    []string
	hasStory bool
}

// Counts count what happened in a history.
type Counts struct {
	Steps    int
	Requests int
	Sweeps   int
	Batches  int
	Commands int
}

// Options select a history.
type Options struct {
	// Story keeps a line for each event.
	Story bool
	// Platforms mixes payments by the operators' platforms with orders by the gateway's protocol.
	Platforms bool
	// Without are the places of orders whose clients send nothing.
	Without []int
	// Plan, if set, replaces the drawn rates, orders and windows.
	Plan func(*World)
}

// Result is what a history showed.
type Result struct {
	Violation error
	Choices   []int
	Story     []string
	Counts    Counts
	Orders    int
	Simulated time.Duration
	// Faults has the number of injected faults by kind, and Sites the outside calls of functions.
	Faults map[string]int
	Sites  []*Site
}

// Run runs one history. Call it in a bubble of testing/synctest.
func Run(choices *tape.Tape, options Options) Result {
	w := newWorld(loadBlueprint(), choices)
	w.hasStory, w.without = options.Story, options.Without
	switch {
	case options.Plan != nil:
		options.Plan(w)
	case options.Platforms:
		planPlatforms(w)
	default:
		w.drawHistory()
	}
	w.planRounds()
	w.kernel.Observe = w.observe
	if err := w.kernel.Run(); err != nil {
		w.fail("%s", err)
	}
	if w.violation == nil {
		w.checkEnd()
	}
	w.counts.Steps = w.kernel.Steps()
	return Result{
		Violation: w.violation, Choices: choices.Values(), Story: w.story, Counts: w.counts, Orders: len(w.orders),
		Simulated: time.Since(bubbleStart), Faults: w.faultCounts(), Sites: slices.Collect(maps.Values(w.sites)),
	}
}

func newWorld(b *blueprint, choices *tape.Tape) *World {
	w := &World{
		tape: choices, kernel: kernel.New(choices), database: b.database.Clone(), shops: b.shops, tools: &b.tools,
		faults: &outside.Faults{}, operators: map[string]*outside.Operator{},
		servers: map[string]*outside.MerchantServer{}, pool: map[string][]*instance{},
		operatorNext: map[string]time.Time{}, unreadable: map[string]window{}, faultsBy: map[string]int{},
		sites: map[siteName]*Site{}, refused: map[string]time.Time{}, changed: map[string]*merchantState{},
	}
	w.bareClient, w.noItems = model.NewClient(w.database), &dynamodb.QueryOutput{}
	w.kernel.MaxSteps = maxSteps
	w.checker = newChecker(w)
	w.secrets = &outside.Secrets{Faults: w.faults, Trace: w.logText}
	for name, value := range b.secrets {
		w.secrets.Set(bubbleStart.Add(-time.Hour), name, value)
	}
	for _, name := range b.shops[0].Operators {
		o := &outside.Operator{Name: name, Faults: w.faults, AccessTokens: []string{accessToken(operatorToken, name)}}
		o.OnEffect = func(effect outside.Effect) { w.checker.effect(o, effect) }
		o.OnCall, o.OnOtherContent = w.checker.operatorCall, w.checker.otherContent
		o.Trace = w.logText
		w.operators[operatorHost(name)] = o
	}
	for _, s := range b.shops {
		w.changed[s.Name] = &merchantState{}
		w.servers[s.host] = &outside.MerchantServer{
			Name: s.Name, Secrets: []string{s.secret}, Faults: w.faults, Trace: w.logText,
			OnReceipt: func(receipt outside.Receipt) { w.checker.checkReceipt(s, receipt) },
		}
	}
	return w
}

// faultsOn reports whether faults may still happen.
func (w *World) faultsOn() bool { return time.Now().Before(w.faultsEnd) }

// logf adds a line to the story.
func (w *World) logf(format string, values ...any) {
	if w.hasStory {
		at := time.Since(bubbleStart)
		w.story = append(w.story, fmt.Sprintf("%12s  ", at.Round(time.Millisecond))+fmt.Sprintf(format, values...))
	}
}

func (w *World) logText(text string) { w.logf("%s", text) }

// planRounds plans the rounds of the engineer once the world is calm, each after a check of what should have ended.
func (w *World) planRounds() {
	w.brokenUntil(w.faultsEnd)
	w.kernel.At(w.faultsEnd, "end of the faults", func() {
		w.logf("the faults end")
		w.faults.Rates = nil
		if w.confined != nil {
			w.confined.Rates = nil
		}
	})
	w.end = latest(w.end, w.calmFrom.Add(quietTime))
	w.lastRound = w.end.Add(-afterLastRound)
	for at := w.lastRound; at.After(w.calmFrom.Add(finalBound)); at = at.Add(-roundInterval) {
		w.kernel.At(at, "round of the engineer", func() {
			w.checkProgress()
			w.engineerRound()
		})
	}
}

// fail ends the history with a violation. The first one counts.
func (w *World) fail(format string, values ...any) {
	if w.violation == nil {
		w.violation = fmt.Errorf(format, values...)
		w.logf("VIOLATION: %s", w.violation)
	}
}

// observe runs between two steps: it passes changes on and checks the invariants.
func (w *World) observe() error {
	w.followChanges()
	if w.violation != nil {
		return w.violation
	}
	return nil
}
