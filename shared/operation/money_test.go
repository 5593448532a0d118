package operation_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/internal/limitmem"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/settlement"
)

// day is a merchant's day: payments that are sent, repeated, taken over, settled and reported in any order, by attempts
// that may die after any step, over a table that may fail; and an operator that keeps its word.
type day struct {
	*operationtest.World
	profile  *merchant.Profile
	payments []*truth
	attempts []*try
	rough    bool // something crashed or failed
}

// truth is what the operator knows of one payment.
type truth struct {
	id      string
	minor   int64
	applied bool
	over    bool // the operator has ended it: nothing more is applied
	late    int  // calls whose answer was lost and which may still be applied
}

// try is one attempt at a payment, and what it does next.
type try struct {
	*truth
	held   *ledger.Entry
	result operator.Result
	next   func(*rapid.T, *try)
}

const dailyLimit = 1000

func newDay(t testing.TB, rough bool) *day {
	d := &day{World: operationtest.New(t), profile: operationtest.Demo(), rough: rough}
	d.profile.DailyAmounts = map[string]int64{"XOF": dailyLimit}
	return d
}

func (d *day) arrive(t *rapid.T) {
	payment := rapid.SampledFrom(d.payments).Draw(t, "payment")
	d.attempts = append(d.attempts, &try{truth: payment, next: d.hold})
}

func (d *day) hold(_ *rapid.T, a *try) {
	a.next = nil
	held, _, err := d.Desk.Hold(context.Background(), request(d.World), &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: a.id}, MerchantID: d.profile.ID, Merchant: "DemoShop", Operator: "orange", Country: "CI",
		Fingerprint: "f", UpstreamKey: a.id, Minor: a.minor, Currency: "XOF", Limited: true,
	}, a.id, "order_id")
	if err == nil && held != nil {
		a.held, a.next = held, d.spend
	}
}

func (d *day) spend(_ *rapid.T, a *try) {
	a.next = nil
	if d.Desk.Spend(context.Background(), request(d.World), d.profile, a.held) == nil {
		a.next = d.call
	}
}

// call: the operator takes a payment once, however often it is sent, and says that it did not only where it never will.
func (d *day) call(t *rapid.T, a *try) {
	a.next = d.settle
	words := []string{"done", "lost", "lost on the way"}
	switch {
	case a.applied:
		words = words[:2]
	case a.over:
		words = []string{"refused", "lost"}
	case a.late == 0:
		words = append(words, "refused", "released")
	}
	a.result = operator.Result{Fault: fault.Of(fault.OutcomeUnknown)}
	switch rapid.SampledFrom(words).Draw(t, "operator") {
	case "done":
		a.applied, a.result = true, operator.Result{Outcome: operator.Done}
	case "lost":
		a.applied = a.applied || !a.over
	case "lost on the way":
		a.late++
	case "refused":
		a.over = true
		a.result = operator.Result{Outcome: operator.Refused, Fault: &fault.Fault{
			Kind: fault.OperatorError, Operator: &fault.OperatorFault{MessageID: "POL1000", HTTPStatus: 403},
		}}
	case "released":
		a.result = operator.Result{Outcome: operator.Released, Fault: fault.Of(fault.OperatorDown)}
	}
}

func (d *day) settle(_ *rapid.T, a *try) {
	a.next = nil
	_, _ = d.Desk.Settle(context.Background(), request(d.World), a.held, a.result, operation.Outcomes{
		Done: ledger.Settlement{AnswerStatus: 201, AnswerBody: []byte(`{}`)},
	})
}

// step lets one attempt go on, or die.
func (d *day) step(t *rapid.T) {
	if len(d.attempts) == 0 {
		return
	}
	i := rapid.IntRange(0, len(d.attempts)-1).Draw(t, "attempt")
	a := d.attempts[i]
	d.attempts = slices.Delete(d.attempts, i, i+1) // others may go on within its step
	if d.rough && rapid.IntRange(0, 9).Draw(t, "dies") == 0 {
		return
	}
	if a.next(t, a); a.next != nil {
		d.attempts = append(d.attempts, a)
	}
}

// between lets others go on between the storing of an outcome and what is given back for it, and between a reservation
// and its being counted.
type between struct {
	limit.Counter
	others func()
}

// Count is limit.Counter'.
func (b *between) Count(ctx context.Context, e *ledger.Entry, version, limit int64) error {
	b.others()
	return b.Counter.Count(ctx, e, version, limit)
}

// GiveBack is limit.Counter'.
func (b *between) GiveBack(ctx context.Context, e *ledger.Entry) error {
	b.others()
	return b.Counter.GiveBack(ctx, e)
}

// arriveLate applies a call that was on its way.
func (d *day) arriveLate(t *rapid.T) {
	p := rapid.SampledFrom(d.payments).Draw(t, "late")
	if p.late > 0 && !p.over {
		p.late, p.applied = p.late-1, true
	}
}

// report: the operator ends a payment and says so, in a callback or in its answer to the sweep.
func (d *day) report(t *rapid.T) {
	p := rapid.SampledFrom(d.payments).Draw(t, "reported")
	key := ledger.Key{Kind: ledger.Payment, ID: p.id}
	stored, err := d.Ledger.Get(context.Background(), key)
	if err != nil || stored == nil {
		return
	}
	p.over = true
	status := ledger.Failed
	if p.applied {
		status = ledger.Successful
	}
	book := &ledger.Book{Store: d.Ledger, Reader: d.Ledger, Now: d.Clock.Now, Rand: &counting{}}
	desk := &settlement.Desk{Amounts: d.Desk.Amounts.(*between)}
	_, _, _ = desk.Keep(context.Background(), func(change func(*ledger.Entry) bool) (*ledger.Entry, error) {
		return book.Apply(context.Background(), stored, func(e *ledger.Entry) error {
			if !change(e) {
				return ledger.ErrUnchanged
			}
			return nil
		})
	}, func(e *ledger.Entry) bool {
		return e.Resolve(ledger.Resolution{Status: status, Source: "getStatus"}, ledger.Moment(d.Clock.Now())) != ledger.Same
	})
}

// counting gives bytes that never repeat.
type counting struct{}

// Read is io.Reader's: the writers' tokens of reports only have to differ from those of the attempts.
func (*counting) Read(p []byte) (int, error) {
	copy(p, fmt.Sprintf("%16d", time.Now().UnixNano()))
	return len(p), nil
}

// check: no payment that the operator applied is uncounted, and none is counted twice.
func (d *day) check(t *rapid.T) {
	applied, all := int64(0), int64(0)
	for _, p := range d.payments {
		all += p.minor
		if p.applied {
			applied += p.minor
		}
	}
	if sum := d.Limits.Sum(d.profile.ID, "XOF"); sum < applied || sum > all {
		t.Fatalf("counted %d, applied %d of %d", sum, applied, all)
	}
}

// decision "merchant-limits": counted at most once, and never less than was applied, whatever dies or fails in between; and
// exactly what is not certainly unapplied where nothing does.
func TestTheDayIsCounted(t *testing.T) {
	for name, rough := range map[string]bool{"well": false, "rough": true} {
		t.Run(name, func(outer *testing.T) {
			rapid.Check(outer, func(t *rapid.T) {
				d := newDay(outer, rough)
				for i := range rapid.IntRange(1, 3).Draw(t, "payments") {
					d.payments = append(d.payments, &truth{id: fmt.Sprintf("DemoShop_%d", i), minor: rapid.Int64Range(1, 600).Draw(t, "minor")})
				}
				d.live(t)
				for len(d.attempts) > 0 {
					d.step(t)
				}
				d.check(t)
				if !rough {
					d.exact(t)
				}
			})
		})
	}
}

// live takes a number of steps.
func (d *day) live(t *rapid.T) {
	if d.rough {
		faults := rapid.SampledFrom([]limitmem.Fault{
			limitmem.None, limitmem.None, limitmem.None, limitmem.Error, limitmem.LostAnswer, limitmem.Conflict,
		})
		d.Limits.SetFaults(func() limitmem.Fault { return faults.Draw(t, "limit fault") })
		stores := rapid.SampledFrom([]ledgermem.Fault{
			ledgermem.None, ledgermem.None, ledgermem.None, ledgermem.Error, ledgermem.LostAnswer, ledgermem.Repeated,
		})
		d.Ledger.SetFaults(func(ledgermem.Call) ledgermem.Fault { return stores.Draw(t, "ledger fault") })
	}
	d.Desk.Amounts = &between{d.Desk.Amounts, func() {
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			rapid.SampledFrom([]func(*rapid.T){d.arrive, d.step, d.step, d.report}).Draw(t, "other")(t)
		}
	}}
	steps := []func(*rapid.T){d.arrive, d.arrive, d.step, d.step, d.step, d.step, d.step, d.arriveLate, d.report}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		d.Clock.Advance(time.Duration(rapid.IntRange(0, 8).Draw(t, "wait in s")) * time.Second)
		rapid.SampledFrom(steps).Draw(t, "step")(t)
		d.check(t)
	}
}

// exact compares the sum with the entries.
func (d *day) exact(t *rapid.T) {
	want := int64(0)
	for _, e := range d.Ledger.All() {
		if !e.NotApplied() {
			want += e.Minor
		}
	}
	if sum := d.Limits.Sum(d.profile.ID, "XOF"); sum != want {
		t.Fatalf("counted %d, want %d: %+v", sum, want, d.Ledger.All())
	}
}
