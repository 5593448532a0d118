package sweep_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/pause"
)

// ratedOperator is a platform whose lookups take a while, and end each payment. It records the time of each, by account.
type ratedOperator struct {
	operator.Driver
	mutex sync.Mutex
	calls map[string][]time.Time
}

func (o *ratedOperator) LookUpPayment(_ context.Context, call operator.StatusCall) operator.StatusResponse {
	o.mutex.Lock()
	o.calls[call.AccountID] = append(o.calls[call.AccountID], time.Now())
	o.mutex.Unlock()
	time.Sleep(200 * time.Millisecond)
	return operator.StatusResponse{StatusReport: operator.StatusReport{Status: ledger.Failed}}
}

// mostInASecond returns the most calls of an account within a second.
func (o *ratedOperator) mostInASecond(account string) (most int) {
	times := slices.SortedFunc(slices.Values(o.calls[account]), time.Time.Compare)
	for i, at := range times {
		end, _ := slices.BinarySearchFunc(times, at.Add(time.Second), time.Time.Compare)
		most = max(most, end-i)
	}
	return most
}

// ratedCrowd is a crowd whose payments at MTN have a table of limits.
type ratedCrowd struct {
	*crowd
	operator *ratedOperator
	limits   *storetest.Limits
}

func newRatedCrowd(t *testing.T) *ratedCrowd {
	c := &ratedCrowd{newCrowd(t), &ratedOperator{calls: map[string][]time.Time{}}, storetest.NewLimits()}
	c.sweep.Confirmer.Operators = operator.NewDriverDirectory(map[string]operator.Driver{"mtn": c.operator}, nil)
	c.sweep.Confirmer.LookupRates = limit.NewRateLimiter(c.limits, time.Now)
	c.sweep.Sleep, c.sweep.Log = pause.For, c.log
	return c
}

// storeAt stores payments of an account of MTN whose lookups are due now, the first one earliest.
func (c *ratedCrowd) storeAt(account string, count int) {
	for i := range count {
		now := ledger.Timestamp(time.Now().Add(time.Duration(i-count) * time.Millisecond))
		e := &ledger.Entry{
			Key:      ledger.Key{Kind: ledger.Payment, ID: "Shop_" + account + strconv.Itoa(i)},
			Merchant: ledger.Merchant{ID: "shop"}, Route: ledger.Route{Operator: "mtn", Country: "CI", Account: "mtn-momo/" + account},
			Call: ledger.Call{LeaseUntil: now.Add(time.Second)},
		}
		e.BeginReservation("owner", now)
		e.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, FirstPollAt: now}, now)
		e.Reschedule()
		c.ledger.Overwrite(e)
	}
}

// pending counts the payments of an account that are not final, and those of them that are due.
func (c *ratedCrowd) pending(account string) (pending, due int) {
	for _, e := range c.ledger.All() {
		if strings.HasSuffix(e.Route.Account, "/"+account) && !e.StatusFinal() {
			pending++
			if !e.DueAt.After(time.Now()) {
				due++
			}
		}
	}
	return pending, due
}

// decision "lookup-rate": an account with many more due lookups than its rate has them all, at its rate, a batch for
// each write. Another account, and a merchant's notification, do not wait for it.
func TestLookupsWithinRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRatedCrowd(t)
		const waiting, few = 1200, 20
		row, _ := operator.FindCapabilities("mtn-momo")
		c.storeAt("ci", waiting)
		c.storeAt("cm", few)
		e := c.store("Other_1", "other", "/notify", false)
		began := time.Now()
		c.runPass(t)
		at, delivered := c.delivered.Load(e.Outbox.Head().ID)
		if !delivered || at.(time.Time).Sub(began) > 10*time.Second {
			t.Errorf("the other merchant's notification is late, or not delivered")
		}
		if pending, _ := c.pending("cm"); pending > 0 {
			t.Errorf("%d payments of the other account wait", pending)
		}
		first := len(c.operator.calls["ci"])
		if first < 300 || first > 340 {
			t.Errorf("the first pass made %d lookups, want about 320", first)
		}
		pending, due := c.pending("ci")
		if due > 330 { // all others are due when their share comes
			t.Errorf("%d of %d payments are due again for the next pass", due, pending)
		}
		passes := 1
		for ; pending > 0 && passes < 10; pending, _ = c.pending("ci") {
			c.runPass(t)
			passes++
		}
		most := c.operator.mostInASecond("ci")
		writes := c.limits.CallCount(storetest.UpdateRate)
		t.Logf("%d lookups in %d passes, at most %d in a second, %d writes", len(c.operator.calls["ci"]), passes, most,
			writes)
		if pending > 0 || passes > 5 || len(c.operator.calls["ci"]) != waiting {
			t.Errorf("%d payments pending after %d passes and %d lookups", pending, passes, len(c.operator.calls["ci"]))
		}
		if most > row.LookupsPerSecond+row.LookupBurst() {
			t.Errorf("%d lookups in a second", most)
		}
		if writes > waiting/3 {
			t.Errorf("%d writes of the table of limits for %d lookups", writes, waiting)
		}
	})
}

// Without the table of limits nothing is limited, and the failure is counted.
func TestLookupsWithoutLimitTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRatedCrowd(t)
		c.limits.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
		c.storeAt("ci", 100)
		c.runPass(t)
		if pending, _ := c.pending("ci"); pending > 0 {
			t.Errorf("%d payments wait for a table that does not respond", pending)
		}
		if !strings.Contains(c.log.String(), `"LimitStoreFailures":1`) {
			t.Error("the failure is not counted")
		}
	})
}

// A callback's lookup finds its account's rate not used up by the sweep.
func TestSweepLeavesLookupsToCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRatedCrowd(t)
		c.storeAt("ci", 200)
		granted, tries := 0, 0
		go func() {
			callback := *c.sweep.Confirmer
			callback.LookupRates = limit.NewRateLimiter(c.limits, time.Now) // of another process
			for range 10 {
				time.Sleep(1700 * time.Millisecond)
				one, _, err := callback.TakeLookups(t.Context(), operator.Pin{Platform: "mtn-momo", Account: "ci"}, 1)
				if err == nil {
					granted, tries = granted+one, tries+1
				}
			}
		}()
		c.runPass(t)
		if tries != 10 || granted < 8 {
			t.Errorf("%d of %d lookups granted beside the sweep", granted, tries)
		}
	})
}
