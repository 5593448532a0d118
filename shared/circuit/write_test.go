package circuit_test

import (
	"testing"
	"time"

	"mobilegateway/shared/circuit"
)

// Results that may be stored are not sent again, and those that certainly are not are kept.
func TestWritesThatFail(t *testing.T) {
	count := func(store *table) (failures int64) {
		state, _ := circuit.Decode(store.forms[key])
		for _, r := range state.Results {
			failures += r.Failures
		}
		return failures
	}
	for name, c := range map[string]struct {
		fault func(*table)
		want  int64 // failures after a second call that fails
	}{
		"the response is lost": {func(s *table) { s.lost = true }, 2},
		"not applied":          {func(s *table) { s.err = errNoTable }, 1},
	} {
		store, now := newTable(), newClock()
		p := newProcess(t, store, now, 0)
		c.fault(store)
		p.call(circuit.Failed)
		store.lost, store.err = false, nil
		now.advance(time.Second)
		p.call(circuit.Failed)
		if got := count(store); got != c.want {
			t.Errorf("%s: %d failures, want %d", name, got, c.want)
		}
	}
	store, now := newTable(), newClock()
	p, other := newProcess(t, store, now, 0), newProcess(t, store, now, 0)
	store.before = func() { other.call(circuit.Failed) }
	p.call(circuit.Failed)
	if got := count(store); got != 2 {
		t.Errorf("another process came first: %d failures, want 2", got)
	}
}

// halfOpen returns the processes of a circuit that takes probes.
func halfOpen(t *testing.T, store *table, c *clock, skews ...time.Duration) []*process {
	t.Helper()
	store.set(circuit.OpenedByPerson(c.now, 0))
	var all []*process
	for _, skew := range skews {
		p := newProcess(t, store, c, skew)
		if phase := p.look(); phase != circuit.HalfOpen {
			t.Fatalf("%s, want half-open", phase)
		}
		all = append(all, p)
	}
	return all
}

// end ends a probe.
func (p *process) end(probe circuit.Probe, evidence circuit.Evidence) string {
	call := p.Begin(key, probe)
	call.ExchangeBegins(nil)
	call.ExchangeEnds(evidence)
	call.End()
	return p.finish()
}

func mustTake(t *testing.T, p *process) circuit.Probe {
	t.Helper()
	probe, taken := p.TakeProbe(key)
	if !taken || probe == (circuit.Probe{}) {
		t.Fatalf("probe %v, taken %v; want one", probe, taken)
	}
	return probe
}
