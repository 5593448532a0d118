package check

import (
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/money"
	model "mobilegateway/world/dynamodb"
)

const exactAmounts invariant = "6: Amount, currency, merchant, payer and account at the operator equal those of the " +
	"ledger, and so does the text of the payer's SMS. The daily limit is never exceeded, and a refusal for it is " +
	"true. Nothing stays counted that was not applied, except after a crash or a write without a response"

// amounts follows the table of limits, and compares it with the entries and with the operators' effects.
// It remembers what the table has deleted by its time to live.
type amounts struct {
	*base
	// mayStay is true after a crash or a freeze of a function that counts amounts, or after a write without a response:
	// an amount may stay counted.
	mayStay bool
	// sums are the stored sums by "merchant#currency#day", and marked are the sums of their marks.
	sums, marked map[string]int64
	marks        map[string]int64       // the stored amounts by "day#kind#id"
	counted      map[string]int64       // by "kind#id", over all days
	kept         map[string]int64       // by "kind#id": what was counted for days that were over when it ended
	history      map[string][]storedSum // of each sum
	// unchecked are the sums that have changed since the last check, raised those that have grown, each with the
	// transactions that grew it.
	unchecked []string
	raised    []string
	growing   []*ledger.Entry
}

func newAmounts(b *base) amounts {
	return amounts{
		base: b, sums: map[string]int64{}, marked: map[string]int64{}, marks: map[string]int64{},
		counted: map[string]int64{}, kept: map[string]int64{}, history: map[string][]storedSum{},
	}
}

// follow reads one committed change of the table of limits.
func (a *amounts) follow(change *model.Change) {
	if change.Expired {
		return
	}
	if day, isDay := strings.CutPrefix(change.Key, "day#"); isDay {
		sum := a.read(change, "spent")
		if sum > a.sums[day] {
			a.raised = append(a.raised, day)
		}
		a.sums[day] = sum
		a.history[day] = append(a.history[day], storedSum{a.Kernel.Steps(), sum})
		a.unchecked = append(a.unchecked, day)
	}
	if mark, isMark := strings.CutPrefix(change.Key, "mark#"); isMark {
		a.changeMark(mark, a.read(change, "amount"))
	}
}

func (a *amounts) changeMark(mark string, amount int64) {
	day, key, _ := strings.Cut(mark, "#")
	a.Logf("counted %d for %s on %s", amount, key, day)
	e := a.Entries.Of(key)
	if e == nil {
		a.fail(exactAmounts, "%s was counted, and has no entry", key)
		return
	}
	grown := amount - a.marks[mark]
	a.marks[mark] = amount
	a.counted[key] += grown
	sum := e.Merchant.ID + "#" + e.Amount.Currency + "#" + day
	a.marked[sum] += grown
	a.unchecked = append(a.unchecked, sum)
	if grown > 0 {
		a.growing = append(a.growing, e)
	}
	// A send after a release moves the amount to its own day: the refund of the earlier day may come after it.
	isMoved := a.counted[key] >= e.Amount.Minor
	if amount == 0 && grown < 0 && !isMoved && a.operators.HasEffect(e) && !a.operators.HasLied(e.Route.UpstreamKey) {
		a.fail(exactAmounts, "%s was applied, and its amount was refunded", key)
	}
}

func (a *amounts) read(change *model.Change, name string) int64 {
	value, err := dynamoitem.ReadNumber(change.New(), name)
	if err != nil {
		a.fail(exactAmounts, "%s has no %s: %s", change.Key, name, err)
	}
	return value
}

// followed compares the sums that have changed with their marks, once the changes of a step are read. A sum over the
// limit is allowed only if it grew by a transaction that the operator may have applied already.
func (a *amounts) followed() {
	for _, day := range a.unchecked {
		if a.sums[day] != a.marked[day] {
			a.fail(exactAmounts, "the sum of %s is %d, and its transactions count %d", day, a.sums[day], a.marked[day])
		}
	}
	for _, day := range a.raised {
		for _, e := range a.growing {
			if a.sums[day] > fixture.DailyLimit && !e.EverUnknown && !e.NotApplied() {
				a.fail(exactAmounts, "%s raised the sum of %s to %d, over the limit", e.Key, day, a.sums[day])
			}
		}
	}
	a.unchecked, a.raised, a.growing = a.unchecked[:0], a.raised[:0], a.growing[:0]
}

// applied checks that an amount was counted before its operator applied it. One late success is excused: that of a
// payment that had ended before.
func (a *amounts) applied(e *ledger.Entry, effect outside.Effect) {
	if effect.Kind == outside.KindSMS || !e.Amount.CountsDaily || e.Status.Final() && e.NotApplied() {
		return
	}
	if counted := a.counted[e.Key.String()]; counted < effect.AmountMinor {
		a.fail(exactAmounts, "%s was applied with %d, and %d is counted", e.Key, effect.AmountMinor, counted)
	}
}

// atEnd checks what is counted for an entry at the end. An amount may stay counted only after a crash or a failed
// write of the table of limits, or if the entry ended when its day was over (decision "merchant-limits").
func (a *amounts) atEnd(e *ledger.Entry) {
	counted := a.counted[e.Key.String()]
	switch {
	case !e.Amount.CountsDaily:
		if counted != 0 && !a.mayStay {
			a.fail(exactAmounts, "%s counts against no limit, and %d is counted", e.Key, counted)
		}
	case e.NotApplied() && counted > a.kept[e.Key.String()] && !a.mayStay:
		a.fail(exactAmounts, "%s of %s was not applied, and %d is still counted", e.Key, e.SentAt, counted)
	case !e.NotApplied() && counted > e.Amount.Minor && !a.mayStay:
		a.fail(exactAmounts, "%s of %s has the amount %d, and %d is counted", e.Key, e.SentAt, e.Amount.Minor, counted)
	}
}

// countsAmounts reports whether a function counts or refunds amounts, so that its crash may leave one counted.
func countsAmounts(function string) bool {
	return !slices.Contains([]string{deployment.SMS, deployment.Receipt, deployment.Status, deployment.Relay}, function)
}

// changed remembers what may stay counted for an entry that ends as not applied when its day is nearly over.
// A later send counts for another day. It checks that the amount of a payment is counted before the
// payment becomes successful, also after a lie of its operator. The table may have deleted the day.
func (a *amounts) changed(t transition) {
	key, before, after := t.key, t.before, t.after
	day := after.SentAt.UTC().Truncate(24 * time.Hour)
	if after.NotApplied() && !before.NotApplied() && time.Now().After(day.Add(25*time.Hour-2*time.Minute)) {
		a.kept[key] = a.counted[key]
	}
	isSuccess := after.Kind == ledger.Payment && after.Status == ledger.Successful && before.Status != after.Status
	isDayDeleted := time.Now().After(day.Add(3*24*time.Hour - history.MaxSkew)) // two days after its end
	counted := a.counted[key]
	if isSuccess && after.Amount.CountsDaily && counted < after.Amount.Minor && !isDayDeleted {
		a.fail(exactAmounts, "%s of %s became successful with %d, and %d is counted", key, after.SentAt,
			after.Amount.Minor, counted)
	}
}

// storedSum is the sum of a day from a step of the kernel on.
type storedSum struct {
	step int
	sum  int64
}

// refusal checks a refusal because of the daily amount: the amount did not fit into the rest of its day,
// at some time since the request began. The day is that of the first send, or of the request. Clocks differ.
func (a *amounts) refusal(o *merchants.Order, began int) {
	country := o.Wanted.Country
	if country.ChargesInMinorUnits && o.Function == deployment.Charge {
		country.Exponent = 0
	}
	amount, err := money.Parse(o.Wanted.Amount, country.Exponent)
	if err != nil {
		a.fail(exactAmounts, "the amount %s: %s", o.Wanted.Amount, err)
		return
	}
	sent := []time.Time{time.Now().Add(-history.MaxSkew - deployment.DefaultTimeout), time.Now().Add(history.MaxSkew)}
	if e := a.Entries.Of(o.Key().String()); e != nil {
		sent = append(sent, e.SentAt)
	}
	most := int64(0)
	for _, at := range sent {
		day := o.Shop.Profile.ID + "#" + o.Wanted.Currency + "#" + at.UTC().Format(time.DateOnly)
		most = max(most, a.highestSum(day, began))
	}
	if most+amount <= fixture.DailyLimit {
		a.fail(exactAmounts, "%s was refused, and its amount %d fits: its day had at most %d", o.Key(), amount, most)
	}
}

// highestSum is the highest sum that a day had since a step.
func (a *amounts) highestSum(day string, since int) int64 {
	highest := int64(0)
	for _, stored := range a.history[day] {
		if stored.step < since {
			highest = stored.sum
		} else {
			highest = max(highest, stored.sum)
		}
	}
	return highest
}

// TokenRefused implements operators.Observer.
func (a *amounts) TokenRefused(platform, path, response string) {
	a.fail(exactAmounts, "%s refused the token of %s, which has expired or is another account's: %s", platform, path,
		response)
}

// OtherAccount implements operators.Observer.
func (a *amounts) OtherAccount(e *ledger.Entry, account string) {
	a.fail(exactAmounts, "%s has account %s, and was sent by account %s", e.Key, e.Route.Account, account)
}
