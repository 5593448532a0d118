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
	"mobilegateway/shared/reconcile"
)

// dayModel is a merchant's day: payments that are sent, repeated, taken over, settled and reported in any order, by attempts
// that may die after any step, over a table that may fail; and an operator that keeps its word.
type dayModel struct {
	*operationtest.Fixture
	profile        *merchant.Profile
	payments       []*operatorPayment
	attempts       []*paymentAttempt
	faultsInjected bool // something crashed or failed
}

// operatorPayment is what the operator knows of one payment.
type operatorPayment struct {
	id           string
	minor        int64
	applied      bool
	final        bool // the operator has ended it: nothing more is applied
	delayedCalls int  // calls whose answer was lost and which may still be applied
}

// paymentAttempt is one attempt at a payment, and what it does next.
type paymentAttempt struct {
	*operatorPayment
	reservation *ledger.Entry
	result      operator.Result
	nextStep    func(*rapid.T, *paymentAttempt)
}

const dailyLimit = 1000

func newDayModel(t testing.TB, faultsInjected bool) *dayModel {
	d := &dayModel{Fixture: operationtest.New(t), profile: operationtest.DemoProfile(), faultsInjected: faultsInjected}
	d.profile.DailyAmounts = map[string]int64{"XOF": dailyLimit}
	return d
}

func (d *dayModel) startAttempt(t *rapid.T) {
	payment := rapid.SampledFrom(d.payments).Draw(t, "payment")
	d.attempts = append(d.attempts, &paymentAttempt{operatorPayment: payment, nextStep: d.reserve})
}

func (d *dayModel) reserve(_ *rapid.T, a *paymentAttempt) {
	a.nextStep = nil
	reservation, _, err := d.Pipeline.Reserve(context.Background(), newRequest(d.Fixture), &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: a.id}, MerchantID: d.profile.ID, Merchant: "DemoShop", Operator: "orange", Country: "CI",
		Fingerprint: "f", UpstreamKey: a.id, AmountMinor: a.minor, Currency: "XOF", CountsDailyAmount: true,
	}, a.id, "order_id")
	if err == nil && reservation != nil {
		a.reservation, a.nextStep = reservation, d.reserveDailyAmount
	}
}

func (d *dayModel) reserveDailyAmount(_ *rapid.T, a *paymentAttempt) {
	a.nextStep = nil
	if d.Pipeline.ReserveDailyAmount(context.Background(), newRequest(d.Fixture), d.profile, a.reservation) == nil {
		a.nextStep = d.callOperator
	}
}

// callOperator: the operator takes a payment once, however often it is sent, and says that it did not only where it never will.
func (d *dayModel) callOperator(t *rapid.T, a *paymentAttempt) {
	a.nextStep = d.recordOutcome
	outcomeNames := []string{"done", "lost", "lost on the way"}
	switch {
	case a.applied:
		outcomeNames = outcomeNames[:2]
	case a.final:
		outcomeNames = []string{"refused", "lost"}
	case a.delayedCalls == 0:
		outcomeNames = append(outcomeNames, "refused", "released")
	}
	a.result = operator.Result{Fault: fault.New(fault.OutcomeUnknown)}
	switch rapid.SampledFrom(outcomeNames).Draw(t, "operator") {
	case "done":
		a.applied, a.result = true, operator.Result{Outcome: operator.Succeeded}
	case "lost":
		a.applied = a.applied || !a.final
	case "lost on the way":
		a.delayedCalls++
	case "refused":
		a.final = true
		a.result = operator.Result{Outcome: operator.Refused, Fault: &fault.Fault{
			Kind: fault.OperatorError, OperatorException: &fault.OperatorException{MessageID: "POL1000", HTTPStatus: 403},
		}}
	case "released":
		a.result = operator.Result{Outcome: operator.NotApplied, Fault: fault.New(fault.OperatorUnavailable)}
	}
}

func (d *dayModel) recordOutcome(_ *rapid.T, a *paymentAttempt) {
	a.nextStep = nil
	_, _ = d.Pipeline.RecordOutcome(context.Background(), newRequest(d.Fixture), a.reservation, a.result, operation.CallOutcomes{
		Done: ledger.CallOutcome{ResponseStatus: 201, ResponseBody: []byte(`{}`)},
	})
}

// advanceAttempt lets one attempt go on, or die.
func (d *dayModel) advanceAttempt(t *rapid.T) {
	if len(d.attempts) == 0 {
		return
	}
	i := rapid.IntRange(0, len(d.attempts)-1).Draw(t, "attempt")
	a := d.attempts[i]
	d.attempts = slices.Delete(d.attempts, i, i+1) // others may go on within its step
	if d.faultsInjected && rapid.IntRange(0, 9).Draw(t, "dies") == 0 {
		return
	}
	if a.nextStep(t, a); a.nextStep != nil {
		d.attempts = append(d.attempts, a)
	}
}

// interleavedLimiter lets others go on between the storing of an outcome and what is given back for it, and between a reservation
// and its being counted.
type interleavedLimiter struct {
	limit.AmountLimiter
	runOthers func()
}

// Reserve is limit.Counter'.
func (b *interleavedLimiter) Reserve(ctx context.Context, e *ledger.Entry, version, limit int64) error {
	b.runOthers()
	return b.AmountLimiter.Reserve(ctx, e, version, limit)
}

// Refund is limit.Counter'.
func (b *interleavedLimiter) Refund(ctx context.Context, e *ledger.Entry) error {
	b.runOthers()
	return b.AmountLimiter.Refund(ctx, e)
}

// applyDelayedCall applies a call that was on its way.
func (d *dayModel) applyDelayedCall(t *rapid.T) {
	p := rapid.SampledFrom(d.payments).Draw(t, "late")
	if p.delayedCalls > 0 && !p.final {
		p.delayedCalls, p.applied = p.delayedCalls-1, true
	}
}

// reportFinalStatus: the operator ends a payment and says so, in a callback or in its answer to the sweep.
func (d *dayModel) reportFinalStatus(t *rapid.T) {
	p := rapid.SampledFrom(d.payments).Draw(t, "reported")
	key := ledger.Key{Kind: ledger.Payment, ID: p.id}
	existing, err := d.Ledger.Get(context.Background(), key)
	if err != nil || existing == nil {
		return
	}
	p.final = true
	status := ledger.Failed
	if p.applied {
		status = ledger.Successful
	}
	book := &ledger.Book{Store: d.Ledger, Reader: d.Ledger, Now: d.Clock.Now, Rand: &uniqueReader{}}
	pipeline := &reconcile.Reconciler{DailyAmounts: d.Pipeline.DailyAmounts.(*interleavedLimiter)}
	_, _, _ = pipeline.StoreAndAdjustLimit(context.Background(), func(change func(*ledger.Entry) bool) (*ledger.Entry, error) {
		return book.ChangeKnown(context.Background(), existing, func(e *ledger.Entry) error {
			if !change(e) {
				return ledger.ErrUnchanged
			}
			return nil
		})
	}, func(e *ledger.Entry) bool {
		return e.ApplyFinalStatus(ledger.StatusReport{Status: status, Source: "getStatus"}, ledger.Timestamp(d.Clock.Now())) != ledger.Unchanged
	})
}

// uniqueReader gives bytes that never repeat.
type uniqueReader struct{}

// Read is io.Reader's: the writers' tokens of reports only have to differ from those of the attempts.
func (*uniqueReader) Read(p []byte) (int, error) {
	copy(p, fmt.Sprintf("%16d", time.Now().UnixNano()))
	return len(p), nil
}

// checkBounds: no payment that the operator applied is uncounted, and none is counted twice.
func (d *dayModel) checkBounds(t *rapid.T) {
	applied, all := int64(0), int64(0)
	for _, p := range d.payments {
		all += p.minor
		if p.applied {
			applied += p.minor
		}
	}
	if sum := d.LimitStore.Sum(d.profile.ID, "XOF"); sum < applied || sum > all {
		t.Fatalf("counted %d, applied %d of %d", sum, applied, all)
	}
}

// decision "merchant-limits": counted at most once, and never less than was applied, whatever dies or fails in between; and
// exactly what is not certainly unapplied where nothing does.
func TestDailyAmountModel(t *testing.T) {
	for name, faultsInjected := range map[string]bool{"well": false, "rough": true} {
		t.Run(name, func(outer *testing.T) {
			rapid.Check(outer, func(t *rapid.T) {
				d := newDayModel(outer, faultsInjected)
				for i := range rapid.IntRange(1, 3).Draw(t, "payments") {
					d.payments = append(d.payments, &operatorPayment{id: fmt.Sprintf("DemoShop_%d", i), minor: rapid.Int64Range(1, 600).Draw(t, "minor")})
				}
				d.runSteps(t)
				for len(d.attempts) > 0 {
					d.advanceAttempt(t)
				}
				d.checkBounds(t)
				if !faultsInjected {
					d.checkExactSum(t)
				}
			})
		})
	}
}

// runSteps takes a number of steps.
func (d *dayModel) runSteps(t *rapid.T) {
	if d.faultsInjected {
		faults := rapid.SampledFrom([]limitmem.Fault{
			limitmem.None, limitmem.None, limitmem.None, limitmem.Error, limitmem.LostResponse, limitmem.Conflict,
		})
		d.LimitStore.SetFaults(func() limitmem.Fault { return faults.Draw(t, "limit fault") })
		stores := rapid.SampledFrom([]ledgermem.InjectedFault{
			ledgermem.NoFault, ledgermem.NoFault, ledgermem.NoFault, ledgermem.FailedBeforeApply, ledgermem.LostResponse, ledgermem.RetriedAfterLostResponse,
		})
		d.Ledger.InjectFaults(func(ledgermem.Call) ledgermem.InjectedFault { return stores.Draw(t, "ledger fault") })
	}
	d.Pipeline.DailyAmounts = &interleavedLimiter{d.Pipeline.DailyAmounts, func() {
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			rapid.SampledFrom([]func(*rapid.T){d.startAttempt, d.advanceAttempt, d.advanceAttempt, d.reportFinalStatus}).Draw(t, "other")(t)
		}
	}}
	steps := []func(*rapid.T){d.startAttempt, d.startAttempt, d.advanceAttempt, d.advanceAttempt, d.advanceAttempt, d.advanceAttempt, d.advanceAttempt, d.applyDelayedCall, d.reportFinalStatus}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		d.Clock.Advance(time.Duration(rapid.IntRange(0, 8).Draw(t, "wait in s")) * time.Second)
		rapid.SampledFrom(steps).Draw(t, "step")(t)
		d.checkBounds(t)
	}
}

// checkExactSum compares the sum with the entries.
func (d *dayModel) checkExactSum(t *rapid.T) {
	want := int64(0)
	for _, e := range d.Ledger.All() {
		if !e.NotApplied() {
			want += e.AmountMinor
		}
	}
	if sum := d.LimitStore.Sum(d.profile.ID, "XOF"); sum != want {
		t.Fatalf("counted %d, want %d: %+v", sum, want, d.Ledger.All())
	}
}
