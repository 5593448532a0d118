package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPageIsCurrent checks that the page has the table of today's counts and prices.
func TestPageIsCurrent(t *testing.T) {
	text := read(t, pagePath)
	now, err := fillTable(text, read(t, countsPath))
	if err != nil {
		t.Fatal(err)
	}
	if now != text {
		t.Errorf("%s is out of date: run go run ./deploy/cost", pagePath)
	}
}

// TestOperationPrice compares a charge with three writes and one operator call to a manual sum.
func TestOperationPrice(t *testing.T) {
	run := functionRun{callCounts: callCounts{writes: 3, operator: 1}, viaAPI: true}
	c := operation{"charge", []functionRun{run}, 2, 3}.price()
	want := costParts{
		api:      3.50,
		lambda:   0.20 + 0.01333334*0.25*(10+15+500),
		database: 0.625 * (3*2 + 3),
		logs:     0.5 * (2 + 0.4),
		rest:     3*0.01*3 + 0.09*1.5*2,
	}
	if math.Abs(c.total()-want.total()) > 1e-9 || math.Abs(c.database-want.database) > 1e-9 {
		t.Errorf("%+v, want %+v", c, want)
	}
}

// TestLimitPrice compares the additional cost of a limit to a manual sum: no request, no invocation and no log line.
func TestLimitPrice(t *testing.T) {
	run := functionRun{callCounts: callCounts{writes: 1}, isPart: true}
	c := operation{"an amount limit", []functionRun{run}, 4, 0}.price()
	want := costParts{lambda: 0.01333334 * 0.25 * 5, database: 0.625 * 4, rest: 3 * 0.01}
	if math.Abs(c.total()-want.total()) > 1e-9 || c.api != 0 || c.logs != 0 || c.database != want.database {
		t.Errorf("%+v, want %+v", c, want)
	}
}

// TestParseCounts checks that a missing row is an error.
func TestParseCounts(t *testing.T) {
	if _, err := parseCounts("| charge, first | 3 | 0 | 0 | 1 | 41.25 |\n"); err == nil ||
		!strings.Contains(err.Error(), "pay (ussd), first") {
		t.Errorf("a table without payments: %v", err)
	}
	known, err := parseCounts(read(t, countsPath))
	if err != nil {
		t.Fatal(err)
	}
	if known["charge, first"].operator != 1 || known["pay (ussd), repeated"].operator != 0 {
		t.Errorf("%+v", known)
	}
}
