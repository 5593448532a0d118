package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/bench/usage"
	"mobilegateway/world/lambda"
)

// relayTime bounds the batches of one measurement of the relay.
const relayTime = 40 * time.Second

// result has the measurements of one kind of work. All but the memory are of all its entries.
type result struct {
	work
	memoryMB  int           // of the function
	done      int           // entries
	cpu       time.Duration // of the program
	engine    time.Duration // CPU time of the database, which no quota bounds
	wall      time.Duration
	throttled int // periods in which the quota was used up
	tables    counts
	outside   counts
	memory    int64 // peak of the program, bytes
}

// meter measures works one after the other.
type meter struct {
	*fixture
	entries int
	// newQuota returns the quota of a function; nil for none.
	newQuota func(memoryMB int) (*quota, error)
	progress io.Writer
}

// subject is the process of a function that is measured.
type subject struct {
	function *lambda.Function
	pid      int
	quota    *quota
	output   *errorLines
}

// start starts a process of a function with an empty invocation, and sets its quota. The caller must stop it.
func (m *meter) start(ctx context.Context, name string) (*subject, error) {
	group, err := m.newQuota(m.deployment.Function(name).MemoryMB)
	if err != nil {
		return nil, err
	}
	output := &errorLines{}
	s := &subject{function: m.newFunction(name, output), quota: group, output: output}
	err = invoke(ctx, s.function, []byte(`{"Records":[]}`))
	if err == nil {
		s.pid, err = onlyProcess(s.function)
	}
	if err == nil {
		err = group.add(s.pid)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *subject) stop() {
	s.function.Close()
	s.quota.remove()
}

// measure runs a new process of the work's function over new entries. Its start and its first, empty invocation are
// not measured.
func (m *meter) measure(ctx context.Context, w work) (result, error) {
	fmt.Fprintf(m.progress, "%s: %d entries ... ", w.name, m.entries)
	if err := m.clearLedger(ctx); err != nil {
		return result{}, err
	}
	s, err := m.start(ctx, w.function)
	if err != nil {
		return result{}, err
	}
	defer s.stop()
	r, err := m.run(ctx, w, s)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w%s", w.name, err, s.output)
	}
	fmt.Fprintf(m.progress, "%d in %.1f s, with %d periods at the quota\n", r.done, r.wall.Seconds(), r.throttled)
	return r, nil
}

func (m *meter) run(ctx context.Context, w work, s *subject) (r result, err error) {
	plan, err := m.prepare(ctx, w, s.function)
	if err != nil {
		return r, err
	}
	before := m.snapshot(s)
	if err := plan.run(); err != nil {
		return r, err
	}
	r = m.snapshot(s).since(before)
	r.work, r.memoryMB = w, m.deployment.Function(w.function).MemoryMB
	if r.done, err = plan.countDone(); err != nil {
		return r, err
	}
	r.memory, err = usage.PeakMemory(s.pid)
	return r, err
}

// plan is a measurement whose entries are stored: run does the work, and countDone then counts the entries that it was
// done on.
type plan struct {
	run       func() error
	countDone func() (int, error)
}

func (m *meter) prepare(ctx context.Context, w work, function *lambda.Function) (plan, error) {
	if w.function == "relay" {
		return m.prepareRelay(ctx, w, function)
	}
	return m.prepareSweep(ctx, w, function)
}

// snapshot is what was used and counted so far. wall is the time now.
func (m *meter) snapshot(s *subject) result {
	operator, servers := m.operator.counts(), m.servers.counts()
	return result{
		cpu: usage.CPU(s.pid), engine: usage.CPU(m.engine.PID()), wall: time.Duration(time.Now().UnixNano()),
		throttled: s.quota.throttled(), tables: m.tables.counts(), outside: operator.minus(servers.negative()),
	}
}

func (c counts) negative() counts { return counts{}.minus(c) }

func (r result) since(before result) result {
	r.cpu, r.engine, r.wall = r.cpu-before.cpu, r.engine-before.engine, r.wall-before.wall
	r.throttled -= before.throttled
	r.tables, r.outside = r.tables.minus(before.tables), r.outside.minus(before.outside)
	return r
}

// prepareSweep stores entries that are due in the shards of the template's first sweep. The sweep ends by itself.
func (m *meter) prepareSweep(ctx context.Context, w work, function *lambda.Function) (plan, error) {
	event := []byte(m.deployment.Function(w.function).Schedules[0].Input)
	var own struct{ Part, Of int }
	if err := json.Unmarshal(event, &own); err != nil {
		return plan{}, fmt.Errorf("the input of the sweep's schedule: %w", err)
	}
	now := time.Now()
	isOwn := func(shard int) bool { return shard%own.Of == own.Part }
	entries := m.newEntries(w, m.entries, now.Add(-5*time.Minute), isOwn)
	return plan{
		run: func() error { return invoke(ctx, function, event) },
		countDone: func() (int, error) {
			left, err := m.countDue(ctx, now)
			return m.entries - left, err
		},
	}, m.store(ctx, entries)
}

// prepareRelay stores entries whose notification is the relay's. Their images are sent in batches of the template's
// size, for at most relayTime.
func (m *meter) prepareRelay(ctx context.Context, w work, function *lambda.Function) (plan, error) {
	size := m.deployment.Function(w.function).Streams[0].BatchSize
	all := func(int) bool { return true }
	entries := m.newEntries(w, m.entries, time.Now().Add(time.Hour), all) // no image is old before the end
	var events [][]byte
	for batch := range slices.Chunk(entries, size) {
		event, err := streamEvent(batch)
		if err != nil {
			return plan{}, err
		}
		events = append(events, event)
	}
	sent := 0
	run := func() error {
		end := time.Now().Add(relayTime)
		for ; sent < len(events) && time.Now().Before(end); sent++ {
			if err := invoke(ctx, function, events[sent]); err != nil {
				return err
			}
		}
		return nil
	}
	return plan{run, func() (int, error) { return min(sent*size, m.entries), nil }}, m.store(ctx, entries)
}

// check returns an error if the program did something else than the work on the entries.
func (r result) check() error {
	if r.done == 0 {
		return errors.New("no entry was processed")
	}
	if calls := int64(r.done * r.outsideCalls); r.outside.calls != calls {
		return fmt.Errorf("%d calls of operators and merchants for %d entries, want %d: some failed or were postponed",
			r.outside.calls, r.done, calls)
	}
	return nil
}

// invoke sends one event to a function and returns its error.
func invoke(ctx context.Context, function *lambda.Function, event []byte) error {
	result, err := function.Invoke(ctx, lambda.Event{Payload: event})
	if err == nil && result.FunctionError {
		err = fmt.Errorf("the function failed: %s", result.Payload)
	}
	return err
}

func onlyProcess(function *lambda.Function) (int, error) {
	pids := function.PIDs()
	if len(pids) != 1 {
		return 0, fmt.Errorf("%d processes, want one", len(pids))
	}
	return pids[0], nil
}

// errorLines keeps the first log lines with a cause, for the error of a measurement.
type errorLines struct {
	mutex sync.Mutex
	lines []string
}

// Write implements io.Writer. It never fails.
func (l *errorLines) Write(line []byte) (int, error) {
	const most = 3
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if text := string(line); len(l.lines) < most && (strings.Contains(text, `"Cause"`) || text[0] != '{') {
		l.lines = append(l.lines, strings.TrimSpace(text))
	}
	return len(line), nil
}

// String returns the lines, each on its own.
func (l *errorLines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return "\n" + strings.Join(l.lines, "\n")
}
