package control

import (
	"bytes"
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/ledgermem"
	"mobilegateway/shared/ledger"
)

// crowd is a ledger with so many payments that it makes each when it is asked for; all are of the first day.
type crowd struct {
	*ledgermem.Store
	shop  onboarded
	count int
	at    time.Time
}

func (c *crowd) Day(_ context.Context, _ string, _ time.Time, cursor string, limit int) ([]ledger.Key, string, error) {
	from, _ := strconv.Atoi(cursor)
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

func (c *crowd) Get(_ context.Context, key ledger.Key) (*ledger.Entry, error) {
	return &ledger.Entry{
		Key: key, MerchantID: c.shop.ID, Merchant: "ShopA", State: ledger.Done, Status: ledger.Successful, CreatedAt: c.at, Minor: 1000,
		Currency: "XOF", AnswerBody: bytes.Repeat([]byte("x"), 1000),
	}, nil
}

// gauge counts lines and keeps the largest heap that it saw.
type gauge struct {
	lines int
	heap  uint64
}

func (g *gauge) Write(p []byte) (int, error) {
	if g.lines%(50*pageSize) < pageSize {
		var memory runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&memory)
		g.heap = max(g.heap, memory.HeapAlloc)
	}
	g.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

// TestExportOfManyTakesNoMoreMemory exports 1,000 and 100,000 payments and compares the live heap.
func TestExportOfManyTakesNoMoreMemory(t *testing.T) {
	export := func(count int) uint64 {
		d := newDesk(t)
		many := &crowd{Store: d.ledger, shop: d.shop(), count: count, at: d.now}
		out := &gauge{}
		line := "export --merchant ShopA --from 2026-03-01 --to 2026-03-01"
		code := Run(t.Context(), strings.Fields(line), System{
			Out: out, Notes: &bytes.Buffer{}, Variable: func(string) string { return "" }, Now: func() time.Time { return d.now }, Rand: d.random,
			Connect: func(Places) (*Stores, error) { return &Stores{d.merchants, many, d.health, d.vault, d.audit}, nil },
		})
		if code != ExitDone || out.lines != count+1 {
			t.Fatalf("exit %d, %d lines", code, out.lines)
		}
		return out.heap
	}
	const slack = 8 << 20
	if few, many := export(1000), export(100_000); many > few+slack {
		t.Errorf("the heap grew from %d to %d bytes", few, many)
	}
}
