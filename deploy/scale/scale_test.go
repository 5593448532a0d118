package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/deploy/bill"
	"mobilegateway/world/template"
)

const root = "../.."

// TestPageIsCurrent checks that the page has the tables of today's code and template.
func TestPageIsCurrent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(pagePath)))
	if err != nil {
		t.Fatal(err)
	}
	now, err := fillPage(root, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if now != string(text) {
		t.Errorf("%s is out of date: run go run ./deploy/scale", pagePath)
	}
}

// TestFillSection checks that a page without the marks is an error.
func TestFillSection(t *testing.T) {
	if _, err := fillSection("<!-- a: begin -->", "a", "x"); err == nil {
		t.Error("a section without an end was accepted")
	}
}

func mustLoadAccounts(t *testing.T) []account {
	t.Helper()
	all, err := loadAccounts(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSmallAccounts checks that an account of 100 or less reserves nothing: AWS would refuse the deployment.
func TestSmallAccounts(t *testing.T) {
	checked := 0
	for _, a := range mustLoadAccounts(t) {
		if a.concurrency > unreservedMinimum {
			continue
		}
		checked++
		if a.unreserved() != a.concurrency || a.parallelism != 1 || len(a.sweeps) != 1 {
			t.Errorf("%d: %v is reserved, the parallelism is %d and the sweeps are %d, want nothing, 1 and 1",
				a.concurrency, a.reserved, a.parallelism, len(a.sweeps))
		}
	}
	if checked < 2 {
		t.Errorf("%d values are %d or less, want 10 and 100 at least", checked, unreservedMinimum)
	}
}

// TestLargeAccounts checks the rules of the reservations.
func TestLargeAccounts(t *testing.T) {
	for _, a := range mustLoadAccounts(t) {
		if a.concurrency <= unreservedMinimum {
			continue
		}
		if a.unreserved() < unreservedMinimum {
			t.Errorf("%d: %d are left, want at least %d", a.concurrency, a.unreserved(), unreservedMinimum)
		}
		// One slow operator leaves a part of each function that calls it.
		for name, available := range map[string]int{
			"charge": a.reserved["charge"], "pay": a.reserved["pay"], "sms and receipt": a.unreserved(),
		} {
			if a.operatorCalls() >= available {
				t.Errorf("%d: one operator may hold %d calls, and %s has only %d",
					a.concurrency, a.operatorCalls(), name, available)
			}
		}
		if want := a.parallelism * newTableShards; a.reserved["relay"] < want {
			t.Errorf("%d: the relay has %d, want %d for the shards of a new table",
				a.concurrency, a.reserved["relay"], want)
		}
		if want := 2 * len(a.sweeps); a.reserved["sweep"] < want {
			t.Errorf("%d: the sweep has %d, want %d to let late ones end", a.concurrency, a.reserved["sweep"], want)
		}
		for _, name := range []string{"status", "token", "notif"} {
			if a.reserved[name] == 0 {
				t.Errorf("%d: %s has nothing of its own, so others starve it", a.concurrency, name)
			}
		}
	}
}

// TestSweepsDivideTheShards checks that the sweeps of a minute are the parts of one whole.
func TestSweepsDivideTheShards(t *testing.T) {
	for _, a := range mustLoadAccounts(t) {
		for i, event := range a.sweeps {
			if want := fmt.Sprintf(`{"part":%d,"of":%d}`, i, len(a.sweeps)); event != want {
				t.Errorf("%d: the sweep %d has the event %s, want %s", a.concurrency, i+1, event, want)
			}
		}
	}
}

// TestMoreIsNeverLess checks that a larger account has at least what a smaller one has.
func TestMoreIsNeverLess(t *testing.T) {
	all := mustLoadAccounts(t)
	for i, a := range all[1:] {
		smaller := all[i]
		if a.parallelism < smaller.parallelism || len(a.sweeps) < len(smaller.sweeps) ||
			a.operatorCalls() < smaller.operatorCalls() ||
			a.unreserved() < min(smaller.unreserved(), unreservedMinimum) {
			t.Errorf("%d has less than %d: %+v, %+v", a.concurrency, smaller.concurrency, a, smaller)
		}
		for name, reserved := range smaller.reserved {
			if a.reserved[name] < reserved {
				t.Errorf("%s has %d at %d, and %d at %d",
					name, a.reserved[name], a.concurrency, reserved, smaller.concurrency)
			}
		}
	}
}

// TestExplicitParametersWin checks that a parameter of its own replaces what AccountConcurrency selects.
func TestExplicitParametersWin(t *testing.T) {
	parameters := map[string]string{"AccountConcurrency": "1000", "StreamParallelism": "3", "Sweeps": "2"}
	names := map[string]string{
		"charge": "Charge", "pay": "Pay", "sms": "Sms", "status": "Status", "token": "Token", "notif": "Notif",
		"receipt": "Receipt", "relay": "Relay", "sweep": "Sweep", "report": "Report", "resend": "Resend",
	}
	for _, name := range names {
		parameters[name+"Concurrency"] = "7"
	}
	deployed, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{Parameters: parameters})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range deployed.Functions {
		if f.ReservedConcurrency != 7 || names[f.Name] == "" {
			t.Errorf("%s has %d, want the 7 of its own parameter", f.Name, f.ReservedConcurrency)
		}
		if f.Name == "sweep" && len(f.Schedules) != 2 {
			t.Errorf("%d sweeps, want the 2 of the parameter", len(f.Schedules))
		}
		for _, stream := range f.Streams {
			if stream.ParallelizationFactor != 3 {
				t.Errorf("the parallelism is %d, want 3", stream.ParallelizationFactor)
			}
		}
	}
}

// mustNewModel returns the model of the page.
func mustNewModel(t *testing.T) (model, []bill.Operation) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(pagePath)))
	if err != nil {
		t.Fatal(err)
	}
	capacity, err := parseCapacity(string(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(root, capacity)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := bill.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return m, operations
}

// TestUse compares a hundred charges a second to a manual sum.
func TestUse(t *testing.T) {
	m, operations := mustNewModel(t)
	u := m.use(bill.Find(operations, bill.Charge), traffic{rate: 100, largest: 0.8, operatorMS: 1000})
	got := fmt.Sprintf("%.1f %.0f %.0f %.1f %.0f %.2f %.0f", u.total, u.requests, u.tableUnits, u.dueUnits, u.dayUnits,
		u.secrets, u.traces)
	// 10 ms of its own, 15 of three writes, a second of the operator; two secrets every 30 seconds.
	if want := "102.5 100 300 12.5 80 6.83 5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	paid := m.use(bill.Find(operations, bill.Payment), traffic{rate: 100, largest: 0.8, operatorMS: 1000})
	if paid.records != 100 || paid.requests != 200 || paid.concurrency["relay"] > maxParallelism*newTableShards {
		t.Errorf("%+v, want 100 records, 200 requests and at most 40 batches", paid)
	}
}

// TestLimits checks the order of the limits, and that each has a part and a remedy.
func TestLimits(t *testing.T) {
	m, operations := mustNewModel(t)
	accounts := mustLoadAccounts(t)
	for _, name := range modelled {
		all := m.limits(bill.Find(operations, name), accounts[0], traffic{1, largestMerchant, bill.OperatorMS})
		if len(all) < 8 {
			t.Errorf("%s has %d limits, want at least 8", name, len(all))
		}
		for i, l := range all {
			if l.part == "" || l.lift == "" || l.rate <= 0 || i > 0 && l.rate < all[i-1].rate {
				t.Errorf("%s: %+v", name, l)
			}
		}
		if !strings.Contains(all[0].part, "waiting calls") {
			t.Errorf("%s: %s is full first in the smallest account, want the waiting calls", name, all[0].part)
		}
	}
}

// TestParseCapacity checks that the columns are found by their heads, in a table of `make capacity` too.
func TestParseCapacity(t *testing.T) {
	page := "<!-- capacity: begin -->\n\nMeasured.\n\n| Work | Memory, MB | Entries | CPU, ms | dials |\n" +
		"|---|---:|---:|---:|---:|\n| delivery | 1769 | 500 | 1.06 | 4.45 |\n<!-- capacity: end -->"
	rows, err := parseCapacity(page)
	if want := (capacityRow{cpuMS: 1.06, memoryMB: 1769}); err != nil || rows["delivery"] != want || len(rows) != 1 {
		t.Errorf("%+v and %v, want %+v", rows, err, want)
	}
	if _, err := parseCapacity("<!-- capacity: begin -->"); err == nil {
		t.Error("a page without an end of the section was accepted")
	}
	if _, err := newModel(root, nil); err == nil {
		t.Error("a page without a row of the sweep was accepted")
	}
}

// TestConstants compares the constants of the model with the code and the template.
func TestConstants(t *testing.T) {
	deployed, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	timeout, err := time.ParseDuration(deployed.Function("charge").Environment["OPERATOR_TIMEOUT"])
	if err != nil || timeout.Milliseconds() != hangMS {
		t.Errorf("OPERATOR_TIMEOUT is %s, and a hang of the model takes %d ms", timeout, hangMS)
	}
	code, err := os.ReadFile(filepath.Join(root, "functions", "sweep", "sweep.go"))
	if err != nil {
		t.Fatal(err)
	}
	if line := fmt.Sprintf("startMargin = %d * time.Second", sweepMargin); !strings.Contains(string(code), line) {
		t.Errorf("functions/sweep has no %s", line)
	}
}

// TestThousands checks the form of numbers.
func TestThousands(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999.4: "999", 999.6: "1,000", 1999.7: "2,000", 120250: "120,250"} {
		if got := thousands(n); got != want {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
}
