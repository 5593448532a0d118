package sweep_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/pause"
)

// ratedOperator is a platform whose lookups take a while, and end each payment. It records their times, by account.
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
			Merchant: ledger.Merchant{ID: "shop"},
			Route:    ledger.Route{Operator: "mtn", Country: "CI", Account: "mtn-momo/" + account},
			Call:     ledger.Call{LeaseUntil: now.Add(time.Second)},
		}
		e.BeginReservation("owner", now)
		e.ApplyOutcome("owner", ledger.CallOutcome{State: ledger.Done, ResponseStatus: 201, FirstPollAt: now}, now)
		e.Reschedule()
		c.ledger.Overwrite(e)
	}
}

// takeForCallbacks takes lookups as callbacks in another process do, one each 1.7 seconds. It counts the granted ones.
func (c *ratedCrowd) takeForCallbacks(t *testing.T, count int) *atomic.Int64 {
	granted, callback := &atomic.Int64{}, *c.sweep.Confirmer
	callback.LookupRates = limit.NewRateLimiter(c.limits, time.Now)
	go func() {
		for range count {
			time.Sleep(1700 * time.Millisecond)
			one, _, err := callback.TakeLookups(t.Context(), operator.Pin{Platform: "mtn-momo", Account: "ci"}, 1)
			if err == nil {
				granted.Add(int64(one))
			}
		}
	}()
	return granted
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

// Without the table of limits nothing is limited, so the pass does not wait for a rate. The failure is counted.
func TestLookupsWithoutLimitTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRatedCrowd(t)
		c.limits.InjectFaults(func(storetest.Call) storetest.Fault { return storetest.FailedBeforeApply })
		c.storeAt("ci", 100)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		if _, err := c.sweep.Invoke(ctx, []byte(`{"part":0,"of":1}`)); err != nil {
			t.Fatal(err)
		}
		if pending, _ := c.pending("ci"); pending > 0 {
			t.Errorf("%d payments wait for a table that does not respond", pending)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the pass took %s: it waits for a rate that is not known", took)
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
		granted := c.takeForCallbacks(t, 10)
		c.runPass(t)
		if granted.Load() < 8 {
			t.Errorf("%d of 10 lookups granted beside the sweep", granted.Load())
		}
	})
}

// The sweeps of a minute divide an account's rate, and leave a part to callbacks.
func TestSweepsOfAMinuteDivideTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRatedCrowd(t)
		const waiting = 600
		c.storeAt("ci", waiting)
		granted := c.takeForCallbacks(t, 10)
		var group sync.WaitGroup
		for number := range 4 {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				if _, err := c.sweep.Invoke(ctx, fmt.Appendf(nil, `{"part":%d,"of":4}`, number)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		row, _ := operator.FindCapabilities("mtn-momo")
		made, most := len(c.operator.calls["ci"]), c.operator.mostInASecond("ci")
		t.Logf("%d lookups, at most %d in a second, %d of 10 of callbacks", made, most, granted.Load())
		if made < 280 || made > 340 || most > row.LookupsPerSecond+row.LookupBurst() {
			t.Errorf("%d lookups, %d in a second; want about 320", made, most)
		}
		if granted.Load() < 8 {
			t.Errorf("%d of 10 lookups granted beside the sweeps", granted.Load())
		}
	})
}

// Lookups that wait for the rate of their account do not keep the pass from what other sweeps have left.
func TestLookupsThatWaitDoNotStopThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRatedCrowd(t)
		c.storeAt("ci", 400)
		var notified []*ledger.Entry
		for i := range 40 {
			notified = append(notified, c.store("Other_"+strconv.Itoa(i), "other", "/notify", false))
		}
		time.Sleep(time.Minute + time.Second)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		if _, err := c.sweep.Invoke(ctx, []byte(`{"part":2,"of":4}`)); err != nil {
			t.Fatal(err)
		}
		for _, e := range notified {
			at, delivered := c.delivered.Load(e.Outbox.Head().ID)
			if !delivered || at.(time.Time).Sub(began) > 10*time.Second {
				t.Fatalf("%s is late, or not delivered", e.Key)
			}
		}
	})
}
