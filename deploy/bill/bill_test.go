package bill

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"mobilegateway/world/template"
)

const root = "../.."

// TestOperationPrice compares a charge with three writes and one operator call to a manual sum.
func TestOperationPrice(t *testing.T) {
	run := Run{Writes: 3, Operator: 1, TableUnits: 3, DayUnits: 1, DueUnits: 2, ReadUnits: 1, ViaAPI: true}
	p := Operation{"charge", []Run{run}}.Price(OperatorMS)
	want := Price{
		API:      3.50,
		Lambda:   0.20 + 0.01333334*0.25*(10+15+500),
		Database: 0.625*6 + 0.125,
		Logs:     0.5 * (2 + 0.4),
		Rest:     3*0.01*3 + 0.09*1.5*2,
	}
	if math.Abs(p.Total()-want.Total()) > 1e-9 || math.Abs(p.Database-want.Database) > 1e-9 {
		t.Errorf("%+v, want %+v", p, want)
	}
}

// TestLimitPrice compares the additional cost of a limit to a manual sum: no request, no invocation and no log line.
func TestLimitPrice(t *testing.T) {
	p := Operation{"an amount limit", []Run{{Writes: 1, TableUnits: 4, IsPart: true}}}.Price(OperatorMS)
	want := Price{Lambda: 0.01333334 * 0.25 * 5, Database: 0.625 * 4, Rest: 3 * 0.01}
	if math.Abs(p.Total()-want.Total()) > 1e-9 || p.API != 0 || p.Logs != 0 || p.Database != want.Database {
		t.Errorf("%+v, want %+v", p, want)
	}
}

// TestParse checks the operations of the page, and that a missing table or row is an error.
func TestParse(t *testing.T) {
	for page, want := range map[string]string{
		"| charge, first | 3 | 0 | 0 | 1 | 41.25 |\n":                                         "table of units",
		"| charge, first | 3 | 0 | 0 | 1 | 41.25 |\n" + unitsHead + "\n":                      `"charge, first"`,
		unitsHead + "\n| charge, first | 6 | 3 | 1 | 2 | 0.0 |\n":                             `"charge, first"`,
		"| charge, first | 0 | 0 | 0 | 1 | 4 |\n" + unitsHead + "\n| charge, first | 6 | 3 |": `"charge, first"`,
	} {
		if _, err := Parse(page); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error about %s", page, err, want)
		}
	}
	all, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	units := func(name string) (sum float64) {
		for _, r := range Find(all, name).Runs {
			sum += r.WriteUnits()
		}
		return sum
	}
	if units(Charge) != 6 || units(Payment) != 11 || units("a repeat") != 1 {
		t.Errorf("write units %v, %v and %v, want 6, 11 and 1", units(Charge), units(Payment), units("a repeat"))
	}
}

// TestMemory checks that the functions of the operations have the memory of the price.
func TestMemory(t *testing.T) {
	deployed, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range deployed.Functions {
		if got := float64(f.MemoryMB) / 1024; f.Name != "sweep" && got != MemoryGB {
			t.Errorf("%s has %v GB, want %v", f.Name, got, MemoryGB)
		}
	}
}
