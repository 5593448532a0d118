package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The limits that every change keeps, in comparison with the bare function.
const (
	maxSize  = 1.5 // times its size
	maxStart = 1.7 // times its time from exec to first poll
)

// TestPerformanceLimits builds the deployed programs and holds what a request may cost: exact calls, size, start. It is left out of
// -short: its subject are other processes.
func TestPerformanceLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the deployed programs")
	}
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newFixture(t.Context(), root, delays{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	t.Run("calls", func(t *testing.T) { checkCalls(t, s) })
	t.Run("sizes", func(t *testing.T) { checkSizes(t, s) })
	t.Run("starts", func(t *testing.T) { checkStarts(t, s) })
}

// checkCalls compares the calls of each kind of request with the numbers of its row. That the profile is not among
// them shows that the token's look-up is cached.
func checkCalls(t *testing.T, s *fixture) {
	for i, kind := range requests() {
		cost, err := s.measureRequest(t.Context(), kind, (i+1)*1000, 5)
		if err != nil {
			t.Errorf("%s: %v", kind.name, err)
			continue
		}
		if want := (callCounts{writes: kind.writes, reads: kind.reads, operator: kind.operator}); cost.calls != want {
			t.Errorf("%s calls %+v, want %+v", kind.name, cost.calls, want)
		}
	}
}

// checkSizes compares the programs' sizes.
func checkSizes(t *testing.T, s *fixture) {
	baselineStart, err := s.programSize(baseline)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.functions {
		size, err := s.programSize(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if ratio := float64(size) / float64(baselineStart); ratio > maxSize {
			t.Errorf("%s has %d bytes, %.2f times the bare function's, more than %.1f", f.Name, size, ratio, maxSize)
		}
	}
}

// checkStarts compares the time from exec to first poll of the three operations. A busy machine may spoil a
// measurement, so longer ones decide.
func checkStarts(t *testing.T, s *fixture) {
	names := []string{baseline, "charge", "pay", "sms"}
	for _, starts := range []int{15, 45, 75} {
		polls, err := s.measureStarts(t.Context(), names, starts, false)
		if err != nil {
			t.Fatal(err)
		}
		baselineStart, worst := median(polls[baseline]), time.Duration(0)
		for _, name := range names[1:] {
			duration := median(polls[name])
			worst = max(worst, duration)
			t.Logf("%s: %s ms, %.2f times the bare function's", name, millis(duration), float64(duration)/float64(baselineStart))
		}
		if float64(worst) <= maxStart*float64(baselineStart) {
			return
		}
	}
	t.Errorf("an operation takes more than %.1f times as long to start as the bare function, each time it was measured", maxStart)
}

func TestConditions(t *testing.T) {
	text := func(kind, value string) map[string]json.RawMessage {
		return map[string]json.RawMessage{kind: json.RawMessage(`"` + value + `"`)}
	}
	old := item{"pk": text("S", "a"), "version": text("N", "2"), "expire_at": text("N", "100")}
	cases := []struct {
		name, condition string
		values          item
		old             item
		met             bool
	}{
		{"none", "", nil, old, true},
		{"absent", "attribute_not_exists(pk)", nil, nil, true},
		{"there", "attribute_not_exists(pk)", nil, old, false},
		{"expired", "attribute_not_exists(pk) OR expire_at <= :now", item{":now": text("N", "1000")}, old, true},
		{"not expired", "attribute_not_exists(pk) OR expire_at <= :now", item{":now": text("N", "99")}, old, false},
		{"version as read", "#v = :v", item{":v": text("N", "2")}, old, true},
		{"another version", "#v = :v", item{":v": text("N", "1")}, old, false},
		{"no item to compare", "#v = :v", item{":v": text("N", "1")}, nil, false},
	}
	for _, c := range cases {
		in := tableRequest{ConditionExpression: c.condition, ExpressionAttributeNames: map[string]string{"#v": "version"}, ExpressionAttributeValues: c.values}
		if holds, err := in.conditionHolds(c.old); err != nil || holds != c.met {
			t.Errorf("%s: %v, %v", c.name, holds, err)
		}
	}
	if _, err := (tableRequest{ConditionExpression: "size(pk) > :n AND other"}).conditionHolds(old); err == nil {
		t.Error("a condition that is not understood gave no error")
	}
}

func TestGrowthCheck(t *testing.T) {
	const ms = time.Millisecond
	cases := []struct {
		name        string
		first, last round
		ok          bool
	}{
		{"as fast as before", round{100, 5 * ms}, round{98, 5 * ms}, true},
		{"slower by its own work", round{100, 5 * ms}, round{70, 7 * ms}, false},
		{"slower by other programs", round{100, 5 * ms}, round{70, 5 * ms}, true},
	}
	for _, c := range cases {
		g := growth{charges: 1000, rounds: []round{c.first, c.last}}
		if err := g.check(); (err == nil) != c.ok {
			t.Errorf("%s: error = %v", c.name, err)
		}
	}
}

func TestReplaceBetween(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("head\n" + tableMarks.begin + "old\n" + tableMarks.end + "tail\n")
	for range 2 { // writing twice changes nothing more
		if err := replaceBetween(path, tableMarks, "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if want := "head\n" + tableMarks.begin + "\nnew\n\n" + tableMarks.end + "tail\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	write("no markers")
	if err := replaceBetween(path, tableMarks, "new"); err == nil || !strings.Contains(err.Error(), "markers") {
		t.Errorf("no markers gave %v", err)
	}
}
