package sweep_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/timeline"
)

// recordLookups runs the sweep each time a payment is due until a time from now, and returns its age at each lookup.
func (s *sweepFixture) recordLookups(t *testing.T, e *ledger.Entry, until time.Duration) []time.Duration {
	t.Helper()
	end := s.Clock.Now().Add(until)
	for !s.MustGet(t, e).DueAt.IsZero() && !s.MustGet(t, e).DueAt.After(end) {
		s.advanceUntilDue(t, e)
	}
	var ages []time.Duration
	for _, lookup := range s.Operator.Lookups() {
		ages = append(ages, lookup.CalledAt.Sub(e.CreatedAt))
	}
	return ages
}

// finalSummary is the summary of a payment with a final status and its notification in the outbox.
func finalSummary(status ledger.Status) summary {
	final := summary{State: ledger.Done, Status: status, Outbox: 1, Due: true}
	if status == ledger.Successful {
		final.UserSMS = ledger.UserSMSDue
	}
	return final
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
	if diff := cmp.Diff(append(want, deliverytest.PaymentLifetime), ages); diff != "" {
		t.Errorf("ages of the lookups (-want +got):\n%s", diff)
	}
	after := s.AssertEntry(t, e, finalSummary(ledger.Expired))
	if age := after.FinalAt.Sub(e.CreatedAt); age != deliverytest.PaymentLifetime {
		t.Errorf("final at age %s, want %s", age, deliverytest.PaymentLifetime)
	}
	if !after.Poll.At.IsZero() {
		t.Errorf("next poll at %s, want none", after.Poll.At)
	}
	for _, metric := range []string{"StaleUnknownOutcomes", "LookupFailures", "StatusConflicts"} {
		s.AssertMetric(t, metric, 0)
	}
}

// decision "order-timeline": each lookup is kept by the write that leases it, with its result by that of the next one.
func TestTimelineOfLookups(t *testing.T) {
	s := newFixture(t)
	e := s.StorePendingPayment("DemoShop_1")
	writes := s.Ledger.WriteCount()
	for i, c := range []struct {
		response operator.StatusResponse
		want     timeline.Log
	}{
		{deliverytest.LookupResponse("InProgress", operator.StatusReport{}), "l60000"},
		{operator.StatusResponse{Cause: operator.ErrUnknownStatus}, "l60000p l180000"},
		{deliverytest.NoResponse(), "l60000p l180000u l480000"},
		{deliverytest.LookupResponse("Pending", operator.StatusReport{}), "1l l180000u l480000t l1380000"},
		{deliverytest.LookupResponse("Successful", operator.StatusReport{}), "2l l480000t l1380000p ls"},
	} {
		s.Operator.SetLookupResult(c.response)
		s.advanceUntilDue(t, e)
		if got := s.MustGet(t, e).Timeline; got != c.want {
			t.Errorf("lookup %d: the timeline %q, want %q", i+1, got, c.want)
		}
	}
	if got, want := s.Ledger.WriteCount()-writes, 5+1; got != want {
		t.Errorf("%d writes, want %d: one for each lookup, and the final status", got, want)
	}
	s.AssertEntry(t, e, finalSummary(ledger.Successful))
}

// Another process does not know the result of the last lookup.
func TestTimelineAfterAnotherProcess(t *testing.T) {
	s := newFixture(t)
	s.Operator.SetStatus("InProgress")
	e := s.StorePendingPayment("DemoShop_1")
	s.advanceUntilDue(t, e)
	other := serveSweep(s.DeliveryFixture)
	other.advanceUntilDue(t, e)
	if got, want := s.MustGet(t, e).Timeline, timeline.Log("l60000 l180000"); got != want {
		t.Errorf("the timeline %q, want %q", got, want)
	}
}

// Without a response a payment is polled hourly past the end of its lifetime; it is counted and never expires.
func TestOperatorNeverResponds(t *testing.T) {
	s := newFixture(t)
	e := s.StorePendingPayment("DemoShop_1")
	lookups := len(s.recordLookups(t, e, deliverytest.PaymentLifetime))
	s.AssertMetric(t, "LookupFailures", lookups)
	if causes := strings.Count(s.LogLines.String(), `"Cause":"no response"`); causes != lookups {
		t.Errorf("%d lines have the cause of their failed lookup, want %d", causes, lookups)
	}
	s.AssertMetric(t, "StaleUnknownOutcomes", 1)
	for range 5 {
		assertWait(t, s.advanceUntilDue(t, e), time.Hour)
	}
	s.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Pending, Due: true})
	s.AssertMetric(t, "LookupFailures", lookups+5)
	s.AssertMetric(t, "StaleUnknownOutcomes", 6)
	s.Operator.SetLookupResult(deliverytest.NoSuchOrder())
	s.advanceUntilDue(t, e)
	s.AssertEntry(t, e, finalSummary(ledger.Expired))
}

func TestExpiry(t *testing.T) {
	known := func(status, amount string) operator.StatusResponse {
		return deliverytest.LookupResponse(status, operator.StatusReport{Amount: amount})
	}
	lifetime := deliverytest.PaymentLifetime
	open := summary{State: ledger.Done, Status: ledger.Pending, Due: true}
	claimed, mismatch, unknown := open, open, open
	claimed.Claim, mismatch.Conflicts, unknown.State = ledger.Successful, 1, ledger.Unknown
	deniedFailure := finalSummary(ledger.Expired)
	deniedFailure.Conflicts = 1
	cases := []struct {
		name     string
		age      time.Duration
		response operator.StatusResponse
		claim    ledger.Status
		want     summary
		stale    int
		account  string // "" for a platform with the specification's protocol
	}{
		{"a moment too early", lifetime - time.Millisecond, known("pending", ""), "", open, 0, ""},
		{"pending at the end", lifetime, known("pending", ""), "", finalSummary(ledger.Expired), 0, ""},
		{"an unknown order", lifetime, deliverytest.NoSuchOrder(), "", finalSummary(ledger.Expired), 0, ""},
		{"no response at the end", lifetime, deliverytest.NoResponse(), "", open, 1, ""},
		{"successful at the end", lifetime, known("Success", ""), "", finalSummary(ledger.Successful), 0, ""},
		{"failed at the end", lifetime, known("Failed", ""), "", finalSummary(ledger.Failed), 0, ""},
		{"a claimed success", lifetime, known("pending", ""), ledger.Successful, claimed, 0, ""},
		{"a claimed success, no response", lifetime, deliverytest.NoResponse(), ledger.Successful, claimed, 1, ""},
		{"a claimed failure", lifetime, known("pending", ""), ledger.Failed, deniedFailure, 0, ""},
		{"another amount", lifetime, known("Success", "1"), "", mismatch, 1, ""},
		{"in doubt at the end", lifetime, known("pending", ""), "", open, 1, "pawapay/w"},
		{"unknown at the end", lifetime, deliverytest.NoSuchOrder(), "", unknown, 1, "pawapay/w"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			s.Operator.SetLookupResult(c.response)
			e := s.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) {
				if c.claim != "" {
					e.AddClaim(ledger.Claim{Status: c.claim, CheckAt: e.CreatedAt.Add(c.age)}, e.CreatedAt)
				}
				e.Poll.At = e.CreatedAt.Add(c.age)
				e.State = ledger.Done
				if c.account != "" {
					e.State, e.Route.Account, e.Route.UpstreamKey = c.want.State, c.account, "uuid"
				}
			})
			s.runSweepAfter(t, c.age)
			s.AssertEntry(t, e, c.want)
			s.AssertMetric(t, "StaleUnknownOutcomes", c.stale)
			s.AssertMetric(t, "StatusConflicts", c.want.Conflicts)
		})
	}
}

// decision "pay-claims": the sweep confirms a claim by a lookup.
func TestClaims(t *testing.T) {
	claim := func(s *sweepFixture, status ledger.Status) func(*ledger.Entry) {
		checkAt := s.Clock.Now().Add(deliverytest.ClaimRecheckInterval)
		return func(e *ledger.Entry) {
			e.AddClaim(ledger.Claim{Status: status, OperatorReference: "op-claim", CheckAt: checkAt}, s.Clock.Now())
		}
	}
	cases := []struct {
		name      string
		claimed   ledger.Status
		status    string
		want      ledger.Status
		conflicts int
	}{
		{"confirmed success", ledger.Successful, "Successful", ledger.Successful, 0},
		{"confirmed failure", ledger.Failed, "Failed", ledger.Failed, 0},
		{"failure after a claimed success", ledger.Successful, "Failed", ledger.Failed, 1},
		{"success after a claimed failure", ledger.Failed, "Successful", ledger.Successful, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			e := s.StorePendingPayment("DemoShop_1", func(e *ledger.Entry) { e.Poll.Attempts = 20 },
				claim(s, c.claimed))
			s.Operator.SetStatus("pending")
			assertWait(t, s.advanceUntilDue(t, e), deliverytest.ClaimRecheckInterval)
			s.AssertEntry(t, e, summary{State: ledger.Done, Status: ledger.Pending, Claim: c.claimed, Due: true})
			s.Operator.SetStatus(c.status)
			assertWait(t, s.advanceUntilDue(t, e), 2*time.Minute) // a claim restarts the schedule
			want := finalSummary(c.want)
			want.Conflicts = c.conflicts
			s.AssertEntry(t, e, want)
			s.AssertMetric(t, "StatusConflicts", c.conflicts)
		})
	}
	t.Run("during the operator call: the claim is confirmed, and the reservation stays", func(t *testing.T) {
		s := newFixture(t)
		s.Operator.SetStatus("Successful")
		e := s.StoreEntry(s.NewReservedPayment("DemoShop_1"), claim(s, ledger.Successful))
		s.advanceUntilDue(t, e)
		want := finalSummary(ledger.Successful)
		want.State = ledger.Reserved
		s.AssertEntry(t, e, want)
	})
}

// A lookup ends an unknown payment; nothing is sent again.
func TestUnknownPayments(t *testing.T) {
	s := newFixture(t)
	e := s.StoreUnknown(s.NewReservedPayment("DemoShop_1"))
	s.recordLookups(t, e, 14*time.Minute)
	s.AssertMetric(t, "StaleUnknownOutcomes", 0)
	s.advanceUntilDue(t, e) // at 23 minutes: unknown for more than 15, and no response
	s.AssertMetric(t, "StaleUnknownOutcomes", 1)
	s.Operator.SetStatus("pending")
	s.advanceUntilDue(t, e)
	if state := s.MustGet(t, e).State; state != ledger.Unknown {
		t.Errorf("state %s after a pending lookup, want unknown", state)
	}
	s.AssertMetric(t, "StaleUnknownOutcomes", 1)
	s.Operator.SetStatus("Failed")
	s.advanceUntilDue(t, e)
	s.AssertEntry(t, e, finalSummary(ledger.Failed))
}
