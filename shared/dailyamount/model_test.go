package dailyamount_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
)

// dayModel is a merchant's day. Payments are sent, retried, taken over, recorded and reported in any order, by attempts
// that may crash after any step and over tables that may fail. The operator keeps its promises.
type dayModel struct {
	*operationtest.Fixture
	profile        *merchant.Profile
	payments       []*operatorPayment
	attempts       []*paymentAttempt
	faultsInjected bool // attempts may crash and tables may fail
}

// operatorPayment is the operator's view of one payment.
type operatorPayment struct {
	id           string
	minor        int64
	applied      bool
	final        bool // the operator has ended it and applies nothing more
	delayedCalls int  // calls whose response was lost and which may still be applied
}

// paymentAttempt is one attempt at a payment, with its next step.
type paymentAttempt struct {
	*operatorPayment
	*operation.Attempt
	result   operator.Result
	nextStep func(*rapid.T, *paymentAttempt)
}

const dailyLimit = 1000

func newDayModel(t testing.TB, faultsInjected bool) *dayModel {
	d := &dayModel{
		Fixture: operationtest.New(t), profile: operationtest.DemoProfile(), faultsInjected: faultsInjected,
	}
	d.profile.DailyAmounts = map[string]int64{"XOF": dailyLimit}
	return d
}

func (d *dayModel) startAttempt(t *rapid.T) {
	payment := rapid.SampledFrom(d.payments).Draw(t, "payment")
	d.attempts = append(d.attempts, &paymentAttempt{operatorPayment: payment, nextStep: d.reserve})
}

func (d *dayModel) reserve(_ *rapid.T, a *paymentAttempt) {
	a.nextStep = nil
	entry := &ledger.Entry{
		Key:     ledger.Key{Kind: ledger.Payment, ID: a.id},
		Route:   ledger.Route{Operator: "orange", Country: "CI", UpstreamKey: a.id},
		Request: ledger.Request{Fingerprint: "f"}, Amount: ledger.Amount{Minor: a.minor, Currency: "XOF"},
	}
	a.Attempt = d.NewAttempt(entry)
	a.Profile = d.profile
	if reserved, err := d.Pipeline.Reserve(context.Background(), a.Attempt, nil); err == nil && reserved {
		a.nextStep = d.reserveDailyAmount
	}
}

func (d *dayModel) reserveDailyAmount(_ *rapid.T, a *paymentAttempt) {
	a.nextStep = nil
	if d.Pipeline.ReserveDailyAmount(context.Background(), a.Attempt) == nil {
		a.nextStep = d.callOperator
	}
}

// callOperator calls an operator that applies a payment at most once. It reports "not applied" only if it never will
// apply the payment.
func (d *dayModel) callOperator(t *rapid.T, a *paymentAttempt) {
	a.nextStep = d.recordOutcome
	outcomes := []string{"done", "response lost", "delayed"}
	switch {
	case a.applied:
		outcomes = outcomes[:2]
	case a.final:
		outcomes = []string{"refused", "response lost"}
	case a.delayedCalls == 0:
		outcomes = append(outcomes, "refused", "released")
	}
	a.result = operator.Result{Fault: fault.New(fault.OutcomeUnknown)}
	switch rapid.SampledFrom(outcomes).Draw(t, "operator") {
	case "done":
		a.applied, a.result = true, operator.Result{Outcome: operator.Succeeded}
	case "response lost":
		a.applied = a.applied || !a.final
	case "delayed":
		a.delayedCalls++
	case "refused":
		a.final = true
		a.result = operationtest.RefuseFinally("POL1000")(nil)
	case "released":
		a.result = operationtest.RespondUnavailable(nil)
	}
}

func (d *dayModel) recordOutcome(_ *rapid.T, a *paymentAttempt) {
	a.nextStep = nil
	outcomes := operation.CallOutcomes{Done: ledger.CallOutcome{ResponseStatus: 201, ResponseBody: []byte(`{}`)}}
	_ = d.Pipeline.RecordOutcome(context.Background(), a.Attempt, a.result, outcomes)
}

// advanceAttempt runs the next step of one attempt, or lets the attempt crash.
func (d *dayModel) advanceAttempt(t *rapid.T) {
	if len(d.attempts) == 0 {
		return
	}
	i := rapid.IntRange(0, len(d.attempts)-1).Draw(t, "attempt")
	a := d.attempts[i]
	d.attempts = slices.Delete(d.attempts, i, i+1) // others may run during its step
	if d.faultsInjected && rapid.IntRange(0, 9).Draw(t, "crashes") == 0 {
		return
	}
	if a.nextStep(t, a); a.nextStep != nil {
		d.attempts = append(d.attempts, a)
	}
}

// interleavedStore runs other steps before each adjustment: between storing an outcome and its refund, and between a
// reservation and its count.
type interleavedStore struct {
	dailyamount.Store
	runOthers func()
}

// Adjust implements dailyamount.Store.
func (s *interleavedStore) Adjust(
	ctx context.Context, a dailyamount.Adjustment,
) (dailyamount.AdjustmentResult, error) {
	s.runOthers()
	return s.Store.Adjust(ctx, a)
}

// applyDelayedCall has the operator apply a call that was delayed.
func (d *dayModel) applyDelayedCall(t *rapid.T) {
	p := rapid.SampledFrom(d.payments).Draw(t, "delayed")
	if p.delayedCalls > 0 && !p.final {
		p.delayedCalls, p.applied = p.delayedCalls-1, true
	}
}

// reportFinalStatus has the operator end a payment and report it, in a callback or in a response to the sweep.
func (d *dayModel) reportFinalStatus(t *rapid.T) {
	p := rapid.SampledFrom(d.payments).Draw(t, "reported")
	existing, err := d.Ledger.Get(context.Background(), ledger.Key{Kind: ledger.Payment, ID: p.id})
	if err != nil || existing == nil {
		return
	}
	p.final = true
	report := ledger.StatusReport{Status: ledger.Failed, Source: "getStatus"}
	if p.applied {
		report.Status = ledger.Successful
	}
	book := &ledger.Book{Store: d.Ledger, Reader: d.Ledger, Now: d.Clock.Now, Rand: rand.Reader}
	store := func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error) {
		return book.ApplyChange(context.Background(), existing, change)
	}
	_, _ = d.Pipeline.DailyAmounts.StoreChange(context.Background(), store, func(e *ledger.Entry) ledger.Transition {
		return ledger.EndPayment.After(e.ApplyFinalStatus(report, ledger.Timestamp(d.Clock.Now())))
	})
}

// checkBounds checks that every payment that the operator applied is counted, and none is counted twice.
func (d *dayModel) checkBounds(t *rapid.T) {
	applied, all := int64(0), int64(0)
	for _, p := range d.payments {
		all += p.minor
		if p.applied {
			applied += p.minor
		}
	}
	if sum := d.LimitStore.Sum(d.profile.ID, "XOF"); sum < applied || sum > all {
		t.Fatalf("counted %d: want at least the applied %d and at most the requested %d", sum, applied, all)
	}
}

// decision "merchant-limits": an amount is counted at most once, and never less than was applied, after any crash or
// failure. Without a crash or a failure exactly the payments that may be applied are counted.
func TestDailyAmountModel(t *testing.T) {
	for name, faultsInjected := range map[string]bool{"without faults": false, "with faults": true} {
		t.Run(name, func(outer *testing.T) {
			rapid.Check(outer, func(t *rapid.T) {
				d := newDayModel(outer, faultsInjected)
				for i := range rapid.IntRange(1, 3).Draw(t, "payments") {
					minor := rapid.Int64Range(1, 600).Draw(t, "minor")
					d.payments = append(d.payments, &operatorPayment{id: fmt.Sprintf("DemoShop_%d", i), minor: minor})
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

func (d *dayModel) runSteps(t *rapid.T) {
	if d.faultsInjected {
		d.injectFaults(t)
	}
	others := []func(*rapid.T){d.startAttempt, d.advanceAttempt, d.advanceAttempt, d.reportFinalStatus}
	d.Pipeline.DailyAmounts.Store = &interleavedStore{d.LimitStore, func() {
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			rapid.SampledFrom(others).Draw(t, "other")(t)
		}
	}}
	steps := []func(*rapid.T){
		d.startAttempt, d.startAttempt, d.advanceAttempt, d.advanceAttempt, d.advanceAttempt, d.advanceAttempt,
		d.advanceAttempt, d.applyDelayedCall, d.reportFinalStatus,
	}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		d.Clock.Advance(time.Duration(rapid.IntRange(0, 8).Draw(t, "wait in s")) * time.Second)
		rapid.SampledFrom(steps).Draw(t, "step")(t)
		d.checkBounds(t)
	}
}

// injectFaults makes half of the calls of both tables fail.
func (d *dayModel) injectFaults(t *rapid.T) {
	limitFaults := rapid.SampledFrom([]storetest.Fault{
		storetest.NoFault, storetest.NoFault, storetest.NoFault,
		storetest.FailedBeforeApply, storetest.LostResponse, storetest.ConcurrentWrite,
	})
	d.LimitStore.InjectFaults(func(storetest.Call) storetest.Fault { return limitFaults.Draw(t, "limit fault") })
	ledgerFaults := rapid.SampledFrom([]storetest.Fault{
		storetest.NoFault, storetest.NoFault, storetest.NoFault,
		storetest.FailedBeforeApply, storetest.LostResponse, storetest.RetriedAfterLostResponse,
	})
	d.Ledger.InjectFaults(func(storetest.Call) storetest.Fault { return ledgerFaults.Draw(t, "ledger fault") })
}

// checkExactSum compares the sum with the entries that may be applied.
func (d *dayModel) checkExactSum(t *rapid.T) {
	want := int64(0)
	for _, e := range d.Ledger.All() {
		if !e.NotApplied() {
			want += e.Amount.Minor
		}
	}
	if sum := d.LimitStore.Sum(d.profile.ID, "XOF"); sum != want {
		t.Fatalf("counted %d, want the %d of the entries that may be applied", sum, want)
	}
}
