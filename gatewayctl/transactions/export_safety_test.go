package transactions_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/gatewayctl/transactions"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// A merchant's text empties no other column on the standard output: each text is masked by itself, as the file has it.
func TestExportMasksEachTextByItself(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	const correlator = "x://y?"
	d.AddUnknownCharge(shop, correlator)
	line := "export ShopA --since 2026-03-01 --to 2026-03-01 --format "
	columns := func(name, text string) []string {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[1]) != len(transactions.ExportColumns()) {
			t.Fatalf("%s: %v in %q", name, err, text)
		}
		return rows[1]
	}
	_, out, _ := d.Exec(line + "csv")
	file := filepath.Join(t.TempDir(), "out")
	d.ExpectExit(line+"csv --output "+file, gatewayctl.ExitDone, "")
	want := columns("the file", gatewayctltest.ReadFile(t, file))
	d.Equal("the file's correlator", want[slices.Index(transactions.ExportColumns(), "client_correlator")], correlator)
	want[slices.Index(transactions.ExportColumns(), "client_correlator")] = correlator + "***"
	d.Equal("the row on the standard output", columns("the output", out), want)
	for _, format := range []string{"json", "ndjson"} {
		if _, out, _ := d.Exec(line + format); len(exportedIDs(t, format, out)) != 1 || !strings.Contains(out, "=1+1") {
			t.Errorf("%s: %s", format, out)
		}
	}
}

// An export writes to no file that another user planted, and believes no cursor but its own.
func TestExportUsesOnlyPrivateFiles(t *testing.T) {
	give := func(t *testing.T, mode fs.FileMode, owner int, name string) {
		if err := errors.Join(os.Chmod(name, mode), os.Chown(name, owner, -1)); err != nil {
			t.Skip(err) // only root may give a file away
		}
	}
	link := func(t *testing.T, name string) {
		target := name + ".target"
		if err := errors.Join(os.Rename(name, target), os.Symlink(target, name)); err != nil {
			t.Fatal(err)
		}
	}
	own, other := os.Geteuid(), os.Geteuid()+1
	for name, c := range map[string]struct {
		plant func(t *testing.T, file, cursor string)
		code  int
		text  string // on the standard error
	}{
		"the export's own files": {func(*testing.T, string, string) {}, gatewayctl.ExitDone, "Resuming"},
		"a file that others may read": {func(t *testing.T, file, _ string) {
			give(t, 0o644, own, file)
		}, gatewayctl.ExitUsage, "not a regular file of yours"},
		"a file of another user": {func(t *testing.T, file, _ string) {
			give(t, 0o600, other, file)
		}, gatewayctl.ExitUsage, "not a regular file of yours"},
		"a link": {func(t *testing.T, file, _ string) { link(t, file) }, gatewayctl.ExitUsage, "symbolic link"},
		"a shorter file": {func(t *testing.T, file, _ string) { gatewayctltest.WriteFile(t, file, "kind") },
			gatewayctl.ExitUsage, "shorter"},
		"no file": {func(t *testing.T, file, _ string) { _ = os.Remove(file) }, gatewayctl.ExitUsage,
			"--overwrite"},
		"a cursor of another user": {func(t *testing.T, _, cursor string) {
			give(t, 0o600, other, cursor)
		}, gatewayctl.ExitUsage, "not a resumable export"},
		"a cursor of another user, and no file": {func(t *testing.T, file, cursor string) {
			give(t, 0o600, other, cursor)
			_ = os.Remove(file)
		}, gatewayctl.ExitDone, "cursor is ignored"},
		"a cursor that others may write, and no file": {func(t *testing.T, file, cursor string) {
			give(t, 0o666, own, cursor)
			_ = os.Remove(file)
		}, gatewayctl.ExitDone, "cursor is ignored"},
		"a link to a cursor, and no file": {func(t *testing.T, file, cursor string) {
			link(t, cursor)
			_ = os.Remove(file)
		}, gatewayctl.ExitDone, "cursor is ignored"},
		"a link to a missing file, without a cursor": {func(t *testing.T, file, cursor string) {
			if err := errors.Join(os.Remove(cursor), os.Remove(file), os.Symlink(file+".target", file)); err != nil {
				t.Fatal(err)
			}
		}, gatewayctl.ExitUsage, "not a resumable export"},
	} {
		t.Run(name, func(t *testing.T) {
			d, shop := gatewayctltest.NewShop(t)
			for i := range entries.PageSize + 1 {
				d.AddDeliveredPayment(shop, i, d.Now.Add(time.Duration(i)*time.Second))
			}
			file := filepath.Join(t.TempDir(), "out")
			line := "export ShopA --since 2026-03-01 --to 2026-03-01 --output " + file
			failEveryRead(d, 2)
			d.ExpectExit(line, gatewayctl.ExitFailed, "injected")
			d.Ledger.InjectFaults(nil)
			c.plant(t, file, file+".cursor")
			before, _ := os.ReadFile(file)
			d.ExpectExit(line, c.code, c.text)
			if c.code == gatewayctl.ExitDone {
				d.Equal("rows", len(exportedIDs(t, "csv", gatewayctltest.ReadFile(t, file))), entries.PageSize+1)
			} else if after, _ := os.ReadFile(file); string(after) != string(before) {
				t.Errorf("a refused export wrote %q", after)
			}
			d.ExpectExit(line+" --overwrite", gatewayctl.ExitDone, strconv.Itoa(entries.PageSize+1)+" transactions")
			info, err := os.Lstat(file)
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("the file has mode %v, want a regular one of 0600: %v", info.Mode(), err)
			}
		})
	}
}

// A row has the account, the payer's last digits as they are shown elsewhere, and the reason of a failure.
func TestExportedColumns(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	e := d.AddDeliveredPayment(shop, 1, d.Now)
	e.Status, e.FailureReason, e.Conflicts = ledger.Failed, ledger.NotEnoughFunds, []ledger.Conflict{{}}
	d.Ledger.Overwrite(e)
	_, out, _ := d.Exec("export ShopA --since today")
	want := "pay,ShopA_1,,2026-03-01T12:00:00Z,2026-03-01T12:00:01Z,done,failed,1000,XOF,CI,sandbox,ussd,,,,ShopA_1," +
		"false,1,ShopA,a1,********00,not-enough-funds,sandbox,,\n"
	d.Equal("the rows", out, strings.Join(transactions.ExportColumns(), ",")+"\n"+want)
}

// An export by finality says at its end what it left out, also if it was interrupted.
func TestExportByFinalitySaysWhatItLeavesOut(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	for i := range entries.PageSize + 1 {
		d.AddDeliveredPayment(shop, i, d.Now)
	}
	d.AddUnknownCharge(shop, "c1")
	d.AddUnknownCharge(shop, "c2")
	d.Update(d.AddUnknownSMS(shop, "m1"), func(e *ledger.Entry) {
		e.Manual.Outcome, e.Poll.At = ledger.ManuallyUnknowable, time.Time{}
	})
	d.AddPendingPayment(shop, entries.PageSize+1, d.Now.Add(time.Hour))
	d.AddDeliveredPayment(shop, entries.PageSize+2, d.Now,
		func(e *ledger.Entry) { e.FinalAt = d.Now.Add(session.Day) })
	lastLine := func(line, want string) {
		t.Helper()
		_, _, stderr := d.Exec(line)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		d.Equal("the last line of "+line, lines[len(lines)-1], want)
	}
	const line = "export ShopA --since 2026-03-01 --to 2026-03-01"
	const saying = "Read, but left out because they are not final: "
	lastLine(line+" --by finality", saying+"1 pending, 1 unknowable, 2 unknown.")
	lastLine(line+" --by finality --kind charge", saying+"2 unknown.")
	lastLine(line+" --by finality --kind sms", saying+"1 unknowable.")
	lastLine(line, strconv.Itoa(entries.PageSize+6)+" transactions written.")
	file := filepath.Join(t.TempDir(), "out")
	failEveryRead(d, 6)
	d.ExpectExit(line+" --by finality --output "+file, gatewayctl.ExitFailed, "injected")
	d.Ledger.InjectFaults(nil)
	lastLine(line+" --by finality --output "+file, saying+"1 pending, 1 unknowable, 2 unknown.")
	d.Equal("rows", len(exportedIDs(t, "csv", gatewayctltest.ReadFile(t, file))), entries.PageSize+1)
	failEveryRead(d, 1) // before the first page
	d.ExpectExit(line+" --by finality --overwrite --output "+file, gatewayctl.ExitFailed, "injected")
	d.Ledger.InjectFaults(nil)
	lastLine(line+" --by finality --output "+file, saying+"1 pending, 1 unknowable, 2 unknown.")
}

// generatedLedger is a ledger that generates its many payments of the first day on each read. It fails once, at the
// half, and records the largest heap.
type generatedLedger struct {
	*storetest.Ledger
	shop   merchants.Onboarding
	count  int
	at     time.Time
	failed bool
	heap   uint64
}

// Day implements ledger.Journal.
func (c *generatedLedger) Day(_ context.Context, query ledger.DayQuery) ([]ledger.DayKey, string, error) {
	from, limit := 0, query.Limit
	if _, last, found := strings.Cut(query.Cursor, "_"); found {
		from, _ = strconv.Atoi(last)
		from++
	}
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
	var keys []ledger.DayKey
	for i := from; i < to; i++ {
		key := ledger.Key{Kind: ledger.Payment, ID: "ShopA_" + strconv.Itoa(i)}
		keys = append(keys, ledger.DayKey{Key: key, CreatedAt: c.at})
	}
	if to == c.count {
		return keys, "", nil
	}
	return keys, keys[len(keys)-1].Cursor(), nil
}

// Get implements ledger.Reader.
func (c *generatedLedger) Get(_ context.Context, key ledger.Key) (*ledger.Entry, error) {
	return &ledger.Entry{
		Key: key, Merchant: ledger.Merchant{ID: c.shop.ID, Name: "ShopA"}, Call: ledger.Call{State: ledger.Done},
		Progress:  ledger.Progress{Status: ledger.Successful},
		CreatedAt: c.at, Amount: ledger.Amount{Minor: 1000, Currency: "XOF"},
		Response: ledger.Response{Body: bytes.Repeat([]byte("x"), 1000)},
	}, nil
}

// exportGenerated exports in two pieces, checks every line, and returns the largest heap.
func exportGenerated(t *testing.T, format string, count int) uint64 {
	t.Helper()
	d := gatewayctltest.New(t)
	many := &generatedLedger{Ledger: d.Ledger, shop: d.Onboard("ShopA"), count: count, at: d.Now}
	d.ChangeStores(func(s *deployment.Stores) { s.Ledger, s.Batches = many, storetest.Batches{Reader: many} })
	name, begins := filepath.Join(t.TempDir(), "out"), "pay,ShopA_%d,"
	if format == "json" {
		begins = `{"kind":"pay","id":"ShopA_%d",`
	}
	line := "export ShopA --from 2026-03-01 --to 2026-03-01 --format " + format + " --output " + name
	d.ExpectExit(line, gatewayctl.ExitFailed, "does not respond")
	d.ExpectExit(line, gatewayctl.ExitDone, strconv.Itoa(count/2)+" transactions written")
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
	for _, format := range []string{"csv", "json"} {
		few, many := exportGenerated(t, format, 2000), exportGenerated(t, format, 100_000)
		t.Logf("%s: largest live heap: %d KiB of 2,000 payments, %d KiB of 100,000", format, few>>10, many>>10)
		if many > few+slack {
			t.Errorf("%s: the heap grew from %d to %d bytes", format, few, many)
		}
	}
}
