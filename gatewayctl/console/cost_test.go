package console_test

import (
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/gatewayctl/console"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
)

// A page may cost so many calls of DynamoDB, and so much time (the median).
const (
	maxPageCalls  = 20
	maxPageMillis = 300
	pageLoads     = 20
)

// TestPageCost compares the cost of each page with its bounds, over stores in memory. It does not count the commands in
// the background: a page shows their last result, with its time. CONSOLE_TRANSACTIONS=100000 measures a large day.
func TestPageCost(t *testing.T) {
	count := 200
	if wanted, err := strconv.Atoi(os.Getenv("CONSOLE_TRANSACTIONS")); err == nil {
		count = wanted
	}
	d, shop := gatewayctltest.NewQuiet(t)
	for i := range count {
		d.AddDeliveredPayment(shop, i, d.Now.Add(-time.Duration(i)*time.Millisecond))
	}
	var calls atomic.Int64
	counted := func(storetest.Call) storetest.Fault {
		calls.Add(1)
		return storetest.NoFault
	}
	d.Ledger.InjectFaults(counted)
	d.Merchants.InjectFaults(counted)
	d.Health.InjectFaults(counted)
	d.Circuits.InjectFaults(counted)
	// A command of the first load takes an hour by the console's clock, which does not move later. So no command begins
	// again in the background, and all counted calls are those of a page.
	var hours atomic.Int64
	var warm atomic.Bool
	s := newSite(t, d, func(c *console.Config) {
		run := c.Run
		c.Now = func() time.Time { return d.Now.Add(time.Duration(hours.Load()) * time.Hour) }
		c.Run = func(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
			if !warm.Load() {
				defer hours.Add(1)
			}
			return run(ctx, arguments, stdout, stderr)
		}
	})
	for _, path := range append(slices.Clone(paths), "/transaction?kind=pay&id=ShopA_1", "/merchant?name=ShopA",
		"/search?q=ShopA_1", "/deliveries?merchant=ShopA") {
		warm.Store(false)
		for strings.Contains(s.mustGet(path), "being read") { // until the background has a result
			time.Sleep(20 * time.Millisecond)
		}
		warm.Store(true)
		var times []time.Duration
		var counts []int64
		for range pageLoads {
			before, began := calls.Load(), time.Now()
			s.mustGet(path)
			times = append(times, time.Since(began))
			counts = append(counts, calls.Load()-before)
		}
		slices.Sort(times)
		slices.Sort(counts)
		median, calls := times[pageLoads/2], counts[pageLoads/2]
		t.Logf("%-36s %3d calls, %s (median)", path, calls, median.Round(time.Millisecond))
		if median > maxPageMillis*time.Millisecond {
			t.Errorf("%s takes %s", path, median)
		}
		if calls > maxPageCalls {
			t.Errorf("%s makes %d calls", path, calls)
		}
	}
}
