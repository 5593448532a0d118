package check

import (
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/shared/ledger"
)

const tableOfWrites invariant = "11: Each write of an entry has a row in the table of transitions: its caller, " +
	"the states and statuses before and after it, and the parts that it changes"

// callers are the packages of the rows whose writes each function makes. gatewayctl has those of its subjects.
var callers = map[string][]string{
	deployment.Charge: {"functions/charge", "shared/operation"}, deployment.Pay: {"functions/pay", "shared/operation"},
	deployment.SMS: {"functions/sms", "shared/operation"}, deployment.Notif: {"functions/notif", "shared/confirm"},
	deployment.Receipt: {"functions/receipt"}, deployment.Resend: {"functions/resend"},
	deployment.Relay:    {"functions/relay", "shared/delivery"},
	deployment.Sweep:    {"functions/sweep", "shared/confirm", "shared/delivery"},
	deployment.Engineer: {"gatewayctl/merchants", "gatewayctl/deliveries", "gatewayctl/transactions", "shared/confirm"},
}

// writes compares each write of an entry with the rows of the table of transitions.
type writes struct{ *base }

// allowedRow is a row, with the words of its parts, and the moves that were compared with it so far.
type allowedRow struct {
	made  ledger.Transition
	name  string
	words []string
	moves map[move]bool
}

// move is a way of an entry's state and status. An insert has the state "" before it.
type move struct {
	kind     ledger.Kind
	from, to ledger.State
	had, has ledger.Status
}

// allowed are the rows of entries by the function that makes their writes, the narrowest first. Their moves stay known
// from history to history.
var allowed = sync.OnceValue(func() map[string][]allowedRow {
	all := map[string][]allowedRow{}
	for function, packages := range callers {
		for place, row := range ledger.Rows() {
			isCaller := func(caller string) bool { return slices.Contains(packages, caller) }
			if row.Changes != ledger.OtherItem && slices.ContainsFunc(strings.Fields(row.Callers), isCaller) {
				made := ledger.Transition(place + 1)
				words := ledgertest.Words(row.Changes)
				all[function] = append(all[function], allowedRow{made, row.Name, words, map[move]bool{}})
			}
		}
		slices.SortStableFunc(all[function], func(a, b allowedRow) int { return len(a.words) - len(b.words) })
	}
	return all
})

// allows reports whether the row has a move.
func (r allowedRow) allows(m move) bool {
	isAllowed, isKnown := r.moves[m]
	if !isKnown {
		at := func(state ledger.State, status ledger.Status) *ledger.Entry {
			if state == "" {
				return nil
			}
			return &ledger.Entry{
				Key: ledger.Key{Kind: m.kind}, Call: ledger.Call{State: state},
				Progress: ledger.Progress{Status: status},
			}
		}
		isAllowed = ledgertest.CheckWrite(at(m.from, m.had), at(m.to, m.has), r.made) == nil
		r.moves[m] = isAllowed
	}
	return isAllowed
}

// changed checks that a row of the writer allows a write, and counts it. Without the overlay of TestRows the checker
// does not know which row the writer meant, so what the write changed decides, and the first row counts.
func (c *writes) changed(t transition, made ledger.Transition) {
	if t.writer == nil {
		return // the history itself
	}
	before, after := withoutNewer(t.before), withoutNewer(t.after)
	isReused := before != nil && after.CreatedAt.After(before.CreatedAt)
	m := move{kind: after.Kind, to: after.State, has: after.Status}
	var parts []string
	if before != nil && (!isReused || !before.PastRetention(time.Now().Add(history.MaxSkew))) {
		m.from, m.had = before.State, before.Status
		parts = ledgertest.ChangedParts(before, after)
	}
	for _, r := range allowed()[t.writer.Function] {
		isOther := func(part string) bool { return !slices.Contains(r.words, part) }
		isMeant := made == ledger.NoTransition || made == r.made
		if isMeant && !slices.ContainsFunc(parts, isOther) && r.allows(m) {
			c.Rows[r.name]++
			return
		}
	}
	c.fail(tableOfWrites, "%s wrote %s from %q %q to %q %q, and its row %q does not allow it with the changed parts %s",
		t.writer.Function, t.key, m.from, m.had, m.to, m.has, made.Row().Name, strings.Join(parts, ", "))
}

// withoutNewer returns an entry without the attribute of a newer version, which any write may add.
func withoutNewer(e *ledger.Entry) *ledger.Entry {
	if e == nil || e.Extra == nil {
		return e
	}
	known := *e
	known.Extra = nil
	return &known
}
