package simulate

import (
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	model "mobilegateway/world/dynamodb"
)

// amounts follows the table of limits, and compares it with the entries and with the operators' effects (invariant 6).
// It remembers what the table has deleted by its time to live.
type amounts struct {
	checker *checker
	// sums are the stored sums by "merchant#currency#day", and marked are the sums of their marks.
	sums, marked map[string]int64
	marks        map[string]int64       // the stored amounts by "day#kind#id"
	counted      map[string]int64       // by "kind#id", over all days
	kept         map[string]int64       // by "kind#id": what was counted for days that were over when it ended
	history      map[string][]storedSum // of each sum
	// changed are the sums that have changed since the last check, raised those that have grown, each with the
	// transactions that grew it.
	changed []string
	raised  []string
	growing []*ledger.Entry
}

func newAmounts(c *checker) *amounts {
	return &amounts{
		checker: c, sums: map[string]int64{}, marked: map[string]int64{}, marks: map[string]int64{},
		counted: map[string]int64{}, kept: map[string]int64{}, history: map[string][]storedSum{},
	}
}

// change reads one committed change of the table of limits.
func (a *amounts) change(change *model.Change) {
	if change.Expired {
		return
	}
	if day, isDay := strings.CutPrefix(change.Key, "day#"); isDay {
		sum := a.read(change, "spent")
		if sum > a.sums[day] {
			a.raised = append(a.raised, day)
		}
		a.sums[day] = sum
		a.history[day] = append(a.history[day], storedSum{a.checker.world.Kernel.Steps(), sum})
		a.changed = append(a.changed, day)
	}
	if mark, isMark := strings.CutPrefix(change.Key, "mark#"); isMark {
		a.changeMark(mark, a.read(change, "amount"))
	}
}

func (a *amounts) changeMark(mark string, amount int64) {
	day, key, _ := strings.Cut(mark, "#")
	a.checker.world.Logf("counted %d for %s on %s", amount, key, day)
	e := a.checker.entries[key]
	if e == nil {
		a.checker.fail(6, "%s was counted, and has no entry", key)
		return
	}
	grown := amount - a.marks[mark]
	a.marks[mark] = amount
	a.counted[key] += grown
	sum := e.Merchant.ID + "#" + e.Amount.Currency + "#" + day
	a.marked[sum] += grown
	a.changed = append(a.changed, sum)
	if grown > 0 {
		a.growing = append(a.growing, e)
	}
	// A send after a release moves the amount to its own day: the refund of the earlier day may come after it.
	isMoved := a.counted[key] >= e.Amount.Minor
	if amount == 0 && grown < 0 && !isMoved && a.checker.hasEffect(e) && !a.checker.world.lied(e.Route.UpstreamKey) {
		a.checker.fail(6, "%s was applied, and its amount was refunded", key)
	}
}

func (a *amounts) read(change *model.Change, name string) int64 {
	value, err := dynamoitem.ReadNumber(change.New(), name)
	if err != nil {
		a.checker.fail(6, "%s has no %s: %s", change.Key, name, err)
	}
	return value
}

// check compares the sums that have changed with their marks, once the changes of a step are read. A sum over the limit
// is allowed only if it grew by a transaction that the operator may have applied already.
func (a *amounts) check() {
	for _, day := range a.changed {
		if a.sums[day] != a.marked[day] {
			a.checker.fail(6, "the sum of %s is %d, and its transactions count %d", day, a.sums[day], a.marked[day])
		}
	}
	for _, day := range a.raised {
		for _, e := range a.growing {
			if a.sums[day] > dailyLimit && !e.EverUnknown && !e.NotApplied() {
				a.checker.fail(6, "%s raised the sum of %s to %d, over the limit", e.Key, day, a.sums[day])
			}
		}
	}
	a.changed, a.raised, a.growing = a.changed[:0], a.raised[:0], a.growing[:0]
}

// effect checks that an amount was counted before its operator applied it. One late success is excused: that of a
// payment that had ended before.
func (a *amounts) effect(e *ledger.Entry, effect outside.Effect) {
	if effect.Kind == outside.KindSMS || !e.Amount.CountsDaily || e.Status.Final() && e.NotApplied() {
		return
	}
	if counted := a.counted[e.Key.String()]; counted < effect.AmountMinor {
		a.checker.fail(6, "%s was applied with %d, and %d is counted", e.Key, effect.AmountMinor, counted)
	}
}

// checkEnd checks what is counted for an entry at the end. An amount may stay counted only after a crash or a failed
// write of the table of limits, or if the entry ended when its day was over (decision "merchant-limits").
func (a *amounts) checkEnd(e *ledger.Entry) {
	counted := a.counted[e.Key.String()]
	switch {
	case !e.Amount.CountsDaily:
		if counted != 0 && !a.checker.world.amountsMayStay {
			a.checker.fail(6, "%s counts against no limit, and %d is counted", e.Key, counted)
		}
	case e.NotApplied() && counted > a.kept[e.Key.String()] && !a.checker.world.amountsMayStay:
		a.checker.fail(6, "%s of %s was not applied, and %d is still counted", e.Key, e.SentAt, counted)
	case !e.NotApplied() && counted > e.Amount.Minor && !a.checker.world.amountsMayStay:
		a.checker.fail(6, "%s of %s has the amount %d, and %d is counted", e.Key, e.SentAt, e.Amount.Minor, counted)
	}
}

// countsAmounts reports whether a function counts or refunds amounts, so that its crash may leave one counted.
func countsAmounts(function string) bool {
	return !slices.Contains([]string{functionSMS, functionReceipt, functionStatus, functionRelay}, function)
}

// transition remembers what may stay counted for an entry that ends as not applied when its day is nearly over.
// A later send counts for another day. It checks that the amount of a payment is counted before the
// payment becomes successful, also after a lie of its operator. The table may have deleted the day.
func (a *amounts) transition(key string, before, after *ledger.Entry) {
	day := after.SentAt.UTC().Truncate(24 * time.Hour)
	if after.NotApplied() && !before.NotApplied() && time.Now().After(day.Add(25*time.Hour-2*time.Minute)) {
		a.kept[key] = a.counted[key]
	}
	isSuccess := after.Kind == ledger.Payment && after.Status == ledger.Successful && before.Status != after.Status
	isDayDeleted := time.Now().After(day.Add(3*24*time.Hour - history.MaxSkew)) // two days after its end
	counted := a.counted[key]
	if isSuccess && after.Amount.CountsDaily && counted < after.Amount.Minor && !isDayDeleted {
		a.checker.fail(6, "%s of %s became successful with %d, and %d is counted", key, after.SentAt,
			after.Amount.Minor,
			counted)
	}
}
