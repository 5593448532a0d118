package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/internal/deliverytest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// lives runs the sweep whenever a payment is due, until a time after now, and gives the ages at which it was asked about.
func (s *service) lives(t *testing.T, e *ledger.Entry, until time.Duration) []time.Duration {
	t.Helper()
	end := s.Clock.Now().Add(until)
	for !s.Get(t, e).Due.IsZero() && !s.Get(t, e).Due.After(end) {
		s.untilDue(t, e)
	}
	var ages []time.Duration
	for _, lookup := range s.Operator.Lookups() {
		ages = append(ages, lookup.At.Sub(e.CreatedAt))
	}
	return ages
}

// decision "pay-poll": by the schedule, then hourly, and once at the end of the lifetime.
func TestPolls(t *testing.T) {
	s := kit(t)
	s.Operator.Says("InProgress")
	e := s.Payment("DemoShop_1")
	ages := s.lives(t, e, deliverytest.Lifetime)
	want := []time.Duration{time.Minute, 3 * time.Minute, 8 * time.Minute, 23 * time.Minute, 53 * time.Minute}
	for age := 113 * time.Minute; age < deliverytest.Lifetime; age += time.Hour {
		want = append(want, age)
	}
	want = append(want, deliverytest.Lifetime)
	if len(ages) != len(want) {
		t.Fatalf("asked at %v, want %v", ages, want)
	}
	for i := range want {
		if ages[i] != want[i] {
			t.Errorf("lookup %d at %s, want %s", i, ages[i], want[i])
		}
	}
	after := s.Get(t, e)
	if after.Status != ledger.Expired || len(after.Outbox) != 1 || !after.PollAt.IsZero() || after.FinalAt.Sub(e.CreatedAt) != deliverytest.Lifetime {
		t.Errorf("%+v", after)
	}
	if s.Lines.Sum("StaleUnknowns")+s.Lines.Sum("LookupFailures")+s.Lines.Sum("Conflicts") != 0 {
		t.Errorf("something was counted: %s", s.Lines)
	}
}

func TestPollSettles(t *testing.T) {
	cases := map[string]ledger.Status{"Successful": ledger.Successful, "failed": ledger.Failed, "Canceled": ledger.Cancelled, "EXPIRED": ledger.Expired}
	for word, want := range cases {
		s := kit(t)
		s.Operator.Tells(operator.StatusAnswer{Known: true, Status: word, Amount: "500", Currency: "XOF", OperatorReference: "op-9"})
		e := s.Payment("DemoShop_1")
		s.untilDue(t, e)
		after := s.Get(t, e)
		if after.Status != want || len(after.Outbox) != 1 || len(s.Shop.Posts("")) != 0 || !after.Fast() {
			t.Errorf("%s: %+v", word, after)
		}
		if (after.UserSMS == ledger.UserSMSDue) != (want == ledger.Successful) {
			t.Errorf("%s: the purchaser's SMS %q", word, after.UserSMS)
		}
	}
}

// Nobody answers: hourly past the end of the lifetime, never expired, and counted.
func TestSilentForEver(t *testing.T) {
	s := kit(t)
	e := s.Payment("DemoShop_1")
	s.lives(t, e, deliverytest.Lifetime)
	lookups := len(s.Operator.Lookups())
	if s.Lines.Sum("LookupFailures") != lookups || s.Lines.Sum("StaleUnknowns") != 1 {
		t.Errorf("%d failures of %d lookups, %d stale", s.Lines.Sum("LookupFailures"), lookups, s.Lines.Sum("StaleUnknowns"))
	}
	for hour := range 5 {
		if wait := s.untilDue(t, e); wait != time.Hour {
			t.Errorf("hour %d: asked after %s", hour, wait)
		}
	}
	if after := s.Get(t, e); after.Status != ledger.Pending || s.Lines.Sum("StaleUnknowns") != 6 || s.Lines.Sum("LookupFailures") != lookups+5 {
		t.Errorf("%s, %d stale", after.Status, s.Lines.Sum("StaleUnknowns"))
	}
	s.Operator.Tells(deliverytest.NoSuchOrder())
	s.untilDue(t, e)
	if after := s.Get(t, e); after.Status != ledger.Expired || len(after.Outbox) != 1 {
		t.Errorf("an answer expires it: %+v", after)
	}
}

func TestExpiry(t *testing.T) {
	pending := operator.StatusAnswer{Known: true, Status: "pending"}
	cases := []struct {
		name   string
		age    time.Duration
		answer operator.StatusAnswer
		claim  ledger.Status
		want   ledger.Status
		stale  int
	}{
		{"a moment too early", deliverytest.Lifetime - time.Millisecond, pending, "", ledger.Pending, 0},
		{"pending at the end", deliverytest.Lifetime, pending, "", ledger.Expired, 0},
		{"not known at the end", deliverytest.Lifetime, deliverytest.NoSuchOrder(), "", ledger.Expired, 0},
		{"silent at the end", deliverytest.Lifetime, deliverytest.Silent(), "", ledger.Pending, 1},
		{"successful at the end", deliverytest.Lifetime, operator.StatusAnswer{Known: true, Status: "Success"}, "", ledger.Successful, 0},
		{"failed at the end", deliverytest.Lifetime, operator.StatusAnswer{Known: true, Status: "Failed"}, "", ledger.Failed, 0},
		{"a success claimed", deliverytest.Lifetime, pending, ledger.Successful, ledger.Pending, 1},
		{"a failure claimed", deliverytest.Lifetime, pending, ledger.Failed, ledger.Expired, 0},
		{"another amount", deliverytest.Lifetime, operator.StatusAnswer{Known: true, Status: "Success", Amount: "1"}, "", ledger.Pending, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := kit(t)
			s.Operator.Tells(c.answer)
			e := s.Payment("DemoShop_1", func(e *ledger.Entry) {
				if c.claim != "" {
					e.NoteClaim(ledger.Claim{Status: c.claim, Due: e.CreatedAt.Add(c.age)}, e.CreatedAt)
				}
				e.PollAt = e.CreatedAt.Add(c.age)
			})
			s.after(t, c.age)
			after := s.Get(t, e)
			if after.Status != c.want || s.Lines.Sum("StaleUnknowns") != c.stale || after.Due.IsZero() {
				t.Errorf("%s, %d stale: %+v", after.Status, s.Lines.Sum("StaleUnknowns"), after)
			}
			if s.Lines.Sum("Conflicts") != len(after.Conflicts) {
				t.Errorf("%d conflicts counted of %+v", s.Lines.Sum("Conflicts"), after.Conflicts)
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
			s := kit(t)
			e := s.Payment("DemoShop_1", func(e *ledger.Entry) {
				e.DueTry = 20
				e.NoteClaim(ledger.Claim{Status: c.claimed, OperatorReference: "op-claim", Due: s.Clock.Now().Add(deliverytest.Recheck)}, s.Clock.Now())
			})
			s.Operator.Says("pending")
			if wait := s.untilDue(t, e); wait != deliverytest.Recheck {
				t.Errorf("first asked after %s", wait)
			}
			if after := s.Get(t, e); after.Status != ledger.Pending || after.Claim.Status != c.claimed {
				t.Fatalf("%+v", after)
			}
			s.Operator.Says(c.answer)
			if wait := s.untilDue(t, e); wait != 2*time.Minute {
				t.Errorf("asked again after %s: the schedule begins anew with a claim", wait)
			}
			after := s.Get(t, e)
			if after.Status != c.want || after.Claim.Status != "" || len(after.Conflicts) != c.kept || s.Lines.Sum("Conflicts") != c.kept || len(after.Outbox) != 1 {
				t.Errorf("%+v\n%s", after, s.Lines)
			}
		})
	}
	t.Run("during our own call: asked about, and the reservation stays", func(t *testing.T) {
		s := kit(t)
		s.Operator.Says("Successful")
		e := s.Store(s.Reserved("DemoShop_1"), func(e *ledger.Entry) {
			e.NoteClaim(ledger.Claim{Status: ledger.Successful, Due: s.Clock.Now().Add(deliverytest.Recheck)}, s.Clock.Now())
		})
		s.untilDue(t, e)
		if after := s.Get(t, e); after.Status != ledger.Successful || after.State != ledger.Reserved {
			t.Errorf("%+v", after)
		}
	})
	t.Run("after a release: denied, it is closed and asked about no more", func(t *testing.T) {
		s := kit(t)
		s.Operator.Says("Failed")
		released := s.Reserved("DemoShop_1")
		released.Settle("owner", ledger.Settlement{State: ledger.Released}, s.Clock.Now())
		released.NoteClaim(ledger.Claim{Status: ledger.Successful, Due: s.Clock.Now().Add(deliverytest.Recheck)}, s.Clock.Now())
		e := s.Store(released)
		s.untilDue(t, e)
		after := s.Get(t, e)
		if after.State != ledger.Released || !after.Due.IsZero() || len(after.Conflicts) != 1 || s.Lines.Sum("StaleUnknowns") != 0 {
			t.Errorf("%+v", after)
		}
	})
}

// An unknown payment is resolved by the lookup; nothing is ever sent again.
func TestUnknownPayments(t *testing.T) {
	s := kit(t)
	e := s.Unknown(s.Reserved("DemoShop_1"))
	s.lives(t, e, 14*time.Minute)
	if s.Lines.Sum("StaleUnknowns") != 0 {
		t.Errorf("stale too early: %s", s.Lines)
	}
	s.untilDue(t, e) // at 23 minutes
	if s.Lines.Sum("StaleUnknowns") != 1 {
		t.Errorf("unknown for more than 15 minutes, and nobody answers: %s", s.Lines)
	}
	s.Operator.Says("pending")
	s.untilDue(t, e)
	if after := s.Get(t, e); after.State != ledger.Unknown || s.Lines.Sum("StaleUnknowns") != 1 {
		t.Errorf("%+v", after)
	}
	s.Operator.Says("Failed")
	s.untilDue(t, e)
	if after := s.Get(t, e); after.State != ledger.Done || after.Status != ledger.Failed || len(after.Outbox) != 1 {
		t.Errorf("%+v", after)
	}
}

// An operator without a lookup: its payments wait for the callback, and those past their lifetime are listed.
func TestWithoutALookup(t *testing.T) {
	o := &deliverytest.Operator{}
	s := serve(deliverytest.With(t, o, deliverytest.Mute{Driver: o}))
	e := s.Payment("DemoShop_1")
	for range 40 {
		s.untilDue(t, e)
	}
	after := s.Get(t, e)
	if after.Status != ledger.Pending || s.Lines.Sum("LookupFailures") != 0 || s.Lines.Sum("StaleUnknowns") == 0 {
		t.Errorf("%+v", after)
	}
}
