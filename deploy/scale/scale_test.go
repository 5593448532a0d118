package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

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

// newTableShards is the number of partitions of a new table on demand, and so of the shards of its stream: 4,000 write
// units a second, 1,000 for each partition.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html, 2026-11-27.
const newTableShards = 4

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
				t.Errorf("%d: one operator may hold %d calls, and %s has only %d", a.concurrency, a.operatorCalls(), name,
					available)
			}
		}
		if want := a.parallelism * newTableShards; a.reserved["relay"] < want {
			t.Errorf("%d: the relay has %d, want %d for the shards of a new table", a.concurrency, a.reserved["relay"], want)
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
		if a.parallelism < smaller.parallelism || len(a.sweeps) < len(smaller.sweeps) || a.operatorCalls() < smaller.operatorCalls() ||
			a.unreserved() < min(smaller.unreserved(), unreservedMinimum) {
			t.Errorf("%d has less than %d: %+v, %+v", a.concurrency, smaller.concurrency, a, smaller)
		}
		for name, reserved := range smaller.reserved {
			if a.reserved[name] < reserved {
				t.Errorf("%s has %d at %d, and %d at %d", name, a.reserved[name], a.concurrency, reserved, smaller.concurrency)
			}
		}
	}
}

// TestExplicitParametersWin checks that a parameter of its own replaces what AccountConcurrency selects.
func TestExplicitParametersWin(t *testing.T) {
	parameters := map[string]string{"AccountConcurrency": "1000", "StreamParallelism": "3", "Sweeps": "2"}
	names := map[string]string{
		"charge": "Charge", "pay": "Pay", "sms": "Sms", "status": "Status", "token": "Token", "notif": "Notif",
		"receipt": "Receipt", "relay": "Relay", "sweep": "Sweep",
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
