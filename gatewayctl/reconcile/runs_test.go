package reconcile_test

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/reconcile/listing"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/internal/file"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// A reconciliation leaves an audit record, as an export does, and changes nothing.
func TestReconcileIsAuditedAndReadsOnly(t *testing.T) {
	b := newBooks(t)
	b.pay(1)
	b.Ledger.InjectFaults(nil)
	writes := b.Ledger.WriteCount()
	b.run(heading+"R1,,999,XOF,paid,2026-03-01T12:00:00Z,,\n", "", gatewayctl.ExitFailed)
	b.Equal("writes to the ledger", b.Ledger.WriteCount(), writes)
	b.ExpectOutput("audit list --since today", "reconcile a statement", "sandbox", "2026-03-01: 1 difference of 1 row")
}

// The same statement twice has the same result, byte for byte, in each form; a second file of the same is refused.
func TestSameStatementSameResult(t *testing.T) {
	b := newBooks(t)
	for i := range 5 {
		b.pay(i)
	}
	rows := heading + "R1,,999,XOF,paid,2026-03-01T12:00:00Z,,\nR2,,1000,XOF,paid,2026-03-01T12:00:00Z,,\n"
	path := b.write("s.csv", rows)
	for _, form := range []string{"", "--json", "--csv"} {
		_, first, _ := b.Exec(b.line(path, form))
		_, second, _ := b.Exec(b.line(path, form))
		b.Equal("the second result of "+form, second, first)
	}
	b.ExpectExit(b.line(path, "--statement "+b.write("copy.csv", rows)), gatewayctl.ExitUsage, "are the same file")
	one, rest, _ := strings.Cut(rows[len(heading):], "\n")
	second := b.write("2.csv", heading+rest)
	_, halves, _ := b.Exec(b.line(b.write("1.csv", heading+one+"\n"), "--json --statement "+second))
	var found document
	gatewayctltest.Decode(t, halves, &found)
	b.Equal("counts of two files", found.Counts,
		map[result.Class]int{result.AmountDiffers: 1, result.Equal: 1, result.OursAlone: 3})
	b.Equal("the file", found.Differences[3].File, "1.csv")
}

// A folder that another user could have filled is refused, and so is one that a reconciliation uses. The
// files of another statement are not continued.
func TestWorkFolder(t *testing.T) {
	b := newBooks(t)
	b.pay(1)
	path := b.write("s.csv", heading+"R1,,1000,XOF,paid,2026-03-01T12:00:00Z,,\n")
	work := filepath.Join(b.folder, "work")
	line := b.line(path, "--json --work "+work)
	if err := errors.Join(os.Mkdir(work, 0o700), os.Chmod(work, 0o755)); err != nil {
		t.Fatal(err)
	}
	b.ExpectExit(line, gatewayctl.ExitUsage, "mode 0700")
	if err := errors.Join(os.Remove(work), os.Symlink(b.folder, work)); err != nil {
		t.Fatal(err)
	}
	b.ExpectExit(line, gatewayctl.ExitUsage, "mode 0700")
	if err := errors.Join(os.Remove(work), os.Mkdir(work, 0o700)); err != nil {
		t.Fatal(err)
	}
	unlock, err := file.TryLock(filepath.Join(work, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	b.ExpectExit(line, gatewayctl.ExitUsage, "another reconciliation works there")
	unlock()
	gatewayctltest.WriteFile(t, filepath.Join(work, "progress.json"),
		`{"command": "another", "started_at": "2026-03-02T00:00:00Z"}`)
	gatewayctltest.WriteFile(t, filepath.Join(work, "rows-0.0"), "damaged")
	b.ExpectExit(line, gatewayctl.ExitDone, "of another reconciliation")
}

// No text of a statement or a merchant becomes a formula in the CSV form.
func TestCSVHasNoFormula(t *testing.T) {
	b := newBooks(t)
	b.pay(1, func(e *ledger.Entry) { e.Route.UpstreamKey = "=1+1" })
	_, out, _ := b.Exec(b.line(b.write("s.csv", heading+"@SUM(1),,1000,XOF,paid,2026-03-01T12:00:00Z,,\n"), "--csv"))
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v: %q", err, out)
	}
	b.Equal("the heading", rows[0], listing.Columns[result.Row]())
	b.Equal("their reference", rows[1][slices.Index(rows[0], "their_reference")], "'@SUM(1)")
	b.Equal("our key", rows[2][slices.Index(rows[0], "our_key")], "'=1+1")
}

// A refused statement leaves no work folder, and neither does an unknown account.
func TestRefusalLeavesNothing(t *testing.T) {
	b := newBooks(t)
	path := b.write("s.csv", heading+"R1,,x,XOF,paid,2026-03-01T12:00:00Z,,\n")
	b.ExpectExit(b.line(path, ""), gatewayctl.ExitUsage, "column amount")
	b.ExpectExit(b.line(b.write("s.csv", heading), "--account a9"), gatewayctl.ExitUsage, "--account")
	if _, err := os.Stat(path + ".work"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the work folder is left: %v", err)
	}
}

// The form of Wave is fixed: what describes a generic file is refused.
func TestFixedForm(t *testing.T) {
	b := newBooks(t)
	for _, flags := range []string{
		"--mapping m.json", "--encoding utf-8", "--separator ;", "--decimal point", "--open-end",
	} {
		b.ExpectExit("reconcile --platform wave-checkout --day 2026-03-01 --statement s.json --format wave "+flags,
			gatewayctl.ExitUsage, "the form wave is fixed")
	}
}

// A statement is read twice: a folder, a pipe or a device is refused before it is read.
func TestOnlyFiles(t *testing.T) {
	b := newBooks(t)
	for _, path := range []string{b.folder, os.DevNull, "/dev/zero"} {
		b.ExpectExit(b.line(path, "--work "+filepath.Join(b.folder, "w")), gatewayctl.ExitUsage, "is not a file")
	}
}
