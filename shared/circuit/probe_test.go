package circuit_test

import (
	"errors"
	"testing"
	"time"

	"mobilegateway/shared/circuit"
)

// Three probes are outstanding over all processes, also if one of them dies. Their successes close the circuit.
func TestProbesClose(t *testing.T) {
	store, c := newTable(), newClock()
	all := halfOpen(t, store, c, 0, 0, 0, 0, 0, 0, 0)
	dead, alive, last := all[:3], all[3:6], all[6]
	for _, p := range dead {
		mustTake(t, p)
	}
	if _, taken := alive[0].TakeProbe(key); taken {
		t.Fatal("a fourth probe")
	}
	c.advance(17*time.Second + 2*time.Millisecond)
	var probes []circuit.Probe
	for _, p := range alive {
		probes = append(probes, mustTake(t, p))
	}
	if _, taken := alive[0].TakeProbe(key); taken {
		t.Fatal("a fourth probe")
	}
	for i, probe := range probes {
		want := ""
		if i == 2 {
			want = "ClosedCircuits"
		}
		if counted := alive[i].end(probe, circuit.Responded); counted != want {
			t.Errorf("probe %d counted %q, want %q", i, counted, want)
		}
	}
	if phase := store.phase(t, c.now); phase != circuit.Closed {
		t.Errorf("%s, want closed", phase)
	}
	if probe, taken := last.TakeProbe(key); !taken || probe != (circuit.Probe{}) {
		t.Error("another process closed the circuit: a request passes without a probe")
	}
}

func TestFailedProbeOpensAgain(t *testing.T) {
	store, c := newTable(), newClock()
	all := halfOpen(t, store, c, 0, 20*time.Second)
	one, other := mustTake(t, all[0]), mustTake(t, all[1])
	if counted := all[0].end(one, circuit.Failed); counted != "OpenedCircuits" {
		t.Errorf("counted %q, want OpenedCircuits", counted)
	}
	if _, taken := all[1].TakeProbe(key); taken {
		t.Error("a probe of a circuit that another process opened again")
	}
	all[1].end(other, circuit.Responded)
	if phase := store.phase(t, c.now); phase != circuit.Open {
		t.Errorf("%s, want open: the other probe belonged to the time before", phase)
	}
}

// A read that comes back after a probe was taken in the same millisecond does not hide the probe.
func TestProbeDuringARead(t *testing.T) {
	store, c := newTable(), newClock()
	p := halfOpen(t, store, c, 0)[0]
	c.advance(2001 * time.Millisecond)
	var probe circuit.Probe
	store.afterRead = func() { probe = mustTake(t, p) }
	p.Read([]string{key.Account}, key.Operation)
	p.end(probe, circuit.Responded)
	if state, _ := circuit.Decode(store.forms[key]); state.Successes != 1 || len(state.Probes) != 0 {
		t.Errorf("%d successes and %d outstanding probes, want 1 and 0", state.Successes, len(state.Probes))
	}
}

// A process that finds no room in the form that it knows still reads the circuit again after 2 seconds.
func TestFullProbesAreReadAgain(t *testing.T) {
	store, c := newTable(), newClock()
	all := halfOpen(t, store, c, 0, 0, 0, 0)
	probes := []circuit.Probe{mustTake(t, all[0]), mustTake(t, all[1]), mustTake(t, all[2])}
	p := all[3]
	c.advance(2001 * time.Millisecond)
	p.look()
	for i, probe := range probes {
		all[i].end(probe, circuit.Responded)
	}
	for range 4 {
		c.advance(time.Second)
		p.Phase(key)
		p.finish()
		p.TakeProbe(key)
	}
	if phase, _ := p.Phase(key); phase != circuit.Closed {
		t.Errorf("%s 4 seconds after the circuit closed, want closed", phase)
	}
}

// A probe may be slow, as the account always was. Only its end decides.
func TestSlowProbe(t *testing.T) {
	store, c := newTable(), newClock()
	p := halfOpen(t, store, c, 0)[0]
	for i, evidence := range []circuit.Evidence{circuit.Responded, circuit.TimedOut} {
		call := p.Begin(key, mustTake(t, p))
		call.ExchangeBegins(nil)
		p.timers[i]()
		p.finish()
		if phase := store.phase(t, c.now); phase != circuit.HalfOpen {
			t.Errorf("%s while the probe waits", phase)
		}
		call.ExchangeEnds(evidence)
		call.End()
		p.finish()
	}
	if phase := store.phase(t, c.now); phase != circuit.Open {
		t.Errorf("%s after a probe without a response", phase)
	}
}

// Without the table no probe is taken. After a lost response its place lapses by itself.
func TestProbeThatCannotBeStored(t *testing.T) {
	for name, fault := range map[string]func(*table){
		"not applied":          func(s *table) { s.err = errNoTable },
		"the response is lost": func(s *table) { s.lost = true },
	} {
		store, c := newTable(), newClock()
		p := halfOpen(t, store, c, 0)[0]
		fault(store)
		if probe, taken := p.TakeProbe(key); taken || probe != (circuit.Probe{}) {
			t.Errorf("%s: a probe was taken", name)
		}
		store.lost, store.err = false, nil
		c.advance(17 * time.Second)
		for range 3 {
			mustTake(t, p)
		}
	}
}

// The end of a probe is stored also if many other processes come first.
func TestProbeEndsBehindOthers(t *testing.T) {
	store, c := newTable(), newClock()
	all := halfOpen(t, store, c, 0, 0)
	p, other := all[0], all[1]
	probe := mustTake(t, p)
	left := 5
	var comesFirst func()
	comesFirst = func() {
		mustTake(t, other) // it changes the state
		other.finish()     // and is returned
		if left--; left > 0 {
			store.before = comesFirst
		}
	}
	store.before = comesFirst
	p.end(probe, circuit.Responded)
	if state, _ := circuit.Decode(store.forms[key]); state.Successes != 1 || len(state.Probes) != 0 {
		t.Errorf("%d successes and %d outstanding probes, want 1 and 0", state.Successes, len(state.Probes))
	}
}

// A request that is refused after it took a probe returns the probe at its end.
func TestProbeWithoutCall(t *testing.T) {
	store, c := newTable(), newClock()
	p := halfOpen(t, store, c, 0)[0]
	for range 4 {
		mustTake(t, p)
		p.finish()
	}
	if phase := store.phase(t, c.now); phase != circuit.HalfOpen {
		t.Errorf("%s, want half-open", phase)
	}
}

func TestRead(t *testing.T) {
	store, c := newTable(), newClock()
	store.set(circuit.OpenedByPerson(c.now, time.Minute))
	p := newProcess(t, store, c, 0)
	p.Read([]string{"mtn/a1", "mtn/a2"}, "pay")
	if phase, wait := p.Phase(key); phase != circuit.Open || wait != time.Minute || store.loads != 2 {
		t.Errorf("%s for %s after %d reads", phase, wait, store.loads)
	}
}

// A function without circuits refuses nothing.
func TestNoCircuits(t *testing.T) {
	var none *circuit.Circuits
	none.Read([]string{"mtn/a1"}, "pay")
	none.Begin(key, circuit.Probe{}).End()
	none.Finish(nil)
	if phase, _ := none.Phase(key); phase != circuit.Closed {
		t.Errorf("%s, want closed", phase)
	}
}

// People open and close a circuit by Change.
func TestChangeByPerson(t *testing.T) {
	store, c := newTable(), newClock()
	p := newProcess(t, store, c, 0)
	open := func(s *circuit.State, now int64) bool {
		*s = circuit.OpenedByPerson(time.UnixMilli(now), time.Hour)
		return true
	}
	closed := func(s *circuit.State, _ int64) bool {
		*s = circuit.State{}
		return true
	}
	for _, step := range []struct {
		change func(*circuit.State, int64) bool
		want   circuit.Phase
	}{{open, circuit.Open}, {closed, circuit.Closed}} {
		form, stored, err := p.Change(t.Context(), key, "", step.change)
		if err != nil || !stored || form != store.forms[key] || store.phase(t, c.now) != step.want {
			t.Errorf("%q, stored %v, %v; want %s", form, stored, err, step.want)
		}
	}
	store.forms[key] = "2 newer"
	if _, stored, err := p.Change(t.Context(), key, "", open); stored || !errors.Is(err, circuit.ErrNewer) {
		t.Errorf("stored %v, %v; want ErrNewer", stored, err)
	}
}
