package operationtest

import (
	"sync"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/pause"
	"mobilegateway/shared/telemetry"
)

// Circuits are the circuits of a fixture.
type Circuits struct {
	Store *storetest.Circuits

	fixture *Fixture
	mutex   sync.Mutex
	timers  []func()
}

// UseCircuits adds circuits to the fixture's pipeline, which are closed. Only the test runs their timers.
func (f *Fixture) UseCircuits() *Circuits {
	c := &Circuits{Store: storetest.NewCircuits(), fixture: f}
	f.Pipeline.Circuits = &circuit.Circuits{
		Writer:  circuit.Writer{Store: c.Store, Now: f.Clock.Now, Rand: &UniqueReader{}},
		MaxSlow: 400, ProbeLapse: OperatorTimeout + 5*time.Second, Await: pause.Until,
		After: func(_ time.Duration, run func()) func() {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.timers = append(c.timers, run)
			return func() {}
		},
	}
	return c
}

// Finish waits for the reads and writes of the circuits.
func (c *Circuits) Finish() {
	c.fixture.Pipeline.Circuits.Finish(telemetry.NewLogLine("test", c.fixture.Clock.Now()))
}

// FireTimers runs the timers of the calls that began so far, with a wait between them.
func (c *Circuits) FireTimers(wait time.Duration) {
	c.mutex.Lock()
	timers := c.timers
	c.timers = nil
	c.mutex.Unlock()
	for _, run := range timers {
		run()
		c.Finish()
		c.fixture.Clock.Advance(wait)
	}
}

// OpenFor opens the circuit of an operation, as a person does. 0 makes it take probes. The process reads it.
func (c *Circuits) OpenFor(t testing.TB, key circuit.Key, wait time.Duration) {
	t.Helper()
	known, err := c.Store.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	open := func(s *circuit.State, _ int64) bool {
		*s = circuit.OpenedByPerson(c.fixture.Clock.Now(), wait)
		return true
	}
	_, stored, err := c.fixture.Pipeline.Circuits.Change(t.Context(), key, known, open)
	if err != nil || !stored {
		t.Fatalf("the circuit cannot be opened: %v", err)
	}
	c.read(key)
}

// read lets the process read a circuit that it read before.
func (c *Circuits) read(key circuit.Key) {
	c.fixture.Clock.Advance(3 * time.Second)
	c.fixture.Pipeline.Circuits.Phase(key)
	c.Finish()
}

// AssertCircuitOpen checks the refusal of a new transaction by an open circuit: that of an operator that is down, with
// its reason.
func (r Response) AssertCircuitOpen(t testing.TB) {
	t.Helper()
	r.AssertError(t, 503, "SVC0001", "PDK_SMSW_0013")
	r.AssertHeader(t, "X-Error-Reason", "circuit-open")
	if r.Header["Retry-After"] == "" {
		t.Error("503 without Retry-After")
	}
}

// circuitKey is the circuit of the golden request.
func (s Suite) circuitKey() circuit.Key {
	return circuit.Key{Account: operator.Pin{Platform: s.Platform, Account: "a1"}.String(), Operation: string(s.Kind)}
}

// earlier is what happened to the key of a request before the circuit opened, and the responses afterwards.
type earlier struct {
	behaviour   Behaviour // nil for a key without an entry
	lapses      bool      // the function died in the call
	same, other int       // 503 is that of the open circuit
}

// CheckOpenCircuit checks each key while the circuit of its account is open, and while no probe is left of a half-open
// one: nothing is stored and nothing is sent. repeated is the status of a repeat of a success, and unknown that of a
// repeat whose first outcome is unknown.
func (s Suite) CheckOpenCircuit(t *testing.T, repeated, unknown int) {
	t.Helper()
	other, refusedOther, unknownOther := 409, 409, 409
	if s.Kind == ledger.Charge { // a repeat is never an error
		other, refusedOther, unknownOther = repeated, 403, 504
	}
	for name, c := range map[string]earlier{
		"a new key":       {same: 503, other: 503},
		"a success":       {behaviour: Succeed, same: repeated, other: other},
		"a final refusal": {behaviour: RefuseFinally("POL1000"), same: 403, other: refusedOther},
		"unknown":         {behaviour: LoseResponse, same: unknown, other: unknownOther},
		"lapsed":          {behaviour: PanicAfter, lapses: true, same: 504, other: unknownOther},
		"released":        {behaviour: RespondUnavailable, same: 503, other: 409},
	} {
		for phase, wait := range map[string]time.Duration{"open": time.Hour, "half open": 0} {
			t.Run("decision circuit-breaker: "+phase+", "+name, func(t *testing.T) { s.checkOpen(t, c, wait) })
		}
	}
	t.Run("decision circuit-breaker: in flight", s.checkInFlightWhileOpen)
	t.Run("decision circuit-breaker: another refusal comes first", s.checkRefusalFirst)
}

func (s Suite) checkOpen(t *testing.T, c earlier, wait time.Duration) {
	t.Helper()
	w := s.NewFixture(t)
	circuits := w.UseCircuits()
	if c.behaviour != nil {
		w.WithBehaviours(c.behaviour).Send(t, s.NewEvent(t))
	}
	if c.lapses {
		w.Clock.Advance(LeaseDuration)
	}
	circuits.OpenFor(t, s.circuitKey(), wait)
	for range 3 { // all probes, if it takes some
		w.Pipeline.Circuits.Begin(s.circuitKey(), mustTakeProbe(t, w, s.circuitKey(), wait == 0))
	}
	stored, called := len(w.Ledger.All()), len(w.Driver.Calls())
	replaced := w.Ledger.WriteCount()
	for _, request := range []struct {
		event *Event
		want  int
	}{{s.NewEvent(t), c.same}, {s.OtherEvent(t), c.other}} {
		response := w.Send(t, request.event).AssertStatus(t, request.want)
		if request.want == 503 {
			response.AssertCircuitOpen(t)
			w.AssertCounted(t, "CircuitRefusals")
		}
	}
	AssertEqual(t, "writes", w.Ledger.WriteCount(), replaced)
	AssertEqual(t, "entries", len(w.Ledger.All()), stored)
	AssertEqual(t, "operator calls", len(w.Driver.Calls()), called)
}

// mustTakeProbe takes a probe of a circuit that takes some, else the zero value.
func mustTakeProbe(t *testing.T, w *Fixture, key circuit.Key, takes bool) circuit.Probe {
	t.Helper()
	if !takes {
		return circuit.Probe{}
	}
	probe, taken := w.Pipeline.Circuits.TakeProbe(key)
	if !taken {
		t.Fatal("no probe")
	}
	return probe
}

func (s Suite) checkInFlightWhileOpen(t *testing.T) {
	w := s.NewFixture(t)
	circuits := w.UseCircuits()
	finish := s.sendBlocked(t, w, Succeed)
	circuits.OpenFor(t, s.circuitKey(), time.Hour)
	response := w.Send(t, s.NewEvent(t))
	response.AssertError(t, 409, "SVC0005", s.Key...)
	response.AssertHeader(t, "Retry-After", "1")
	finish().AssertStatus(t, 201)
}

// checkRefusalFirst sends a request whose account cannot be used: that is the refusal, as always.
func (s Suite) checkRefusalFirst(t *testing.T) {
	w := s.NewFixture(t)
	circuits := w.UseCircuits()
	circuits.OpenFor(t, s.circuitKey(), time.Hour)
	w.Driver.AccountErr = fault.New(fault.IntegrationRejected)
	response := w.Send(t, s.NewEvent(t)).AssertStatus(t, 502)
	response.AssertHeader(t, "X-Error-Reason", "")
	w.AssertNoSideEffects(t)
}

// CheckProbes sends requests while the circuit takes probes: they close it, a failure opens it again, and a key that
// needs no call takes none.
func (s Suite) CheckProbes(t *testing.T) {
	t.Helper()
	t.Run("decision circuit-breaker: a key with an entry takes no probe", func(t *testing.T) {
		w := s.NewFixture(t)
		circuits := w.UseCircuits()
		first := w.Send(t, s.NewEvent(t)).AssertStatus(t, 201)
		circuits.OpenFor(t, s.circuitKey(), 0)
		before := circuits.Store.CallCount(storetest.SwapCircuit)
		s.assertRepeat(t, w.Send(t, s.NewEvent(t)), first)
		AssertEqual(t, "writes of the circuit", circuits.Store.CallCount(storetest.SwapCircuit), before)
	})
	t.Run("decision circuit-breaker: a new key takes a probe", func(t *testing.T) {
		w := s.NewFixture(t)
		circuits := w.UseCircuits()
		circuits.OpenFor(t, s.circuitKey(), 0)
		before := circuits.Store.CallCount(storetest.SwapCircuit)
		w.Send(t, s.NewEvent(t)).AssertStatus(t, 201)
		AssertEqual(t, "writes of the circuit", circuits.Store.CallCount(storetest.SwapCircuit), before+2)
		w.AssertSingleEffect(t, s.Effect, 1)
	})
	t.Run("decision circuit-breaker: no probe without its write", func(t *testing.T) {
		w := s.NewFixture(t)
		circuits := w.UseCircuits()
		circuits.OpenFor(t, s.circuitKey(), 0)
		circuits.Store.FailNext(storetest.SwapCircuit, storetest.FailedBeforeApply)
		w.Send(t, s.NewEvent(t)).AssertCircuitOpen(t)
		w.AssertNoSideEffects(t)
	})
}
