package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// recordLookups runs the sweep whenever a payment is due, until a time after now, and gives the ages at which it was asked about.
func (s *sweepFixture) recordLookups(t *testing.T, e *ledger.Entry, until time.Duration) []time.Duration {
	t.Helper()
	release := s.Clock.Now().Add(until)
	for !s.MustGet(t, e).DueAt.IsZero() && !s.MustGet(t, e).DueAt.After(release) {
		s.advanceUntilDue(t, e)
	}
	var ages []time.Duration
	for _, lookup := range s.Operator.Lookups() {
		ages = append(ages, lookup.CalledAt.Sub(e.CreatedAt))
	}
	return ages
}

// decision "pay-poll": by the schedule, then hourly, and once at the end of the lifetime.
func TestPollSchedule(t *testing.T) {
	s := newFixture(t)
	s.Operator.SetStatus("InProgress")
	e := s.StorePendingPayment("DemoShop_1")
	ages := s.recordLookups(t, e, deliverytest.PaymentLifetime)
	want := []time.Duration{time.Minute, 3 * time.Minute, 8 * time.Minute, 23 * time.Minute, 53 * time.Minute}
	for age := 113 * time.Minute; age < deliverytest.PaymentLifetime; age += time.Hour {
		want = append(want, age)
	}
	want = append(want, deliverytest.PaymentLifetime)
	if len(ages) != len(want) {
		t.Fatalf("asked at %v, want %v", ages, want)
	}
	for i := range want {
		if ages[i] != want[i] {
			t.Errorf("lookup %d at %s, want %s", i, ages[i], want[i])
		}
	}
	after := s.MustGet(t, e)
	if after.Status != ledger.Expired || len(after.Outbox) != 1 || !after.PollAt.IsZero() || after.FinalAt.Sub(e.CreatedAt) != deliverytest.PaymentLifetime {
		t.Errorf("%+v", after)
	}
	if s.LogLines.SumMetric("StaleUnknownOutcomes")+s.LogLines.SumMetric("LookupFailures")+s.LogLines.SumMetric("StatusConflicts") != 0 {
		t.Errorf("something was counted: %s", s.LogLines)
	}
}

func TestPollFindsFinalStatus(t *testing.T) {
	cases := map[string]ledger.Status{"Successful": ledger.Successful, "failed": ledger.Failed, "Canceled": ledger.Cancelled, "EXPIRED": ledger.Expired}
	for statusText, want := range cases {
		s := newFixture(t)
		s.Operator.SetLookupResult(operator.StatusResponse{StatusKnown: true, OperatorStatus: statusText, Amount: "500", Currency: "XOF", OperatorReference: "op-9"})
		e := s.StorePendingPayment("DemoShop_1")
		s.advanceUntilDue(t, e)
		after := s.MustGet(t, e)
		if after.Status != want || len(after.Outbox) != 1 || len(s.MerchantServer.Received("")) != 0 || !after.WakesRelay() {
			t.Errorf("%s: %+v", statusText, after)
		}
		if (after.UserSMS == ledger.UserSMSDue) != (want == ledger.Successful) {
			t.Errorf("%s: the purchaser's SMS %q", statusText, after.UserSMS)
		}
	}
}

// Nobody answers: hourly past the end of the lifetime, never expired, and counted.
func TestOperatorNeverResponds(t *testing.T) {
	s := newFixture(t)
	e := s.StorePendingPayment("DemoShop_1")
	s.recordLookups(t, e, deliverytest.PaymentLifetime)
	lookups := len(s.Operator.Lookups())
	if s.LogLines.SumMetric("LookupFailures") != lookups || s.LogLines.SumMetric("StaleUnknownOutcomes") != 1 {
		t.Errorf("%d failures of %d lookups, %d stale", s.LogLines.SumMetric("LookupFailures"), lookups, s.LogLines.SumMetric("StaleUnknownOutcomes"))
	}
	for hour := range 5 {
		if wait := s.advanceUntilDue(t, e); wait != time.Hour {
			t.Errorf("hour %d: asked after %s", hour, wait)
		}
	}
	if after := s.MustGet(t, e); after.Status != ledger.Pending || s.LogLines.SumMetric("StaleUnknownOutcomes") != 6 || s.LogLines.SumMetric("LookupFailures") != lookups+5 {
		t.Errorf("%s, %d stale", after.Status, s.LogLines.SumMetric("StaleUnknownOutcomes"))
	}
	s.Operator.SetLookupResult(deliverytest.NoSuchOrder())
	s.advanceUntilDue(t, e)
	if after := s.MustGet(t, e); after.Status != ledger.Expired || len(after.Outbox) != 1 {
		t.Errorf("an answer expires it: %+v", after)
	}
}

func TestExpiry(t *testing.T) {
	pending := operator.StatusResponse{StatusKnown: true, OperatorStatus: "pending"}
	cases := []struct {
		name   string
		age    time.Duration
		answer operator.StatusResponse
		claim  ledger.Status
		want   ledger.Status
		stale  int
	}{
		{"a moment too early", deliverytest.PaymentLifetime - time.Millisecond, pending, "", ledger.Pending, 0},
		{"pending at the end", deliverytest.PaymentLifetime, pending, "", ledger.Expired, 0},
		{"not known at the end", deliverytest.PaymentLifetime, deliverytest.NoSuchOrder(), "", ledger.Expired, 0},
		{"silent at the end", deliverytest.PaymentLifetime, deliverytest.NoResponse(), "", ledger.Pending, 1},
		{"successful at the end", deliverytest.PaymentLifetime, operator.StatusResponse{StatusKnown: true, OperatorStatus: "Success"}, "", ledger.Successful, 0},
		{"failed at the end", deliverytest.PaymentLifetime, operator.StatusResponse{StatusKnown: true, OperatorStatus: "Failed"}, "", ledger.Failed, 0},
		{"a success claimed", deliverytest.PaymentLifetime, pending, ledger.Successful, ledger.Pending, 1},
		{"a failure claimed", deliverytest.PaymentLifetime, pending, ledger.Failed, ledger.Expired, 0},
		{"another amount", deliverytest.PaymentLifetime, operator.StatusResponse{StatusKnown: true, OperatorStatus: "Success", Amount: "1"}, "", ledger.Pending, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			s.Operator.SetLookupResult(c.answer)
			e := s.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) {
				if c.claim != "" {
					e.AddClaim(ledger.Claim{Status: c.claim, CheckAt: e.CreatedAt.Add(c.age)}, e.CreatedAt)
				}
				e.PollAt = e.CreatedAt.Add(c.age)
			})
			s.runSweepAfter(t, c.age)
			after := s.MustGet(t, e)
			if after.Status != c.want || s.LogLines.SumMetric("StaleUnknownOutcomes") != c.stale || after.DueAt.IsZero() {
				t.Errorf("%s, %d stale: %+v", after.Status, s.LogLines.SumMetric("StaleUnknownOutcomes"), after)
			}
			if s.LogLines.SumMetric("StatusConflicts") != len(after.Conflicts) {
				t.Errorf("%d conflicts counted of %+v", s.LogLines.SumMetric("StatusConflicts"), after.Conflicts)
			}
		})
	}
}

// decision "pay-claims": a claim is confirmed by the sweep, whatever the callback said.
func TestClaims(t *testing.T) {
	cases := []struct {
		name    string
		claimed ledger.Status
		answer  string
		want    ledger.Status
		kept    int
	}{
		{"confirmed success", ledger.Successful, "Successful", ledger.Successful, 0},
		{"confirmed failure", ledger.Failed, "Failed", ledger.Failed, 0},
		{"the opposite of a claimed success", ledger.Successful, "Failed", ledger.Failed, 1},
		{"the opposite of a claimed failure", ledger.Failed, "Successful", ledger.Successful, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			e := s.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) {
				e.PollAttempts = 20
				e.AddClaim(ledger.Claim{Status: c.claimed, OperatorReference: "op-claim", CheckAt: s.Clock.Now().Add(deliverytest.ClaimRecheckDelay)}, s.Clock.Now())
			})
			s.Operator.SetStatus("pending")
			if wait := s.advanceUntilDue(t, e); wait != deliverytest.ClaimRecheckDelay {
				t.Errorf("first asked after %s", wait)
			}
			if after := s.MustGet(t, e); after.Status != ledger.Pending || after.Claim.Status != c.claimed {
				t.Fatalf("%+v", after)
			}
			s.Operator.SetStatus(c.answer)
			if wait := s.advanceUntilDue(t, e); wait != 2*time.Minute {
				t.Errorf("asked again after %s: the schedule begins anew with a claim", wait)
			}
			after := s.MustGet(t, e)
			if after.Status != c.want || after.Claim.Status != "" || len(after.Conflicts) != c.kept || s.LogLines.SumMetric("StatusConflicts") != c.kept || len(after.Outbox) != 1 {
				t.Errorf("%+v\n%s", after, s.LogLines)
			}
		})
	}
	t.Run("during our own call: asked about, and the reservation stays", func(t *testing.T) {
		s := newFixture(t)
		s.Operator.SetStatus("Successful")
		e := s.StoreEntry(s.NewReservedPayment("DemoShop_1"), func(e *ledger.Entry) {
			e.AddClaim(ledger.Claim{Status: ledger.Successful, CheckAt: s.Clock.Now().Add(deliverytest.ClaimRecheckDelay)}, s.Clock.Now())
		})
		s.advanceUntilDue(t, e)
		if after := s.MustGet(t, e); after.Status != ledger.Successful || after.State != ledger.Reserved {
			t.Errorf("%+v", after)
		}
	})
	t.Run("after a release: denied, it is closed and asked about no more", func(t *testing.T) {
		s := newFixture(t)
		s.Operator.SetStatus("Failed")
		released := s.NewReservedPayment("DemoShop_1")
		released.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Released}, s.Clock.Now())
		released.AddClaim(ledger.Claim{Status: ledger.Successful, CheckAt: s.Clock.Now().Add(deliverytest.ClaimRecheckDelay)}, s.Clock.Now())
		e := s.StoreEntry(released)
		s.advanceUntilDue(t, e)
		after := s.MustGet(t, e)
		if after.State != ledger.Released || !after.DueAt.IsZero() || len(after.Conflicts) != 1 || s.LogLines.SumMetric("StaleUnknownOutcomes") != 0 {
			t.Errorf("%+v", after)
		}
	})
}

// An unknown payment is resolved by the lookup; nothing is ever sent again.
func TestUnknownPayments(t *testing.T) {
	s := newFixture(t)
	e := s.StoreUnknown(s.NewReservedPayment("DemoShop_1"))
	s.recordLookups(t, e, 14*time.Minute)
	if s.LogLines.SumMetric("StaleUnknownOutcomes") != 0 {
		t.Errorf("stale too early: %s", s.LogLines)
	}
	s.advanceUntilDue(t, e) // at 23 minutes
	if s.LogLines.SumMetric("StaleUnknownOutcomes") != 1 {
		t.Errorf("unknown for more than 15 minutes, and nobody answers: %s", s.LogLines)
	}
	s.Operator.SetStatus("pending")
	s.advanceUntilDue(t, e)
	if after := s.MustGet(t, e); after.State != ledger.Unknown || s.LogLines.SumMetric("StaleUnknownOutcomes") != 1 {
		t.Errorf("%+v", after)
	}
	s.Operator.SetStatus("Failed")
	s.advanceUntilDue(t, e)
	if after := s.MustGet(t, e); after.State != ledger.Done || after.Status != ledger.Failed || len(after.Outbox) != 1 {
		t.Errorf("%+v", after)
	}
}

// An operator without a lookup: its payments wait for the callback, and those past their lifetime are listed.
func TestOperatorWithoutLookup(t *testing.T) {
	o := &deliverytest.Operator{}
	s := serveSweep(deliverytest.NewWithDriver(t, o, deliverytest.MinimalDriver{Driver: o}))
	e := s.StorePendingPayment("DemoShop_1")
	for range 40 {
		s.advanceUntilDue(t, e)
	}
	after := s.MustGet(t, e)
	if after.Status != ledger.Pending || s.LogLines.SumMetric("LookupFailures") != 0 || s.LogLines.SumMetric("StaleUnknownOutcomes") == 0 {
		t.Errorf("%+v", after)
	}
}
