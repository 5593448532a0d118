package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// storeClaimed stores a payment with an open claim of success, and returns it.
func (s *sweepFixture) storeClaimed(e *ledger.Entry) *ledger.Entry {
	return s.StoreEntry(e, func(e *ledger.Entry) {
		checkAt := s.Clock.Now().Add(deliverytest.ClaimRecheckInterval)
		e.AddClaim(ledger.Claim{Status: ledger.Successful, CheckAt: checkAt}, s.Clock.Now())
	})
}

// newReleasedPayment is a payment that was released before its claim came.
func (s *sweepFixture) newReleasedPayment() *ledger.Entry {
	e := s.NewReservedPayment("DemoShop_1")
	e.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Released}, s.Clock.Now())
	return e
}

// newAcceptedPayment is a payment that its operator accepted.
func (s *sweepFixture) newAcceptedPayment() *ledger.Entry {
	e := s.NewReservedPayment("DemoShop_1")
	e.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201}, s.Clock.Now())
	return e
}

// decision "pay-claims": an open claim of success is looked up hourly for 48 hours, and not counted. From then on
// it has one lookup a day, each is counted, and no age expires it. A final lookup ends it.
func TestAFlaggedClaimIsLookedUpDaily(t *testing.T) {
	accepted := summary{State: ledger.Done, Status: ledger.Pending, Claim: ledger.Successful, Due: true}
	releasedOpen := accepted
	releasedOpen.State = ledger.Released
	paid, denied := finalSummary(ledger.Successful), finalSummary(ledger.Failed)
	denied.Conflicts = 1
	for name, c := range map[string]struct {
		payment func(*sweepFixture) *ledger.Entry
		status  string
		open    summary
		want    summary
	}{
		"accepted, then confirmed": {(*sweepFixture).newAcceptedPayment, "Successful", accepted, paid},
		"accepted, then denied":    {(*sweepFixture).newAcceptedPayment, "Failed", accepted, denied},
		"released, then confirmed": {(*sweepFixture).newReleasedPayment, "Successful", releasedOpen, paid},
		"released, then denied": {
			(*sweepFixture).newReleasedPayment, "Failed", releasedOpen,
			summary{State: ledger.Released, Status: ledger.Pending, Conflicts: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.Operator.SetStatus("pending")
			e := s.storeClaimed(c.payment(s))
			hourly := s.recordLookups(t, e, ledger.ClaimFlagAfter-time.Millisecond)
			s.AssertMetric(t, "StaleUnknownOutcomes", 0)
			s.AssertEntry(t, e, c.open)
			const days = 30
			for range days {
				s.advanceUntilDue(t, e)
			}
			s.AssertEntry(t, e, c.open)
			s.AssertMetric(t, "StaleUnknownOutcomes", days)
			if len(s.Operator.Lookups()) != len(hourly)+days {
				t.Errorf("%d lookups in %d days", len(s.Operator.Lookups())-len(hourly), days)
			}
			s.Operator.SetStatus(c.status)
			if wait := s.advanceUntilDue(t, e); wait != ledger.FlaggedClaimInterval {
				t.Errorf("the last lookup after %s, want %s", wait, ledger.FlaggedClaimInterval)
			}
			s.AssertEntry(t, e, c.want)
			s.AssertMetric(t, "StaleUnknownOutcomes", days)
		})
	}
}

// A lookup with another amount does not end a flagged claim: it is kept as a conflict once, and the claim stays.
func TestAnotherAmountEndsNoClaim(t *testing.T) {
	s := newFixture(t)
	s.Operator.SetLookupResult(deliverytest.LookupResponse("Success", operator.StatusReport{Amount: "1"}))
	e := s.storeClaimed(s.newAcceptedPayment())
	s.recordLookups(t, e, 4*24*time.Hour)
	s.AssertMetric(t, "StatusConflicts", 1)
	s.AssertEntry(t, e, summary{
		State: ledger.Done, Status: ledger.Pending, Claim: ledger.Successful, Conflicts: 1, Due: true,
	})
}

// Without a lookup a payment waits for the callback or a person. Its claim is only listed, daily from 48 hours on.
func TestClaimAtAnOperatorWithoutLookup(t *testing.T) {
	o := &deliverytest.Operator{}
	s := serveSweep(deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o}))
	e := s.storeClaimed(s.newAcceptedPayment())
	s.recordLookups(t, e, ledger.ClaimFlagAfter+time.Hour)
	before := s.LogLines.SumMetric("StaleUnknownOutcomes")
	for range 5 {
		assertWait(t, s.advanceUntilDue(t, e), ledger.FlaggedClaimInterval)
	}
	s.AssertMetric(t, "StaleUnknownOutcomes", before+5)
	s.AssertMetric(t, "LookupFailures", 0)
	s.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Pending, Claim: ledger.Successful, Due: true})
}
