package explore

import (
	"context"
	"slices"
	"time"

	"mobilegateway/proof/simulate/fixture"
	model "mobilegateway/world/dynamodb"
)

// gates parks tasks before their outside calls, and decides about crashes and about the fates of calls of tables.
type gates struct{ *run }

// gate parks the calling task before an outside call.
func (x gates) gate(ctx context.Context, i *instance, name string, a access) {
	sight := i.sightOf(ctx, name)
	x.accesses[sight] = a
	i.seen.begin(sight)
	i.pending[sight] = a
	parked := time.Now()
	i.Gate(sight)
	delete(i.pending, sight)
	if !x.scope.Full && time.Now().After(parked) {
		x.crashAfter(i, "a time before "+name)
	}
	reductions(x).checkAccess(i, name, a)
	i.seen.add(sight, uint64(time.Now().UnixNano()))
	if x.scope.Full && x.fault("crash before "+name, 1) > 0 {
		x.crash(i, "before "+name)
	}
}

// crash ends the calling task's instance.
func (x gates) crash(i *instance, where string) {
	x.Logf("%s: crashes %s", i.Name, where)
	i.Crash()
	i.Exit()
}

// crashAfter offers the crash after a call with an effect, or after a wait. A crash before the next one is the same.
func (x gates) crashAfter(i *instance, name string) {
	if x.fault("crash after "+name, 1) > 0 {
		x.crash(i, "after "+name)
	}
}

// tableFate is what happens to all attempts of a table's call.
type tableFate int

// The fates. A call whose attempts all fail without effect is one fault, because the SDK repeats single failures.
const (
	fateNormal        tableFate = iota
	fateLost                    // a write: applied, and the response is lost; the SDK sends it again
	fateFailed                  // not applied, and the caller gets an error
	fateAppliedFailed           // a write: applied, and the caller gets an error
	fateLate                    // a write: the caller gets an error, and it is applied later
	fates
)

var fateNames = [...]string{"", "response lost", "fails", "applied, then fails", "fails, applied later"}

// tableCall is a call of a table: its fate, and its name once it is known.
type tableCall struct {
	fate tableFate
	name string
}

// tableCallKey is the context key of a tableCall.
type tableCallKey struct{}

// tableGate parks a task before a call of a table and decides its fate. Every attempt comes here.
func (x gates) tableGate(ctx context.Context, i *instance, call model.Call) model.Decision {
	made, counts := ctx.Value(tableCallKey{}).(*tableCall)
	if !counts {
		return model.Decision{}
	}
	name := "table " + call.String()
	made.name = name
	if call.Table == fixture.MerchantTable || call.Operation == "Query" {
		return model.Decision{}
	}
	if call.Attempt == 1 {
		x.gate(ctx, i, name, tableAccess(call))
		made.fate = x.chooseFate(name, call.Writes)
	}
	switch isFirst := call.Attempt == 1; {
	case made.fate == fateNormal:
		return model.Decision{}
	case isFirst && (made.fate == fateLost || made.fate == fateAppliedFailed):
		return model.Decision{Outcome: model.AppliedThenCut}
	case made.fate == fateLost:
		x.gate(ctx, i, name, tableAccess(call))
		return model.Decision{}
	case isFirst && made.fate == fateLate:
		return model.Decision{Outcome: model.AppliedLate}
	}
	return model.Decision{Outcome: model.NotAppliedCut}
}

// chooseFate chooses the fate of a call.
func (x gates) chooseFate(name string, writes bool) tableFate {
	var fate tableFate
	if writes {
		fate = tableFate(x.fault("fate of "+name, int(fates)-1))
	} else if x.fault("fate of "+name, 1) > 0 {
		fate = fateFailed
	}
	if fate != fateNormal {
		x.Logf("%s: %s", name, fateNames[fate])
	}
	return fate
}

// applyLate applies a write at any later moment.
func (x gates) applyLate(i *instance, call model.Call, apply func()) {
	name := "late " + call.String()
	late := lateWrite{i.seen.sum + hashBytes([]byte(name)), tableAccess(call)}
	x.late = append(x.late, late)
	x.Kernel.At(time.Time{}, name, func() {
		x.late = slices.DeleteFunc(x.late, func(other lateWrite) bool { return other == late })
		x.Logf("%s", name)
		apply()
	})
}
