package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/internal/repository"
)

// The limits of a program, in comparison with the minimal function.
const (
	maxSize  = 1.5 // times its size
	maxStart = 1.7 // times its time from exec to first poll
)

// TestPerformanceLimits builds the deployed programs and checks the cost of a request: exact calls, size, start. -short
// skips it, because it starts other processes.
func TestPerformanceLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the deployed programs")
	}
	root, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newFixture(t.Context(), root, delays{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	t.Run("calls", func(t *testing.T) { checkCalls(t, s) })
	t.Run("units of a payment", func(t *testing.T) { checkDelivered(t, s) })
	t.Run("sizes", func(t *testing.T) { checkSizes(t, s) })
	t.Run("starts", func(t *testing.T) { checkStarts(t, s) })
}

// checkCalls compares the calls of each kind of request with the numbers of its row. They contain no read of the
// merchant's profile, so the function caches it.
func checkCalls(t *testing.T, s *fixture) {
	for i, kind := range requests() {
		cost, err := s.measureRequest(t.Context(), kind, (i+1)*1000, 5)
		if err != nil {
			t.Errorf("%s: %v", kind.name, err)
			continue
		}
		if cost.calls != kind.calls {
			t.Errorf("%s makes the calls %+v, want %+v", kind.name, cost.calls, kind.calls)
		}
		const most = 30 // one of each account in the init phase, and one beside each request
		reads := slices.Contains([]string{"charge", "pay", "sms"}, kind.function)
		if reads != (cost.circuits > 0) || cost.circuits > most {
			t.Errorf("%s reads circuits %d times, want at most %d, and some: %v", kind.name, cost.circuits, most, reads)
		}
		if cost.units != kind.units {
			t.Errorf("%s costs the units %+v, want %+v", kind.name, cost.units, kind.units)
		}
	}
}

// checkDelivered checks the write units of a payment from request to delivered, with packed responses and without.
func checkDelivered(t *testing.T, s *fixture) {
	const packed, plain = 11, 13
	var sum units
	for _, kind := range requests() { // which checkCalls compared
		if isDelivery(kind.name) {
			sum = sum.plus(kind.units)
		}
	}
	t.Logf("PackResponses=yes: %d write units: %+v", sum.writes(), sum)
	if sum.writes() != packed {
		t.Errorf("a payment costs %+v with packed responses, want %d write units", sum, packed)
	}
	sum, err := s.deliveredPlain(t.Context(), 100_000)
	t.Logf("PackResponses=no: %d write units: %+v", sum.writes(), sum)
	if sum.writes() != plain || err != nil {
		t.Errorf("a payment costs %+v (%v) without packed responses, want %d write units", sum, err, plain)
	}
}

// checkSizes compares the programs' sizes.
func checkSizes(t *testing.T, s *fixture) {
	baselineSize, err := s.programSize(baseline)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.deployment.Functions {
		size, err := s.programSize(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if ratio := float64(size) / float64(baselineSize); ratio > maxSize {
			t.Errorf("%s has %d bytes, %.2f times hello, want at most %.1f", f.Name, size, ratio, maxSize)
		}
	}
}

// checkStarts compares the time from exec to first poll of the three operations. A busy machine may disturb a
// measurement, so a longer one follows before the test fails.
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
			t.Logf("%s: %s ms, %.2f times hello", name, millis(duration), float64(duration)/float64(baselineStart))
		}
		if float64(worst) <= maxStart*float64(baselineStart) {
			return
		}
	}
	t.Errorf("in each measurement an operation took more than %.1f times as long to start as hello", maxStart)
}

func TestMeter(t *testing.T) {
	m := &meter{calls: map[string]int{}, next: delayCalls(time.Millisecond, http.NotFoundHandler())}
	for _, request := range []struct{ method, target string }{
		{"GET", ""}, {"POST", "DynamoDB_20120810.PutItem"}, {"POST", "DynamoDB_20120810.PutItem"}, {"POST", ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), request.method, "/", nil)
		r.Header.Set("X-Amz-Target", request.target)
		m.ServeHTTP(httptest.NewRecorder(), r)
	}
	calls, waited := m.drain()
	if difference := cmp.Diff(map[string]int{"PutItem": 2, "": 1}, calls); difference != "" {
		t.Errorf("the calls differ (-want +got):\n%s", difference)
	}
	if waited < 3*time.Millisecond {
		t.Errorf("3 calls with a delay of 1 ms took %v", waited)
	}
	if calls, waited := m.drain(); len(calls) != 0 || waited != 0 {
		t.Errorf("a second drain returned the calls %v and %v", calls, waited)
	}
}

// TestUnits checks the units of responses in DynamoDB's JSON: with the capacity of each index, with that of a read, and
// of a write whose condition is false.
func TestUnits(t *testing.T) {
	text := strings.Repeat("x", 1024)
	c := &unitCounter{}
	for _, response := range []struct {
		body   string
		writes bool
	}{
		{`{"ConsumedCapacity":{"CapacityUnits":5,"Table":{"CapacityUnits":2},"GlobalSecondaryIndexes":{
			"day":{"CapacityUnits":1},"due":{"CapacityUnits":2}}}}`, true},
		{`{"ConsumedCapacity":{"CapacityUnits":0.5}}`, false},
		{`{"__type":"ConditionalCheckFailedException","Item":{"pk":{"S":"` + text + `"}}}`, true},
		{`{"__type":"ConditionalCheckFailedException"}`, true},
	} {
		c.add([]byte(response.body), response.writes)
	}
	got, err := c.drain()
	if want := (units{tables: 2 + 2 + 1, day: 1, due: 2, reads: 0.5}); got != want || err != nil {
		t.Errorf("%+v and %v, want %+v", got, err, want)
	}
	c.add([]byte("garbage"), true)
	if _, err := c.drain(); err == nil {
		t.Error("a response that is not JSON was accepted")
	}
	yes := true
	item := map[string]value{"pk": {S: "1234"}, "n": {N: "12345"}, "b": {B: []byte("123")}, "f": {BOOL: &yes}}
	if got, want := itemBytes(item), 2+4+1+4+1+3+1+1; got != want {
		t.Errorf("an item of %d bytes, want %d", got, want)
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
			t.Errorf("%s: the error is %v, want success: %v", c.name, err, c.ok)
		}
	}
}
