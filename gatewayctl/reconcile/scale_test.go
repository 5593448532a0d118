package reconcile_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

var rowCount = flag.Int("rows", 20_000, "number of rows of TestPlantedDifferences")

// generated is a ledger that generates its many payments of the day on each read. It fails once at a transaction.
type generated struct {
	*storetest.Ledger
	merchantID string
	count      int
	failAt     int // -1 for never
	plants     map[int]plant
}

func newGenerated(b *books, count, failAt int) *generated {
	g := &generated{Ledger: b.Ledger, merchantID: b.shop.ID, count: count, failAt: failAt, plants: map[int]plant{}}
	for _, p := range planted(count) {
		g.plants[p.at] = p
	}
	return g
}

// heapSample is the time between two measurements of the heap.
const heapSample = 10 * time.Millisecond

// peakHeap measures the largest heap, with what is not collected yet, while f runs.
func peakHeap(f func()) uint64 {
	runtime.GC()
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		ticker := time.NewTicker(heapSample)
		defer ticker.Stop()
		var largest uint64
		for {
			metrics.Read(sample)
			largest = max(largest, sample[0].Value.Uint64())
			select {
			case <-done:
				peak <- largest
				return
			case <-ticker.C:
			}
		}
	}()
	f()
	close(done)
	return <-peak
}

// Day implements ledger.DayIndex.
func (g *generated) Day(_ context.Context, query ledger.DayQuery) ([]ledger.DayKey, string, error) {
	if !query.Day.Equal(day().Truncate(24 * time.Hour)) {
		return nil, "", nil
	}
	from := 0
	if _, last, found := strings.Cut(query.Cursor, "_"); found {
		from, _ = strconv.Atoi(last)
		from++
	}
	if g.failAt >= 0 && from >= g.failAt {
		g.failAt = -1
		return nil, "", errors.New("the table does not respond")
	}
	to := min(from+query.Limit, g.count)
	var keys []ledger.DayKey
	for i := from; i < to; i++ {
		keys = append(keys, ledger.DayKey{Key: payKey(i), CreatedAt: createdAt(i)})
	}
	if to == g.count {
		return keys, "", nil
	}
	return keys, keys[len(keys)-1].Cursor(), nil
}

func payKey(i int) ledger.Key {
	return ledger.Key{Kind: ledger.Payment, ID: "ShopA_" + strconv.Itoa(i)}
}

func createdAt(i int) time.Time {
	return day().Add(-12 * time.Hour).Add(time.Duration(i%72_000) * time.Second)
}

func amountOf(i int) int64 { return int64(100 + i%9_000) }

// Get implements ledger.Reader. Every tenth payment has no reference of the platform: only our key finds it.
func (g *generated) Get(_ context.Context, key ledger.Key) (*ledger.Entry, error) {
	_, number, _ := strings.Cut(key.ID, "_")
	i, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	e := &ledger.Entry{
		Key: key, Merchant: ledger.Merchant{ID: g.merchantID, Name: "ShopA"}, Call: ledger.Call{State: ledger.Done},
		Progress:  ledger.Progress{Status: ledger.Successful, FinalAt: createdAt(i).Add(time.Second)},
		CreatedAt: createdAt(i), Amount: ledger.Amount{Minor: amountOf(i), Currency: "XOF"},
		Route:    ledger.Route{Operator: "sandbox", Account: "a1", UpstreamKey: "key-" + number},
		Response: ledger.Response{Body: make([]byte, 500)},
	}
	if i%10 > 0 {
		e.OperatorReference = "ref-" + number
	}
	if p, isPlanted := g.plants[i]; isPlanted && p.ours != nil {
		p.ours(e)
	}
	return e, nil
}

// plant is one difference: what the ledger has, and what the statement has. A nil statement has no row.
type plant struct {
	at    int
	class result.Class
	ours  func(*ledger.Entry)
	rows  func(row statementRow) []statementRow
	moved int64 // theirs less ours
}

type statementRow struct {
	reference, key string
	amount         int64
	currency       string
	status         string
	at             time.Time
	fee            int64
}

// contractFee is the fee of each row by feeMapping.
const (
	contractFee = 3
	feeMapping  = `{"fee_terms": {"fixed_minor": 3, "rounding": "up"}}`
)

func (r statementRow) String() string {
	return fmt.Sprintf("%s,%s,%d,%s,%s,%s,%d,", r.reference, r.key, r.amount, r.currency, r.status,
		r.at.Format(time.RFC3339), r.fee)
}

// planted are twenty differences of all classes, spread over a number of payments.
func planted(count int) []plant {
	place := func(n int) int { return n * (count / 21) }
	one := func(change func(*statementRow)) func(statementRow) []statementRow {
		return func(r statementRow) []statementRow {
			change(&r)
			return []statementRow{r}
		}
	}
	ours := func(s ledger.State, status ledger.Status) func(*ledger.Entry) {
		return func(e *ledger.Entry) {
			if e.State, e.Status = s, status; status == ledger.Pending {
				e.FinalAt = time.Time{}
			}
		}
	}
	same, none := one(func(*statementRow) {}), func(statementRow) []statementRow { return nil }
	var all []plant
	for n := 1; n <= 20; n++ {
		i := place(n)
		amount := amountOf(i)
		all = append(all, []plant{
			{i, result.AmountDiffers, nil, one(func(r *statementRow) { r.amount++ }), 1},
			{i, result.CurrencyDiffers, nil, one(func(r *statementRow) { r.currency = "XAF" }), -amount},
			{i, result.StatusDiffers, nil, one(func(r *statementRow) { r.status = "failed" }), -amount},
			{i, result.StatusDiffers, nil, one(func(r *statementRow) { r.status = "refunded" }), -amount},
			{i, result.Twice, nil, func(r statementRow) []statementRow { return []statementRow{r, r} }, amount},
			{i, result.Twice, nil, func(r statementRow) []statementRow {
				second := r
				second.reference, second.key = "second-"+r.key, r.key
				return []statementRow{r, second}
			}, amount},
			{i, result.OursAlone, nil, none, -amount},
			{i, result.OursAlone, ours(ledger.Unknown, ledger.Pending), none, 0},
			{i, result.TheirsAlone, ours(ledger.Unknown, ledger.Pending), same, amount},
			{i, result.TheirsAlone, ours(ledger.Done, ledger.Failed), same, amount},
			{i, result.TheirsAlone, nil, func(r statementRow) []statementRow {
				stranger := r
				stranger.reference, stranger.key = "stranger-"+r.key, "stranger-"+r.key
				return []statementRow{r, stranger}
			}, amount},
			{i, result.OtherDay, nil, one(func(r *statementRow) { r.at = r.at.AddDate(0, 0, 1) }), 0},
			{i, result.OtherDay, func(e *ledger.Entry) { e.FinalAt = e.FinalAt.AddDate(0, 0, 1) },
				none, -amount},
			{i, result.FeeDiffers, nil, one(func(r *statementRow) { r.fee++ }), 0},
		}[n%14])
	}
	return all
}

// writeStatement writes the statement of generated payments, in an order that the seed gives within blocks of rows.
func writeStatement(t *testing.T, path string, count int, seed int64) {
	t.Helper()
	plants := map[int]plant{}
	for _, p := range planted(count) {
		plants[p.at] = p
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out, random := bufio.NewWriter(file), rand.New(rand.NewSource(seed))
	_, _ = out.WriteString(heading)
	var block []string
	for i := range count {
		number := strconv.Itoa(i)
		row := statementRow{"ref-" + number, "key-" + number, amountOf(i), "XOF", "paid",
			createdAt(i).Add(time.Second), contractFee}
		rows := []statementRow{row}
		if p, isPlanted := plants[i]; isPlanted {
			rows = p.rows(row)
		}
		for _, r := range rows {
			block = append(block, r.String())
		}
		if len(block) >= 10_000 || i == count-1 {
			random.Shuffle(len(block), func(a, b int) { block[a], block[b] = block[b], block[a] })
			_, _ = out.WriteString(strings.Join(block, "\n") + "\n")
			block = block[:0]
		}
	}
	if err := errors.Join(out.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// reconcileGenerated reconciles generated payments, interrupted at the half. It checks each planted difference, and
// returns the largest heap.
func reconcileGenerated(t *testing.T, count int) uint64 {
	t.Helper()
	b := newBooks(t)
	many := newGenerated(b, count, count/2)
	b.ChangeStores(func(s *deployment.Stores) { s.Ledger, s.Batches = many, storetest.Batches{Reader: many} })
	path := filepath.Join(b.folder, "s.csv")
	writeStatement(t, path, count, 1)
	line := b.line(path, "--json --mapping "+b.write("m.json", feeMapping))
	b.ExpectExit(line, gatewayctl.ExitUsage, "does not respond")
	began := time.Now()
	var code int
	var out, stderr string
	heap := peakHeap(func() { code, out, stderr = b.Exec(line) })
	t.Logf("%d rows in %v, behind an interrupt at the half of the ledger; largest heap %d KiB", count,
		time.Since(began).Round(time.Millisecond), heap>>10)
	if code != gatewayctl.ExitFailed || !strings.Contains(stderr, "Continuing in ") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var found document
	gatewayctltest.Decode(t, out, &found)
	wantCounts, moved := map[result.Class]int{}, int64(0)
	for _, p := range planted(count) {
		wantCounts[p.class]++
		if p.class != result.CurrencyDiffers {
			moved += p.moved
		}
	}
	gotDifferences := len(found.Differences)
	b.Equal("differences", gotDifferences, 20)
	equal := found.Counts[result.Equal]
	delete(found.Counts, result.Equal)
	b.Equal("counts", found.Counts, wantCounts)
	// The row of a further one, or of an unknown transaction, is beside an equal one.
	b.Equal("equal rows", equal, count-20+wantCounts[result.Twice]+foreignRows(count))
	checkTotals(b, found, count)
	return heap
}

// foreignRows is how many planted rows are beside an equal one, without a transaction of ours.
func foreignRows(count int) int {
	n := 0
	for _, p := range planted(count) {
		if p.class == result.TheirsAlone && p.ours == nil {
			n++
		}
	}
	return n
}

// checkTotals compares the totals with those of the generator, and each difference with its classes.
func checkTotals(b *books, found document, count int) {
	b.T.Helper()
	var ours, theirs, xaf int64
	fees := map[string]int64{}
	plants := map[int]plant{}
	for _, p := range planted(count) {
		plants[p.at] = p
	}
	for i := range count {
		row := statementRow{amount: amountOf(i), status: "paid", currency: "XOF", fee: contractFee}
		rows, e := []statementRow{row}, &ledger.Entry{Progress: ledger.Progress{Status: ledger.Successful}}
		if p, isPlanted := plants[i]; isPlanted {
			if rows = p.rows(row); p.ours != nil {
				p.ours(e)
			}
		}
		for _, r := range rows {
			fees[r.currency] += r.fee
			switch {
			case r.status == "paid" && r.currency == "XAF":
				xaf += r.amount
			case r.status == "paid":
				theirs += r.amount
			}
		}
		if e.Status == ledger.Successful {
			ours += amountOf(i)
		}
	}
	sums := map[string]int64{}
	for _, total := range found.Totals {
		add := func(name, text string) {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				b.T.Error(err)
			}
			sums[name+" "+total.Currency] += n
		}
		add("fees", total.Fees)
		add("theirs", total.Theirs)
		add("ours", total.Ours)
		add("difference", total.Difference)
		for _, text := range total.Classes {
			add("classes", text)
		}
	}
	b.Equal("the totals", sums, map[string]int64{
		"fees XOF": fees["XOF"], "fees XAF": fees["XAF"],
		"theirs XOF": theirs, "ours XOF": ours, "difference XOF": theirs - ours, "classes XOF": theirs - ours,
		"theirs XAF": xaf, "ours XAF": 0, "difference XAF": xaf, "classes XAF": xaf,
	})
}

// Twenty planted differences of all classes are found, no others, with the totals to the unit, behind an interrupt. The
// heap does not grow with the number of rows. -rows 1000000 is the long form.
func TestPlantedDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("twenty thousand rows take a while under the race detector")
	}
	const slack = 128 << 20 // the records in memory of three sorters, and what is not collected yet
	few, many := reconcileGenerated(t, 2_100), reconcileGenerated(t, *rowCount)
	if many > few+slack {
		t.Errorf("the heap grew from %d to %d bytes", few, many)
	}
}

// A statement in any order has the same result, except for the numbers of the lines.
func TestShuffledStatements(t *testing.T) {
	const count = 500
	var first string
	for seed := range int64(5) {
		b := newBooks(t)
		b.ChangeStores(func(s *deployment.Stores) {
			many := newGenerated(b, count, -1)
			s.Ledger, s.Batches = many, storetest.Batches{Reader: many}
		})
		path := filepath.Join(b.folder, "s.csv")
		writeStatement(t, path, count, seed)
		_, out, _ := b.Exec(b.line(path, "--json"))
		var found document
		gatewayctltest.Decode(t, out, &found)
		for i := range found.Differences {
			found.Differences[i].Line, found.Differences[i].Command = 0, ""
		}
		found.Statements[0].SHA256 = ""
		slices.SortStableFunc(found.Differences, func(a, b result.Row) int { return strings.Compare(a.ID, b.ID) })
		if text := fmt.Sprintf("%+v", found); seed == 0 {
			first = text
		} else if text != first {
			t.Errorf("seed %d: %s, want %s", seed, text, first)
		}
	}
}
