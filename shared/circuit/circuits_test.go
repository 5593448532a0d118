package circuit_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mobilegateway/shared/circuit"
	"mobilegateway/shared/pause"
	"mobilegateway/shared/telemetry"
)

var key = circuit.Key{Account: "mtn/a1", Operation: "pay"}

// checkInterval is how often a slow call looks at its circuit.
const checkInterval = 200 * time.Millisecond

var errNoTable = errors.New("the table does not respond")

// table is a store with faults. before runs before the next swap is applied, and afterRead after the next read.
type table struct {
	mutex        sync.Mutex
	forms        map[circuit.Key]string
	loads, swaps int
	err          error // of each call, which is not applied
	lost         bool  // the responses of swaps are lost after they were applied
	before       func()
	afterRead    func()
}

func (s *table) Load(_ context.Context, k circuit.Key) (string, error) {
	s.mutex.Lock()
	s.loads++
	form, err, afterRead := s.forms[k], s.err, s.afterRead
	s.afterRead = nil
	s.mutex.Unlock()
	if afterRead != nil {
		afterRead()
	}
	return form, err
}

func (s *table) Swap(_ context.Context, k circuit.Key, old, next string, expire time.Time) (string, bool, error) {
	s.mutex.Lock()
	before := s.before
	s.before = nil
	s.mutex.Unlock()
	if before != nil {
		before()
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.swaps++
	switch {
	case s.err != nil:
		return "", false, s.err
	case s.forms[k] != old:
		return s.forms[k], false, nil
	case expire.IsZero():
		return "", false, errors.New("the item never expires")
	}
	s.forms[k] = next
	if s.lost {
		return "", false, errNoTable
	}
	return next, true, nil
}

func (s *table) set(state circuit.State) { s.forms[key] = state.Encode() }

// phase is the stored phase at a time.
func (s *table) phase(t *testing.T, now time.Time) circuit.Phase {
	t.Helper()
	state, err := circuit.Decode(s.forms[key])
	if err != nil {
		t.Fatal(err)
	}
	return state.Phase(now)
}

// clock is the true time, which the processes see with their skews.
type clock struct{ now time.Time }

func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

// process is one process with its own clock.
type process struct {
	*circuit.Circuits
	t      *testing.T
	timers []func() // of After, which the test runs
}

type counter struct{ count *atomic.Uint64 }

func (c counter) Read(p []byte) (int, error) {
	clear(p)
	binary.BigEndian.PutUint64(p, c.count.Add(1)<<1)
	return len(p), nil
}

var writers atomic.Uint64

func newProcess(t *testing.T, store circuit.Store, c *clock, skew time.Duration) *process {
	p := &process{t: t}
	p.Circuits = &circuit.Circuits{
		Writer: circuit.Writer{
			Store: store, Now: func() time.Time { return c.now.Add(skew) }, Rand: counter{&writers},
		},
		MaxSlow: 400, ProbeLapse: 17 * time.Second,
		Await: pause.Until,
		After: func(wait time.Duration, run func()) func() {
			if wait != circuit.SlowAfter && wait != checkInterval {
				t.Errorf("a timer of %s", wait)
			}
			p.timers = append(p.timers, run)
			return func() {}
		},
	}
	return p
}

func newTable() *table { return &table{forms: map[circuit.Key]string{}} }

func newClock() *clock { return &clock{time.UnixMilli(1_790_000_000_000)} }

// finish ends an invocation, and returns what it counted, such as "OpenedCircuits 1".
func (p *process) finish() string {
	line := telemetry.NewLogLine("pay", p.Now())
	p.Finish(line)
	var text strings.Builder
	if err := line.Write(&text); err != nil {
		p.t.Fatal(err)
	}
	counted := ""
	for _, name := range []string{"OpenedCircuits", "ClosedCircuits", "LimitStoreFailures"} {
		if strings.Contains(text.String(), `"`+name+`":1`) {
			counted += name
		}
	}
	return counted
}

// call makes a call with one exchange, and ends its invocation.
func (p *process) call(evidence circuit.Evidence) string {
	call := p.Begin(key, circuit.Probe{})
	call.ExchangeBegins(nil)
	call.ExchangeEnds(evidence)
	call.End()
	return p.finish()
}

// slowCall makes a call that is slow, and returns its end.
func (p *process) slowCall() (end func(circuit.Evidence)) {
	call := p.Begin(key, circuit.Probe{})
	call.ExchangeBegins(nil)
	p.timers[len(p.timers)-1]()
	p.finish()
	return func(evidence circuit.Evidence) {
		call.ExchangeEnds(evidence)
		call.End()
		p.finish()
	}
}

// look returns the phase that the process knows, after the read that it may start.
func (p *process) look() circuit.Phase {
	p.Phase(key)
	p.finish()
	phase, _ := p.Phase(key)
	p.finish()
	return phase
}

// A healthy account costs one read in 2 seconds at most, and no write.
func TestHealthyAccountIsNotWritten(t *testing.T) {
	store, c := newTable(), newClock()
	p := newProcess(t, store, c, 0)
	for range 100 { // 10 seconds
		p.Phase(key)
		for _, evidence := range []circuit.Evidence{circuit.Responded, circuit.None, circuit.TimedOut} {
			p.call(evidence)
		}
		c.advance(100 * time.Millisecond)
	}
	if store.swaps != 0 || store.loads < 4 || store.loads > 5 {
		t.Errorf("%d writes, %d reads; want 0, 4 or 5", store.swaps, store.loads)
	}
}

// After the first failure all processes write their results, successes too, at most once a second.
func TestSuspectAccountIsWritten(t *testing.T) {
	store, c := newTable(), newClock()
	first, second := newProcess(t, store, c, 0), newProcess(t, store, c, 20*time.Second)
	second.look()
	first.call(circuit.Failed)
	second.call(circuit.Responded)
	if store.swaps != 1 {
		t.Errorf("%d writes, want that of the failure", store.swaps)
	}
	c.advance(2001 * time.Millisecond)
	second.look()
	for range 30 {
		second.call(circuit.Responded)
		c.advance(100 * time.Millisecond)
	}
	if store.swaps != 4 {
		t.Errorf("%d writes, want 1 and one each second", store.swaps)
	}
	state, _ := circuit.Decode(store.forms[key])
	successes := int64(0)
	for _, r := range state.Results {
		successes += r.Successes
	}
	if successes != 22 {
		t.Errorf("%d successes in %v, want 22: with that before the suspicion, without the last ones", successes,
			state.Results)
	}
	c.advance(30 * time.Second)
	second.look()
	second.call(circuit.Responded)
	if store.swaps != 4 {
		t.Errorf("%d writes, want none after the suspicion", store.swaps)
	}
}

func TestFailuresOfTwoProcessesOpen(t *testing.T) {
	store, c := newTable(), newClock()
	processes := []*process{newProcess(t, store, c, 0), newProcess(t, store, c, -20*time.Second)}
	for i := range 9 {
		processes[i%2].call(circuit.Failed)
		c.advance(time.Second)
	}
	if phase := store.phase(t, c.now); phase != circuit.Suspect {
		t.Errorf("%s after 9 failures", phase)
	}
	if counted := processes[1].call(circuit.Failed); counted != "OpenedCircuits" {
		t.Errorf("counted %q, want OpenedCircuits", counted)
	}
	for _, p := range processes {
		c.advance(2001 * time.Millisecond)
		if phase := p.look(); phase != circuit.Open {
			t.Errorf("%s, want open", phase)
		}
	}
	swaps := store.swaps
	for range 20 { // calls that began before
		processes[0].call(circuit.Failed)
		c.advance(time.Second)
	}
	if store.swaps != swaps {
		t.Error("the results of an open circuit are written")
	}
}

// A call counts while it waits. A late success takes it back, also after a wait that is longer than a state is known.
func TestSlowCalls(t *testing.T) {
	for name, c := range map[string]struct {
		wait                      time.Duration
		evidence                  circuit.Evidence
		failures, successes, slow int64
	}{
		"a late success":      {time.Second, circuit.Responded, 0, 1, 0},
		"a very late success": {12 * time.Second, circuit.Responded, 0, 1, 0},
		"our time-out":        {9 * time.Second, circuit.TimedOut, 1, 0, 0},
		"a late cut":          {9 * time.Second, circuit.Failed, 1, 0, 0},
		"a late refusal":      {9 * time.Second, circuit.None, 0, 0, 0},
	} {
		store, now := newTable(), newClock()
		p := newProcess(t, store, now, 0)
		end := p.slowCall()
		state, _ := circuit.Decode(store.forms[key])
		if len(state.Results) != 1 || state.Results[0].Failures != 1 || state.Results[0].Slow != 1 {
			t.Errorf("%s: %v while it waits, want one failure", name, state.Results)
		}
		now.advance(c.wait)
		end(c.evidence)
		state, _ = circuit.Decode(store.forms[key])
		var sum circuit.Results
		for _, r := range state.Results {
			sum.Failures, sum.Successes, sum.Slow = sum.Failures+r.Failures, sum.Successes+r.Successes, sum.Slow+r.Slow
		}
		if want := (circuit.Results{Failures: c.failures, Successes: c.successes, Slow: c.slow}); sum != want {
			t.Errorf("%s: %+v, want %+v", name, sum, want)
		}
	}
}

// The last exchange decides. A timer that runs after the end counts nothing.
func TestCallsOfSeveralExchanges(t *testing.T) {
	store, c := newTable(), newClock()
	p := newProcess(t, store, c, 0)
	call := p.Begin(key, circuit.Probe{})
	for _, evidence := range []circuit.Evidence{circuit.Failed, circuit.Responded} {
		call.ExchangeBegins(nil)
		call.ExchangeEnds(evidence)
	}
	call.End()
	p.timers[0]()
	p.Begin(key, circuit.Probe{}).End() // nothing was sent
	p.finish()
	if len(p.timers) != 1 || store.swaps != 0 {
		t.Errorf("%d timers, %d writes; want 1, 0", len(p.timers), store.swaps)
	}
}

// The state is closed if it cannot be read or trusted, and nothing waits for it.
func TestUntrustedStatesAreClosed(t *testing.T) {
	for name, form := range map[string]string{
		"none": "", "torn": "1 0 0 17900", "of a newer version": "2 open", "no form": "open",
	} {
		store, c := newTable(), newClock()
		store.forms[key] = form
		p := newProcess(t, store, c, 0)
		if phase := p.look(); phase != circuit.Closed {
			t.Errorf("%s: %s", name, phase)
		}
		for range 10 {
			p.call(circuit.Failed)
			c.advance(time.Second)
		}
		kept := store.forms[key] == form
		if isNewer := strings.HasPrefix(form, "2"); kept != isNewer {
			t.Errorf("%s: kept %v", name, kept)
		}
	}
}

func TestOldStateIsClosed(t *testing.T) {
	store, c := newTable(), newClock()
	store.set(circuit.OpenedByPerson(c.now, time.Hour))
	p := newProcess(t, store, c, 0)
	if phase := p.look(); phase != circuit.Open {
		t.Fatalf("%s, want open", phase)
	}
	store.err = errNoTable
	for _, step := range []struct {
		after time.Duration
		want  circuit.Phase
	}{{10 * time.Second, circuit.Open}, {time.Millisecond, circuit.Closed}} {
		c.advance(step.after)
		if phase := p.look(); phase != step.want {
			t.Errorf("%s, want %s", phase, step.want)
		}
	}
	c.advance(-time.Hour) // a clock that was corrected
	if phase := p.look(); phase != circuit.Closed {
		t.Errorf("%s, want closed: it was read in the future", phase)
	}
}
