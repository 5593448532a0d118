package circuit_test

import (
	"testing"
	"time"

	"mobilegateway/shared/circuit"
)

// waiting is a call whose exchange has not ended.
type waiting struct {
	*process
	*circuit.Call
	endedEarly bool
}

// wait begins a call with an exchange of a transaction.
func (p *process) wait(probe circuit.Probe) *waiting {
	w := &waiting{process: p, Call: p.Begin(key, probe)}
	w.transaction()
	return w
}

// transaction begins an exchange that may be ended.
func (w *waiting) transaction() { w.ExchangeBegins(func() { w.endedEarly = true }) }

// looks runs the next timer of the process, and waits for what it started.
func (w *waiting) looks(c *clock, after time.Duration) {
	c.advance(after)
	w.timers[len(w.timers)-1]()
	w.Wait()
}

// A call that has waited for 3 seconds is ended once its process has read that the circuit is open.
func TestSlowCallOfAnOpenCircuitEnds(t *testing.T) {
	store, c := newTable(), newClock()
	w := newProcess(t, store, c, 0).wait(circuit.Probe{})
	w.looks(c, circuit.SlowAfter)
	const refresh = 11 // looks in more than 2 seconds
	for range refresh {
		w.looks(c, checkInterval)
	}
	if w.endedEarly || store.loads != 1 {
		t.Fatalf("ended early %v after %d reads; want false, 1", w.endedEarly, store.loads)
	}
	store.set(circuit.OpenedByPerson(c.now, time.Hour))
	for range refresh {
		w.looks(c, checkInterval)
	}
	if !w.endedEarly || store.loads != 2 {
		t.Errorf("ended early %v after %d reads, 2.2 s after it opened; want true, 2", w.endedEarly, store.loads)
	}
}

// A process whose write meets an open circuit needs no read, and one that knows it already needs neither.
func TestSlowCallEndsByWhatTheProcessKnows(t *testing.T) {
	store, c := newTable(), newClock()
	p := newProcess(t, store, c, 0)
	first := p.wait(circuit.Probe{})
	store.set(circuit.OpenedByPerson(c.now, time.Hour))
	first.looks(c, circuit.SlowAfter)
	first.looks(c, checkInterval)
	second := p.wait(circuit.Probe{})
	second.looks(c, circuit.SlowAfter)
	if !first.endedEarly || !second.endedEarly || store.loads != 0 {
		t.Errorf("ended early %v, %v after %d reads; want both, 0", first.endedEarly, second.endedEarly, store.loads)
	}
}

// exchangeAgain ends the exchange and begins another one now.
func (w *waiting) exchangeAgain() {
	w.ExchangeEnds(circuit.None)
	w.transaction()
}

// Some calls must not be ended while the circuit is open.
func TestCallsThatAreNotEndedEarly(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, store *table, c *clock, p *process) *waiting{
		"a probe": func(t *testing.T, store *table, c *clock, p *process) *waiting {
			store.set(circuit.OpenedByPerson(c.now, 0))
			p.look()
			return p.wait(mustTake(t, p))
		},
		"a preparation, a token exchange": func(_ *testing.T, _ *table, _ *clock, p *process) *waiting {
			w := &waiting{process: p, Call: p.Begin(key, circuit.Probe{})}
			w.ExchangeBegins(nil)
			return w
		},
		"an exchange of less than 3 seconds": func(_ *testing.T, _ *table, c *clock, p *process) *waiting {
			w := p.wait(circuit.Probe{})
			c.advance(time.Second)
			w.exchangeAgain()
			c.advance(-time.Second)
			return w
		},
		"a state that cannot be read": func(_ *testing.T, store *table, _ *clock, p *process) *waiting {
			store.err = errNoTable
			return p.wait(circuit.Probe{})
		},
		"a call that has ended": func(_ *testing.T, _ *table, _ *clock, p *process) *waiting {
			w := p.wait(circuit.Probe{})
			w.ExchangeEnds(circuit.Responded)
			w.End()
			return w
		},
	} {
		store, c := newTable(), newClock()
		w := run(t, store, c, newProcess(t, store, c, 0))
		if name != "a probe" {
			store.set(circuit.OpenedByPerson(c.now, time.Hour))
		}
		w.looks(c, circuit.SlowAfter)
		w.looks(c, checkInterval)
		if w.endedEarly {
			t.Errorf("%s was ended early", name)
		}
	}
}

// An exchange of a transaction that follows a slow token exchange is ended once it has waited for 3 seconds itself.
func TestLaterExchangeEnds(t *testing.T) {
	store, c := newTable(), newClock()
	store.set(circuit.OpenedByPerson(c.now, time.Hour))
	w := newProcess(t, store, c, 0).wait(circuit.Probe{})
	c.advance(2 * time.Second)
	w.exchangeAgain()
	w.looks(c, time.Second)
	for range 9 {
		w.looks(c, checkInterval)
	}
	if w.endedEarly {
		t.Fatal("ended after 2.8 s")
	}
	if w.looks(c, checkInterval); !w.endedEarly {
		t.Error("not ended after 3 s")
	}
}

// An account whose responses always take 4 seconds never opens by its failures, however many calls wait at once.
func TestSlowAccountStaysClosed(t *testing.T) {
	store, c := newTable(), newClock()
	const perSecond, seconds = 50, 60
	var calls [seconds][]func(circuit.Evidence)
	for second := range seconds {
		for range perSecond {
			p := newProcess(t, store, c, 0)
			calls[second] = append(calls[second], p.slowCall())
		}
		if second > 0 { // a call is slow from its 3rd to its 4th second
			for _, end := range calls[second-1] {
				end(circuit.Responded)
			}
		}
		if phase := store.phase(t, c.now); phase >= circuit.Open {
			t.Fatalf("%s after %d s", phase, second)
		}
		c.advance(time.Second)
	}
}

// The end of a slow call is written at once: a process that has no other call would not take it back.
func TestSlowCallIsTakenBackAtOnce(t *testing.T) {
	store, c := newTable(), newClock()
	p := newProcess(t, store, c, 0)
	end := p.slowCall()
	c.advance(100 * time.Millisecond)
	end(circuit.Responded)
	state, _ := circuit.Decode(store.forms[key])
	if len(state.Results) != 1 || state.Results[0].Slow != 0 || state.Results[0].Failures != 0 {
		t.Errorf("%+v, want one success", state.Results)
	}
}

// The successes of a process before its first failure are weighed against its failures.
func TestFailuresAmongManySuccesses(t *testing.T) {
	for name, successes := range map[string]int{"thousands": 3000, "as many": 10} {
		store, c := newTable(), newClock()
		p := newProcess(t, store, c, 0)
		for range successes {
			p.call(circuit.Responded)
			c.advance(10 * time.Second / time.Duration(successes))
		}
		if store.swaps > 0 {
			t.Fatalf("%s: %d writes without a failure", name, store.swaps)
		}
		for range 10 {
			p.call(circuit.Failed)
			c.advance(time.Second)
		}
		if isOpen := store.phase(t, c.now) == circuit.Open; isOpen != (successes == 10) {
			t.Errorf("%s successes before 10 failures: open %v", name, isOpen)
		}
	}
}
