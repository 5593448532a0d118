package sweep_test

import (
	"testing"
	"time"

	"mobilegateway/proof/kits/deliverytest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// neverSentAfter is the age of the last send from which "not found" proves that a payment was never sent. It is a
// minute for the send itself, and 15 minutes of the platform's row.
const neverSentAfter = 16 * time.Minute

// storeAt stores a payment that is pinned to an account, with an unknown outcome. responseStatus is what the merchant
// has got, 0 for 504.
func (s *sweepFixture) storeAt(account string, responseStatus int, changes ...func(*ledger.Entry)) *ledger.Entry {
	e := s.NewReservedPayment("DemoShop_1")
	e.Route.Operator, e.Route.Account, e.Route.UpstreamKey = "mtn", account, "uuid"
	now := ledger.Timestamp(s.Clock.Now())
	e.ApplyOutcome("owner", ledger.CallOutcome{
		State: ledger.Unknown, Status: ledger.Pending, ResponseStatus: responseStatus, ResponseBody: []byte("{}"),
		FirstPollAt: now.Add(deliverytest.PollSchedule()[0]),
	}, now)
	return s.StoreEntry(e, changes...)
}

// sweepAtAge runs a sweep at an age of a payment, at which its lookup is due.
func (s *sweepFixture) sweepAtAge(t testing.TB, e *ledger.Entry, age time.Duration) {
	t.Helper()
	stored := s.MustGet(t, e)
	stored.Poll.At = e.CreatedAt.Add(age)
	if stored.Claim.Status != "" {
		stored.Claim.CheckAt = stored.Poll.At
	}
	s.StoreEntry(stored)
	s.runSweepAfter(t, e.CreatedAt.Add(age).Sub(s.Clock.Now()))
}

// decision "never-sent".
func TestNeverSent(t *testing.T) {
	claimOf := func(status ledger.Status) func(*ledger.Entry) {
		return func(e *ledger.Entry) { e.AddClaim(ledger.Claim{Status: status, CheckAt: e.CreatedAt}, e.CreatedAt) }
	}
	accepted := func(e *ledger.Entry) { e.State = ledger.Done }
	unknown := summary{State: ledger.Unknown, Status: ledger.Pending, Due: true}
	claimed := unknown
	claimed.Claim = ledger.Failed
	failed := summary{State: ledger.Done, Status: ledger.Failed, Outbox: 1, Due: true}
	released := summary{State: ledger.Released, Status: ledger.Pending}
	pending := unknown
	pending.State = ledger.Done
	const momo = "mtn-momo/ci"
	notFound := deliverytest.NoSuchOrder()
	for _, c := range []struct {
		name           string
		account        string
		responseStatus int
		change         func(*ledger.Entry)
		lookup         operator.StatusResponse
		age            time.Duration
		want           summary
	}{
		{"the merchant has got 201", momo, 201, nil, notFound, neverSentAfter, failed},
		{"the merchant has got 504", momo, 0, nil, notFound, neverSentAfter, released},
		{"too early, after 201", momo, 201, nil, notFound, neverSentAfter - time.Second, unknown},
		{"too early, after 504", momo, 0, nil, notFound, neverSentAfter - time.Second, unknown},
		{"a claim of failure", momo, 0, claimOf(ledger.Failed), notFound, neverSentAfter, claimed},
		{"no response", momo, 0, nil, deliverytest.NoResponse(), neverSentAfter, unknown},
		{"an unknown status", momo, 0, nil, deliverytest.LookupResponse("Exploded", operator.StatusReport{}),
			neverSentAfter, unknown},
		{"pending", momo, 0, nil, deliverytest.LookupResponse("pending", operator.StatusReport{}),
			neverSentAfter, unknown},
		{"the platform accepted it", momo, 201, accepted, notFound, neverSentAfter, pending},
		{"the platform knew the key", momo, 0, func(e *ledger.Entry) { e.ForeignKey = true }, notFound, neverSentAfter,
			unknown},
		{"a platform where it proves nothing", "a1", 0, nil, notFound, neverSentAfter, unknown},
		{"another platform", "pawapay/w", 0, nil, notFound, 20 * time.Hour, unknown},
		{"a page that may be open", "wave-checkout/w", 0, nil, notFound, 46*time.Minute - time.Second, unknown},
		{"a page that has ended", "wave-checkout/w", 0, nil, notFound, 46 * time.Minute, released},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			s.Operator.SetLookupResult(c.lookup)
			e := s.storeAt(c.account, c.responseStatus)
			if c.change != nil {
				c.change(e)
				e = s.StoreEntry(e)
			}
			s.sweepAtAge(t, e, c.age)
			after := s.AssertEntry(t, e, c.want)
			s.AssertLookups(t, 1)
			if ended := after.State == ledger.Released || after.StatusFinal(); ended != after.Poll.At.IsZero() {
				t.Errorf("state %s, next lookup at %s", after.State, after.Poll.At)
			}
			s.AssertMetric(t, "StatusConflicts", 0)
		})
	}
}

// By the schedule of lookups the payment ends at the first lookup after that time, and its daily amount is refunded.
func TestNeverSentBySchedule(t *testing.T) {
	for responseStatus, state := range map[int]ledger.State{201: ledger.Done, 0: ledger.Released} {
		s := newFixture(t)
		s.Operator.SetLookupResult(deliverytest.NoSuchOrder())
		e := s.storeAt("mtn-momo/ci", responseStatus, func(e *ledger.Entry) { e.Amount.CountsDaily = true })
		if err := s.Pipeline.DailyAmounts.Reserve(t.Context(), operationtest.DemoProfile(), e); err != nil {
			t.Fatal(err)
		}
		s.AssertDailySum(t, 500)
		ages := s.recordLookups(t, e, time.Hour)
		if len(ages) == 0 || ages[len(ages)-1] != 23*time.Minute || s.MustGet(t, e).State != state {
			t.Errorf("lookups at %v, state %s; want it %s after 23 minutes", ages, s.MustGet(t, e).State, state)
		}
		s.AssertDailySum(t, 0)
	}
}

// The time counts from the last send, not from the first.
func TestNeverSentAfterRetry(t *testing.T) {
	s := newFixture(t)
	s.Operator.SetLookupResult(deliverytest.NoSuchOrder())
	e := s.storeAt("mtn-momo/ci", 0, func(e *ledger.Entry) { e.ReservedAt = e.ReservedAt.Add(10 * time.Minute) })
	s.sweepAtAge(t, e, 10*time.Minute+neverSentAfter-time.Second)
	s.AssertEntry(t, e, summary{State: ledger.Unknown, Status: ledger.Pending, Due: true})
	s.sweepAtAge(t, e, 10*time.Minute+neverSentAfter)
	s.AssertEntry(t, e, summary{State: ledger.Released, Status: ledger.Pending})
}

// A merchant's retry may take the payment over while its lookup is in flight: the attempt is not ended.
func TestNeverSentDuringRetry(t *testing.T) {
	s := newFixture(t)
	e := s.storeAt("mtn-momo/ci", 0)
	s.Operator.LookupFunc = func(operator.StatusCall) operator.StatusResponse {
		current := s.MustGet(t, e)
		retry := current.Clone()
		retry.LeaseUntil = s.Clock.Now().Add(25 * time.Second)
		next := current.TakeOver(retry, "second", ledger.Timestamp(s.Clock.Now()))
		next.Writer = "second"
		s.Ledger.Overwrite(next)
		return deliverytest.NoSuchOrder()
	}
	s.sweepAtAge(t, e, neverSentAfter)
	s.AssertEntry(t, e, summary{State: ledger.Reserved, Status: ledger.Pending, Due: true})
}

// decision "prepare": a payment that was never prepared was never sent. It needs no lookup.
func TestNeverPrepared(t *testing.T) {
	released := summary{State: ledger.Released, Status: ledger.Pending}
	unknown := summary{State: ledger.Unknown, Status: ledger.Pending, Due: true}
	for _, c := range []struct {
		name, account, material string
		want                    summary
		lookups                 int
	}{
		{"never prepared", "orange-cm/w", "", released, 0},
		{"prepared, so perhaps sent", "orange-cm/w", "MP1", unknown, 1},
		{"another platform", "pawapay/w", "", unknown, 1},
		{"a page that was not stored", "orange-webpay/w", "", unknown, 0},
	} {
		s := newFixture(t)
		s.Operator.SetLookupResult(deliverytest.NoResponse())
		e := s.StoreEntry(s.NewReservedPayment("DemoShop_1"), func(e *ledger.Entry) {
			e.Route.Account, e.Route.UpstreamKey, e.DriverData = c.account, "key", c.material
		})
		s.runSweepAfter(t, e.LeaseUntil.Add(ledger.LapseMargin).Sub(s.Clock.Now()))
		s.runSweepAfter(t, time.Minute)
		s.AssertEntry(t, e, c.want)
		s.AssertLookups(t, c.lookups)
	}
}

// decision "unread-callbacks": an unreadable callback on a released payment leads to lookups until a response. A
// success is applied, and is an alarm.
func TestLookupOfReleasedPayment(t *testing.T) {
	for _, c := range []struct {
		name            string
		response        operator.StatusResponse
		want            summary
		alarms, lookups int
	}{
		{"never applied", deliverytest.NoSuchOrder(), summary{State: ledger.Released, Status: ledger.Pending}, 0, 1},
		{"failed", deliverytest.LookupResponse("Failed", operator.StatusReport{}),
			summary{State: ledger.Released, Status: ledger.Pending}, 0, 1},
		{"no response", deliverytest.NoResponse(), summary{State: ledger.Released, Status: ledger.Pending}, 0, 24},
		{"a success", deliverytest.LookupResponse("Success", operator.StatusReport{}),
			summary{State: ledger.Done, Status: ledger.Successful, Delivered: 1, UserSMS: "sent"}, 1, 1},
	} {
		s := newFixture(t)
		s.Operator.SetLookupResult(c.response)
		e := s.newReleasedPayment()
		e.RequestLookup(s.Clock.Now())
		e = s.StoreEntry(e)
		for range 30 {
			s.runSweepAfter(t, time.Hour)
		}
		s.AssertEntry(t, e, c.want)
		s.AssertLookups(t, c.lookups)
		s.AssertMetric(t, "StatusConflicts", c.alarms)
	}
}
