package simulate

import (
	"context"
	"flag"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/explore"
	"mobilegateway/proof/simulate/world"
	"mobilegateway/shared/wiring"
)

var (
	exhaustive = flag.String("exhaustive", "", "worlds of TestExhaustive: empty for pairs of actors, part for what CI "+
		"runs, 1 for all")
	worldRuns  = flag.Int("world-runs", 0, "greatest number of runs of a world, 0 for no bound")
	worldFault = flag.Int("world-faults", -1, "number of faults, instead of the world's own")
	worldFrom  = flag.String("world-from", "", "values of the first choices, with commas, from which to search")
	worldUntil = flag.String("world-until", "", "values of the first choices, with commas, at which to end the search")
)

// inBubble returns a function that runs another one in a bubble.
func inBubble(t *testing.T) func(func()) {
	return func(run func()) { synctest.Test(t, func(*testing.T) { run() }) }
}

func newExplored() (*deployment.Deployment, explore.World) { return world.NewExplored() }

func exploreAndLog(t *testing.T, scope explore.Scope) explore.Exploration {
	t.Helper()
	began := time.Now()
	scope.Report = func(runs, states int, done float64) {
		t.Logf("%-28s %d runs, %d states so far, %.2f %%", scope, runs, states, 100*done)
	}
	e := explore.Explore(scope, newExplored, *worldRuns, inBubble(t))
	t.Logf("%-28s faults %d: %7d runs %7d states %6d ends (%d long), depth %3d, complete %v, %s", scope, scope.Faults,
		e.Runs, e.States, e.Ends, e.Long, e.Depth, e.Complete, time.Since(began).Round(time.Millisecond))
	if e.Violation != nil {
		for _, line := range e.Story {
			t.Log(line)
		}
		t.Errorf("%s: %s", scope, e.Violation)
	}
	return e
}

// pairs are worlds of two actors. threes are all choices of three actors out of these: two requests of one key, a
// callback, a sweep, a relay batch, an act of a person.
var (
	pairs  = []string{"RR", "RC", "RS", "RL", "RA", "CS", "CL", "CA", "SL", "SA", "LA"}
	threes = []string{"RRC", "RRS", "RRL", "RRA", "RCS", "RCL", "RCA", "RSL", "RSA", "RLA", "CSL", "CSA", "CLA", "SLA"}
)

// allActors is the world of all actors.
const allActors = "RRCSLA"

// scopes lists the worlds that a level of the flag selects.
func scopes(level string) []explore.Scope {
	actors, faults := pairs, 0
	switch level {
	case "part":
		actors, faults = threes, 1
	case "1":
		actors, faults = append(slices.Clone(threes), allActors), 2
	}
	var all []explore.Scope
	for _, kind := range []string{"charge", "sms", "pay-web", "pay-tpe"} {
		for _, letters := range actors {
			if leavesOut(level, kind, letters) {
				continue
			}
			scope := explore.Scope{Kind: kind, Actors: letters, Faults: faults}
			if letters == allActors {
				scope.Faults = 1
			}
			if addStart(&scope); kind != "charge" || isOfCharges(&scope) {
				all = append(all, scope)
			}
		}
	}
	return all
}

// leavesOut reports whether a level leaves out a world. The channel tpe differs from web until the payment is accepted,
// so its worlds are those of a request and two other actors.
func leavesOut(level, kind, letters string) bool {
	hasRequest := strings.Contains(letters, "R") && letters != allActors
	return kind == "pay-tpe" && (level == "part" || !hasRequest)
}

// addStart sets what came before a world without a request: an order, and its callback if nothing else could bring one.
func addStart(scope *explore.Scope) {
	switch {
	case strings.Contains(scope.Actors, "R"):
	case strings.Contains(scope.Actors, "C"):
		scope.Start = "accepted"
	default:
		scope.Start = "reported"
	}
}

// isOfCharges reports whether charges have the actors of a world: no callback and no notification. All actors together
// are those without them.
func isOfCharges(scope *explore.Scope) bool {
	if scope.Actors == allActors {
		scope.Actors = "RRSA"
	}
	return !strings.ContainsAny(scope.Actors, "CL") && strings.Contains(scope.Actors, "R")
}

// memoryLimit is the memory above which TestExhaustive collects garbage more often, in bytes.
const memoryLimit = 6 << 30

// TestExhaustive explores small worlds. `make simulate EXHAUSTIVE=1` explores all of them.
func TestExhaustive(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	began, worlds, runs, states, depth := time.Now(), 0, 0, 0, 0
	from, until := valuesOf(t, *worldFrom), valuesOf(t, *worldUntil)
	for _, scope := range scopes(*exhaustive) {
		scope.From, scope.Until = from, until
		if *worldFault >= 0 {
			scope.Faults = *worldFault
		}
		t.Run(scope.String(), func(t *testing.T) {
			e := exploreAndLog(t, scope)
			worlds, runs, states, depth = worlds+1, runs+e.Runs, states+e.States, max(depth, e.Depth)
		})
	}
	t.Logf("%d worlds, %d runs, %d states, depth %d, %s", worlds, runs, states, depth,
		time.Since(began).Round(time.Second))
}

// valuesOf reads numbers with commas between them.
func valuesOf(t *testing.T, text string) (values []int) {
	t.Helper()
	if text == "" {
		return nil
	}
	for field := range strings.SplitSeq(text, ",") {
		value, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("choices of a world: %v", err)
		}
		values = append(values, value)
	}
	return values
}

// The parts of a search have the final states of the whole one.
func TestParts(t *testing.T) {
	scope := explore.Scope{Kind: "sms", Actors: "RC", Faults: 1}
	whole, found := exploreAndLog(t, scope), map[uint64]bool{}
	bounds := [][]int{nil, {0, 0, 0, 1}, {0, 1}, {1}, nil}
	for i := range len(bounds) - 1 {
		scope.From, scope.Until = bounds[i], bounds[i+1]
		part := exploreAndLog(t, scope)
		if !part.Complete || part.Runs >= whole.Runs {
			t.Errorf("the part from %v until %v has %d of %d runs, complete: %v", scope.From, scope.Until, part.Runs,
				whole.Runs, part.Complete)
		}
		maps.Copy(found, part.Finals)
	}
	if !maps.Equal(found, whole.Finals) {
		t.Errorf("the parts have %d final states, the whole search %d", len(found), len(whole.Finals))
	}
}

// The reductions lose nothing: with them and without them a world has the same final states.
// With -exhaustive it compares larger worlds too.
func TestReductions(t *testing.T) {
	worlds := []explore.Scope{
		{Kind: "charge", Actors: "RR", Faults: 1}, {Kind: "sms", Actors: "RC", Faults: 1},
		{Kind: "pay-web", Actors: "CL", Start: "accepted", Faults: 1}, {Kind: "sms", Actors: "SL", Start: "reported"},
		{Kind: "sms", Actors: "RC"}, {Kind: "charge", Actors: "RR"},
		{Kind: "charge", Actors: "RS", Faults: 2},
		{Kind: "sms", Actors: "CL", Start: "accepted", Faults: 2},
		{Kind: "pay-web", Actors: "SL", Start: "reported"},
		{Kind: "pay-web", Actors: "LA", Start: "reported"},
		{Kind: "sms", Actors: "CLA", Start: "accepted", Faults: 1}, // a delivery fails late
		{Kind: "pay-web", Actors: "CLA", Start: "accepted"},        // the relay gets two records at once
	}
	if *exhaustive != "" {
		worlds = append(worlds, []explore.Scope{
			{Kind: "charge", Actors: "RR", Faults: 2}, {Kind: "sms", Actors: "RC", Faults: 2},
			{Kind: "sms", Actors: "SL", Start: "reported", Faults: 2}, {Kind: "pay-web", Actors: "RC", Faults: 2},
			{Kind: "pay-web", Actors: "CL", Start: "accepted", Faults: 2},
			{Kind: "pay-web", Actors: "SL", Start: "reported", Faults: 1},
			{Kind: "pay-web", Actors: "LA", Start: "reported", Faults: 1},
			{Kind: "pay-web", Actors: "CSL", Start: "accepted"},
		}...)
	}
	for _, scope := range worlds {
		reduced := exploreAndLog(t, scope)
		scope.Full, scope.Paths = true, scope.Faults == 0
		full := exploreAndLog(t, scope)
		for state := range full.Finals {
			if !reduced.Finals[state] {
				t.Errorf("%s: the reduced search misses one of %d final states", scope, len(full.Finals))
				break
			}
		}
		if len(reduced.Finals) > len(full.Finals) {
			t.Errorf("%s: %d final states, and %d without reductions", scope, len(reduced.Finals), len(full.Finals))
		}
	}
}

// unconditional makes each write of the ledger unconditional, as if nothing fenced it.
type unconditional struct{ wiring.DynamoDB }

// PutItem implements the client's operation.
func (u unconditional) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	free := *in
	if in.ExpressionAttributeNames != nil || in.ExpressionAttributeValues != nil {
		free.ConditionExpression, free.ExpressionAttributeNames, free.ExpressionAttributeValues = nil, nil, nil
	}
	return u.DynamoDB.PutItem(ctx, &free, options...)
}

// The search finds a store without conditions, and prints the story.
func TestExploreFindsUnconditionalWrites(t *testing.T) {
	for _, kind := range []string{"charge", "sms", "pay-web"} {
		bug := func(client wiring.DynamoDB) wiring.DynamoDB { return unconditional{client} }
		scope := explore.Scope{Kind: kind, Actors: "RR", Bug: bug}
		e := explore.Explore(scope, newExplored, 1000, inBubble(t))
		if e.Violation == nil || len(e.Story) == 0 {
			t.Errorf("%s: no violation in %d runs and %d states", scope, e.Runs, e.States)
			continue
		}
		t.Logf("%s: %s, found in run %d", scope, e.Violation, e.Runs)
	}
}
