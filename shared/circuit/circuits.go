package circuit

import (
	"context"
	"errors"
	"sync"
	"time"

	"mobilegateway/shared/task"
	"mobilegateway/shared/telemetry"
)

const (
	// refreshAfter is the age from which a state is read again beside a request. A state older than maxAge counts as
	// closed. Both are milliseconds.
	refreshAfter = 2_000
	maxAge       = 10_000
	// writeInterval is the shortest time between two writes of results in milliseconds.
	writeInterval = 1_000
	// storeTimeout bounds a call of the store. An invocation ends after the calls that it has started.
	storeTimeout = time.Second
)

// Circuits is the view that one process has of the circuits that it uses. It reads and writes beside requests. So no
// request waits for it except at its end (Finish) and for a probe. It is safe for concurrent use. nil has no circuits:
// every one is closed.
type Circuits struct {
	Writer
	// MaxSlow is the number of calls slower than SlowAfter above which a circuit opens.
	MaxSlow int64
	// ProbeLapse is how long a probe is outstanding at most.
	ProbeLapse time.Duration
	// Start starts the goroutines that read and write. Await waits for one of them, or returns the context's error.
	Start task.Starter
	Await func(ctx context.Context, done <-chan struct{}) error
	// After calls run in another goroutine after a time, unless stop is called before.
	After func(wait time.Duration, run func()) (stop func())

	mutex          sync.Mutex
	known          map[Key]*knownCircuit
	pending        []chan struct{} // closed at the end of the goroutines
	unused         map[Probe]Key   // that were taken and not begun
	opened, closed int             // by this process, since the last Finish
	failures       int             // of the store, since the last Finish
}

// knownCircuit is one circuit as the process knows it. Its times are milliseconds since 1970.
type knownCircuit struct {
	form    string
	readAt  int64 // when the form was current; 0 for never
	reading bool
	wroteAt int64     // the last write of results
	results []Results // not yet written
}

// state returns the state, the zero value if it is too old, torn or of a newer version.
func (k *knownCircuit) state(now int64) State {
	if age := now - k.readAt; age > maxAge || age < 0 {
		return State{}
	}
	state, _ := Decode(k.form)
	return state
}

// lock locks the circuits and returns what is known of one, and the time.
func (c *Circuits) lock(key Key) (k *knownCircuit, now int64) {
	c.mutex.Lock()
	if c.known == nil {
		c.known, c.unused = map[Key]*knownCircuit{}, map[Probe]Key{}
	}
	k = c.known[key]
	if k == nil {
		k = &knownCircuit{}
		c.known[key] = k
	}
	return k, c.Now().UnixMilli()
}

// Phase returns the phase of a circuit, and how long an open one takes no probe yet. If the process last read it more
// than 2 seconds ago, it is read again meanwhile.
func (c *Circuits) Phase(key Key) (phase Phase, wait time.Duration) {
	if c == nil {
		return Closed, 0
	}
	c.refresh(key, func() {})
	k, now := c.lock(key)
	defer c.mutex.Unlock()
	state := k.state(now)
	return state.phase(now), time.Duration(max(0, state.ProbesAt-now)) * time.Millisecond
}

// refresh starts a read of a circuit that was last read more than 2 seconds ago, unless one runs. It reports whether it
// did; then runs at the end of the read.
func (c *Circuits) refresh(key Key, then func()) bool {
	k, now := c.lock(key)
	defer c.mutex.Unlock()
	if age := now - k.readAt; 0 <= age && age <= refreshAfter || k.reading {
		return false
	}
	k.reading = true
	c.start(func() {
		c.read(key)
		then()
	})
	return true
}

// isOpen reports whether a circuit refuses new transactions, as far as the process knows.
func (c *Circuits) isOpen(key Key) bool {
	k, now := c.lock(key)
	defer c.mutex.Unlock()
	state := k.state(now)
	return state.phase(now) >= Open
}

// Read reads the states of the accounts of an operation, and returns when all are read. A state that cannot be read
// stays as it was.
func (c *Circuits) Read(accounts []string, operation string) {
	for _, account := range accounts {
		c.Phase(Key{account, operation})
	}
	c.Wait()
}

// read reads one state. A newer one that the process has written meanwhile stays.
func (c *Circuits) read(key Key) {
	start := c.Now().UnixMilli()
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	form, err := c.Store.Load(ctx, key)
	cancel()
	k, _ := c.lock(key)
	k.reading = false
	if err != nil {
		c.failures++
	}
	if err == nil && k.readAt < start { // a write of the same millisecond may have come after the read
		k.keep(form, start)
	}
	c.mutex.Unlock()
}

// keep keeps the form that the store had at a time, unless a newer one is known.
func (k *knownCircuit) keep(form string, at int64) {
	if k.readAt <= at {
		k.form, k.readAt = form, at
	}
}

// start starts a goroutine that Finish waits for. The caller has locked the circuits.
func (c *Circuits) start(run func()) {
	done := make(chan struct{})
	c.pending = append(c.pending, done)
	c.Start.Start(func() {
		defer close(done)
		run()
	})
}

// Wait waits for the reads and writes that run, at most a second. It is Finish for a function without a request.
func (c *Circuits) Wait() {
	if c == nil {
		return
	}
	c.mutex.Lock()
	pending := c.pending
	c.pending = nil
	c.mutex.Unlock()
	for _, done := range pending {
		_ = c.Await(context.Background(), done) // it has no end of its own
	}
}

// Finish ends the use of the circuits in an invocation. It returns probes that no call was begun with, waits for the
// reads and writes that run, at most a second, and adds to the line what the circuits counted. Call it before the
// response.
func (c *Circuits) Finish(line *telemetry.LogLine) {
	if c == nil {
		return
	}
	c.returnProbes()
	c.Wait()
	c.mutex.Lock()
	line.Add(telemetry.OpenedCircuits, c.opened)
	line.Add(telemetry.ClosedCircuits, c.closed)
	line.Add(telemetry.LimitStoreFailures, c.failures)
	c.opened, c.closed, c.failures = 0, 0, 0
	c.mutex.Unlock()
}

// returnProbes ends the probes that no call was begun with.
func (c *Circuits) returnProbes() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for probe, key := range c.unused {
		delete(c.unused, probe)
		c.startWrite(key, &report{probe: probe.lapse})
	}
}

// endProbe writes the end of a probe at once.
func (c *Circuits) endProbe(key Key, r *report) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.startWrite(key, r)
}

// record keeps results of a call, and writes those that are due. The successes of a healthy circuit are not written:
// they are kept for the window, because a failure is weighed against them. The end of a slow call is written at once:
// it would count as one that waits until the next call of the process.
func (c *Circuits) record(key Key, results []Results) {
	k, now := c.lock(key)
	defer c.mutex.Unlock()
	k.results = merge(k.results, results, now)
	state := k.state(now)
	phase, isHealthy, isUrgent := state.phase(now), true, false
	for _, r := range k.results {
		isHealthy = isHealthy && r.Failures == 0 && r.Slow == 0
		isUrgent = isUrgent || r.Slow < 0
	}
	switch {
	case phase == Closed && isHealthy: // the successes of the window are written with the first failure
	case phase >= Open:
		k.results = nil
	case len(k.results) > 0 && (isUrgent || now-k.wroteAt >= writeInterval):
		k.wroteAt = now
		c.startWrite(key, &report{})
	}
}

// startWrite writes a report together with the results that were kept. If other processes always came first, the
// results are kept for the next write. After an error they are dropped: they may be stored, and must not be counted
// twice. The caller has locked the circuits.
func (c *Circuits) startWrite(key Key, r *report) {
	r.results = c.known[key].results
	c.known[key].results = nil
	swaps := maxSwaps
	if r.probe != 0 {
		swaps = maxEndSwaps
	}
	c.start(func() {
		stored, err := c.change(key, swaps, func(s *State, now int64) bool { return s.apply(r, now, c.MaxSlow) })
		if !stored && err == nil {
			k, now := c.lock(key)
			k.results = merge(k.results, r.results, now)
			c.mutex.Unlock()
		}
	})
}

// change changes a state, and keeps the form that the store then has.
func (c *Circuits) change(key Key, swaps int, change func(s *State, now int64) bool) (stored bool, err error) {
	k, start := c.lock(key)
	known := k.form
	c.mutex.Unlock()
	var before, after Phase
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	form, stored, err := c.Writer.change(ctx, key, known, swaps, func(s *State, now int64) bool {
		before = s.phase(now)
		changes := change(s, now)
		after = s.phase(now)
		return changes
	})
	cancel()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err != nil {
		if !errors.Is(err, ErrNewer) {
			c.failures++
		}
		return false, err
	}
	if stored || form != known { // else the store was not called
		k.keep(form, start)
	}
	switch {
	case stored && after == Open && before != Open:
		c.opened++
	case stored && after == Closed && before == HalfOpen:
		c.closed++
	}
	return stored, nil
}

// Probe is a place among the outstanding probes of a half-open circuit. The zero value is none.
type Probe struct{ lapse int64 }

// TakeProbe takes a place of a half-open circuit by a conditional write. It returns false if there is none, or if the
// write failed: then nothing may be sent. If the circuit is closed by now, it returns the zero Probe and true. Begin
// the call with the probe.
func (c *Circuits) TakeProbe(key Key) (probe Probe, mayPass bool) {
	isClosed := false
	stored, err := c.change(key, maxSwaps, func(s *State, now int64) bool {
		phase := s.phase(now)
		isClosed = phase < Open
		if phase != HalfOpen {
			return false
		}
		probe.lapse = s.takeProbe(now, c.ProbeLapse.Milliseconds())
		return probe.lapse != 0
	})
	if err != nil || !stored {
		return Probe{}, err == nil && isClosed
	}
	c.mutex.Lock()
	c.unused[probe] = key
	c.mutex.Unlock()
	return probe, true
}
