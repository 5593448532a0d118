package gatewayctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// generatedLedger is a ledger that generates its many payments of the first day on each read. It fails once, at the
// half, and records the largest heap.
type generatedLedger struct {
	*storetest.Ledger
	shop   onboardingResult
	count  int
	at     time.Time
	failed bool
	heap   uint64
}

// Day implements ledger.Journal.
func (c *generatedLedger) Day(_ context.Context, _ string, _ time.Time, cursor string, limit int) (
	[]ledger.Key, string, error,
) {
	from, _ := strconv.Atoi(cursor)
	if from >= c.count/2 && !c.failed {
		c.failed = true
		return nil, "", errors.New("the table does not respond")
	}
	if from%(50*limit) < limit {
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		c.heap = max(c.heap, memory.HeapAlloc)
	}
	to := min(from+limit, c.count)
	var keys []ledger.Key
	for i := from; i < to; i++ {
		keys = append(keys, ledger.Key{Kind: ledger.Payment, ID: "ShopA_" + strconv.Itoa(i)})
	}
	if to == c.count {
		return keys, "", nil
	}
	return keys, strconv.Itoa(to), nil
}

// Get implements ledger.Reader.
func (c *generatedLedger) Get(_ context.Context, key ledger.Key) (*ledger.Entry, error) {
	return &ledger.Entry{
		Key: key, MerchantID: c.shop.ID, Merchant: "ShopA", State: ledger.Done, Status: ledger.Successful,
		CreatedAt: c.at, AmountMinor: 1000,
		Currency: "XOF", ResponseBody: bytes.Repeat([]byte("x"), 1000),
	}, nil
}

// exportGenerated exports in two pieces, checks every line, and returns the largest heap.
func exportGenerated(t *testing.T, format string, count int) uint64 {
	t.Helper()
	d := newTestTool(t)
	many := &generatedLedger{Ledger: d.ledger, shop: d.onboardShop(), count: count, at: d.now}
	d.changeStores(func(s *Stores) { s.Ledger = many })
	name, begins := filepath.Join(t.TempDir(), "out"), "pay,ShopA_%d,"
	if format == formatJSON {
		begins = `{"kind":"pay","id":"ShopA_%d",`
	}
	line := "export ShopA --from 2026-03-01 --to 2026-03-01 --format " + format + " --output " + name
	d.expectExit(line, ExitFailed, "does not respond")
	d.expectExit(line, ExitDone, strconv.Itoa(count/2)+" transactions written")
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()       // it was only read
	lines, rows := bufio.NewScanner(file), -1 // a heading, or a bracket
	for ; lines.Scan() && lines.Text() != "]"; rows++ {
		if want := fmt.Sprintf(begins, rows); rows >= 0 && !strings.HasPrefix(lines.Text(), want) {
			t.Fatalf("row %d is %q, want %s", rows, lines.Text(), want)
		}
	}
	if rows != count {
		t.Errorf("%d rows, want %d", rows, count)
	}
	return many.heap
}

// TestExportMemoryIsConstant exports 2,000 and 100,000 payments, each with an interrupt at the half. Each payment is
// exported once and in order. The live heap does not grow with their number.
func TestExportMemoryIsConstant(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand payments take a while under the race detector")
	}
	const slack = 8 << 20
	for _, format := range []string{formatCSV, formatJSON} {
		few, many := exportGenerated(t, format, 2000), exportGenerated(t, format, 100_000)
		t.Logf("%s: largest live heap: %d KiB of 2,000 payments, %d KiB of 100,000", format, few>>10, many>>10)
		if many > few+slack {
			t.Errorf("%s: the heap grew from %d to %d bytes", format, few, many)
		}
	}
}
