// Package simulate runs the functions of the gateway, the code that ships, in a simulated world: clock, scheduler,
// DynamoDB, Secrets Manager, operators, merchants' servers, stream and schedule. A tape of choices decides what fails
// and in which order things happen, so the same seed gives the same history.
//
// A history has a time of faults, and then a time without faults in which everything must come to its end. Invariants
// are checked after every step and at the end; docs/reliability.md lists them. The package is for tests: a history runs
// in a bubble of testing/synctest.
package simulate

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
	model "mobilegateway/world/dynamodb"
)

// Rounds of the engineer follow each other once the world is calm. The last one leaves time for its results.
const (
	roundInterval  = 72 * time.Hour
	afterLastRound = 60 * time.Hour
)

// loadBlueprint makes the blueprint of all worlds.
var loadBlueprint = sync.OnceValue(newBlueprint)

// World is one history.
type World struct {
	*history.History
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
	crashProne crashProne
	pool       map[string][]*instance

	stream       stream
	nextSweep    time.Time // zero: none is scheduled
	bareClient   *model.Client
	noItems      *dynamodb.QueryOutput // the result of a query of an empty shard
	writer       *instance             // that made the last call of a table
	operatorNext map[string]time.Time
	checker      *checker
	auditItems   []auditlog.Item
	auditCopies  []string

	// The changes by hazards.
	unreadable         map[string]history.Window // profiles, by merchant id
	readOnly           history.Window            // the ledger's table
	timersStop         bool                      // while an instance is frozen, its deadline does not come nearer
	losesRefusals      bool                      // some refusals make it read-only for a time
	streamOff          history.Window
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
	Counts    history.Counts
	Orders    int
	Simulated time.Duration
	// Faults has the number of injected faults by kind, and Sites the outside calls of functions.
	Faults map[string]int
	Sites  history.Sites
}

// Run runs one history. Call it in a bubble of testing/synctest.
func Run(choices *tape.Tape, options Options) Result {
	w := newWorld(loadBlueprint(), choices)
	w.HasStory, w.without = options.Story, options.Without
	switch {
	case options.Plan != nil:
		options.Plan(w)
	case options.Platforms:
		planPlatforms(w)
	default:
		w.drawHistory()
	}
	w.planRounds()
	w.Kernel.Observe = w.observe
	if err := w.Kernel.Run(); err != nil {
		w.Fail("%s", err)
	}
	if w.Violation == nil {
		w.checkEnd()
	}
	w.Counts.Steps = w.Kernel.Steps()
	return Result{
		Violation: w.Violation, Choices: choices.Values(), Story: w.Story, Counts: w.Counts, Orders: len(w.orders),
		Simulated: time.Since(history.Start), Faults: w.FaultCounts(), Sites: w.Sites,
	}
}

func newWorld(b *blueprint, choices *tape.Tape) *World {
	w := &World{
		History: history.New(choices), database: b.database.Clone(), shops: b.shops, tools: &b.tools,
		operators: map[string]*outside.Operator{}, servers: map[string]*outside.MerchantServer{},
		pool: map[string][]*instance{}, operatorNext: map[string]time.Time{},
		unreadable: map[string]history.Window{}, refused: map[string]time.Time{}, changed: map[string]*merchantState{},
	}
	w.bareClient, w.noItems = model.NewClient(w.database), &dynamodb.QueryOutput{}
	w.checker = newChecker(w)
	w.secrets = &outside.Secrets{Faults: w.Faults, Trace: w.LogText}
	for name, value := range b.secrets {
		w.secrets.Set(history.Start.Add(-time.Hour), name, value)
	}
	for _, name := range b.shops[0].Operators {
		o := &outside.Operator{Name: name, Faults: w.Faults, AccessTokens: []string{accessToken(operatorToken, name)}}
		o.OnEffect = func(effect outside.Effect) { w.checker.effect(o, effect) }
		o.OnCall, o.OnOtherContent = w.checker.operatorCall, w.checker.otherContent
		o.Trace = w.LogText
		w.operators[operatorHost(name)] = o
	}
	for _, s := range b.shops {
		w.changed[s.Name] = &merchantState{}
		w.servers[s.host] = &outside.MerchantServer{
			Name: s.Name, Secrets: []string{s.secret}, Faults: w.Faults, Trace: w.LogText,
			OnReceipt: func(receipt outside.Receipt) { w.checker.checkReceipt(s, receipt) },
		}
	}
	return w
}

// planRounds plans the rounds of the engineer once the world is calm, each after a check of what should have ended.
func (w *World) planRounds() {
	w.BrokenUntil(w.FaultsEnd)
	w.Kernel.At(w.FaultsEnd, "end of the faults", w.EndFaults)
	w.End = history.Latest(w.End, w.CalmFrom.Add(history.QuietTime))
	w.LastRound = w.End.Add(-afterLastRound)
	for at := w.LastRound; at.After(w.CalmFrom.Add(finalBound)); at = at.Add(-roundInterval) {
		w.Kernel.At(at, "round of the engineer", func() {
			w.checkProgress()
			w.engineerRound()
		})
	}
}

// observe runs between two steps: it passes changes on and checks the invariants.
func (w *World) observe() error {
	w.followChanges()
	if w.Violation != nil {
		return w.Violation
	}
	return nil
}
