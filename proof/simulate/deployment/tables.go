package deployment

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

// Tables are the tables, with the faults of their calls.
type Tables struct {
	*Gate
	Database *model.Database
	Entries  *mirror.Entries
	// Unreadable has the times in which profiles cannot be read, by merchant id. ReadOnly is the time in which the
	// ledger's table cannot be written.
	Unreadable map[string]outside.Window
	ReadOnly   outside.Window
	// Contention lets each n-th transaction of the table of limits meet another one, 0 for none. That is not a fault.
	Contention int
	// AccountConcurrency switches the circuits on. It is the concurrency of the account, 0 for no circuits.
	AccountConcurrency int
	// HasNewerTimer is true if a newer version has a timer that the older one does not know.
	HasNewerTimer bool

	transactions int                   // of the table of limits
	writer       *Instance             // that made the last call of a table
	made         ledger.Transition     // what the writer says that it made; see TestRows
	noItems      *dynamodb.QueryOutput // the result of a query of an empty shard
}

// NewTables makes tables without faults.
func NewTables(g *Gate, database *model.Database) *Tables {
	return &Tables{
		Gate: g, Database: database, Entries: mirror.New(), Unreadable: map[string]outside.Window{},
		noItems: &dynamodb.QueryOutput{},
	}
}

// outcomes are the faults of a table's call, the most frequent ones first.
var outcomes = []model.Outcome{
	model.AppliedResponseLost, model.NotAppliedTimeout, model.AppliedThenCut, model.NotAppliedCut,
	model.InternalError, model.AppliedInternalError, model.Throttled, model.AppliedLate,
}

// outcomeNames are the names of the faults in stories and counts.
var outcomeNames = map[model.Outcome]string{
	model.AppliedResponseLost: "applied, no response", model.NotAppliedTimeout: "not applied, no response",
	model.AppliedThenCut: "applied, connection cut", model.NotAppliedCut: "not applied, connection cut",
	model.InternalError: "not applied, 500", model.AppliedInternalError: "applied, 500",
	model.Throttled: "throttled", model.AppliedLate: "applied late", model.Conflict: "transaction conflict",
}

// decide parks a task before an attempt at a table, and decides the attempt's fate.
func (t *Tables) decide(ctx context.Context, i *Instance, call model.Call) model.Decision {
	t.Pass(i, tableCall(call))
	t.writer = i
	t.made, _ = ctx.Value(ledger.NoTransition).(ledger.Transition) // by the overlay of TestRows
	decision := model.Decision{}
	if t.isUnreadable(call) {
		t.Count("table: unreadable profile")
		decision.Outcome = model.InternalError
		return decision
	}
	if call.Writes && call.Table == fixture.LedgerTable && t.ReadOnly.Contains(time.Now()) {
		t.Count("table: no write of the ledger")
		decision.Outcome = model.InternalError
		return decision
	}
	if t.isContended(call) {
		t.Count("table: another transaction at the same time")
		decision.Outcome = model.Conflict
		return decision
	}
	if !t.FaultsOn() {
		return decision
	}
	if (call.Index != "" || !call.Writes && !call.Consistent) && t.Tape.Happens("index lags", t.Rates.Lag) {
		decision.Lag = model.Lag{Writes: 1 + t.Tape.Choose("hidden writes", 3), Age: 5 * time.Second}
	}
	if !t.Tape.Happens("table fault", t.Rates.Table) {
		return decision
	}
	decision.Outcome = tape.Draw(t.Tape, "kind of table fault", outcomes...)
	if call.Operation == "TransactWriteItems" && t.Tape.Choose("transaction conflict", 3) == 2 {
		decision.Outcome = model.Conflict
		decision.ConflictAt = t.Tape.Choose("conflict at", len(call.Items))
	}
	if call.Operation == "BatchGetItem" && decision.Outcome == model.Throttled {
		decision.Outcome, decision.Unread = model.Applied, 1+t.Tape.Choose("unread keys", len(call.Items))
		t.Count("table: a batch leaves keys unread")
		t.Logf("%s: %s: %d keys are not read", i.Name, call, decision.Unread)
		return decision
	}
	t.Observer.Failed(call.Table)
	t.Count("table: " + outcomeNames[decision.Outcome])
	t.Logf("%s: %s: %s", i.Name, call, outcomeNames[decision.Outcome])
	return decision
}

// isContended reports whether a transaction of the table of limits meets another one.
func (t *Tables) isContended(call model.Call) bool {
	if t.Contention == 0 || call.Table != fixture.LimitTable || call.Operation != "TransactWriteItems" {
		return false
	}
	t.transactions++
	return t.transactions%t.Contention == 0
}

// isUnreadable reports whether a call needs a profile that cannot be read.
func (t *Tables) isUnreadable(call model.Call) bool {
	if call.Table != fixture.MerchantTable || len(t.Unreadable) == 0 {
		return false
	}
	return slices.ContainsFunc(call.Items, func(target model.Target) bool {
		broken, found := t.Unreadable[strings.TrimPrefix(target.Key, "merchant#")]
		return found && broken.Contains(time.Now())
	})
}

// tableCall names a call of a table without its keys.
func tableCall(call model.Call) string {
	name := tableCalls[call.Operation+call.Table+call.Index]
	if name == "" {
		return "table " + call.Operation + " " + call.Table + call.Index
	}
	return name
}

// tableCalls are the names of the most frequent calls.
var tableCalls = map[string]string{
	"Queryledger" + ledgerdynamo.IndexDue: "table Query due", "GetItem" + fixture.LedgerTable: "table GetItem ledger",
	"PutItem" + fixture.LedgerTable:   "table PutItem ledger",
	"GetItem" + fixture.MerchantTable: "table GetItem merchants",
}

// applyLate applies a write some time after its client gave up, or never.
func (t *Tables) applyLate(i *Instance, call model.Call, apply func()) {
	made := t.made
	wait := tape.Draw(t.Tape, "late write", 100*time.Millisecond, time.Second, 3*time.Second, time.Minute)
	t.Kernel.At(time.Now().Add(wait), "late write", func() {
		t.Logf("late write applied: %s", call)
		t.writer, t.made = i, made
		apply()
	})
}
