package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mobilegateway/internal/runtimeapi"
)

// report is everything that one run measured.
type report struct {
	starts    int
	requests  int
	delays    delays
	programs  []programCost
	kinds     []requestCost
	firstWarm time.Duration // a process's first charge, with connections from the init phase
	firstCold time.Duration // the same without
}

// programCost is what a program costs before its first event.
type programCost struct {
	name string
	size int64         // bytes
	poll time.Duration // median from exec to the first poll, without connections of the init phase
	warm time.Duration // the same with them
}

// requestCost is what one kind of request costs.
type requestCost struct {
	name   string
	p50    time.Duration // from the event to the answer
	waits  time.Duration // what of it the stand-ins' delays are
	cpu    time.Duration // of the function's process, user and system
	memory int64         // peak of its process, bytes
	calls  calls
}

// calls is what one request called.
type calls struct{ writes, reads, others, operator int }

// measure runs everything once.
func measure(ctx context.Context, s *stage, starts, number int) (*report, error) {
	r := &report{starts: starts, requests: number, delays: s.delays}
	names := []string{hello}
	for _, f := range s.functions {
		names = append(names, f.Name)
	}
	polls, err := s.polls(ctx, names, starts, false)
	if err != nil {
		return nil, err
	}
	warm, err := s.polls(ctx, names, (starts+1)/2, true)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		size, err := s.size(name)
		if err != nil {
			return nil, err
		}
		r.programs = append(r.programs, programCost{name, size, median(polls[name]), median(warm[name])})
	}
	for i, kind := range requests() {
		cost, err := s.cost(ctx, kind, (i+1)*1_000_000, number)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		r.kinds = append(r.kinds, cost)
	}
	if r.firstWarm, err = s.firstCharge(ctx, true, 50_000_000, starts/2); err != nil {
		return nil, err
	}
	r.firstCold, err = s.firstCharge(ctx, false, 60_000_000, starts/2)
	return r, err
}

// size is the size of a program in bytes.
func (s *stage) size(name string) (int64, error) {
	info, err := os.Stat(s.program(name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// polls starts every program in turn, again and again, and gives the times from exec to the first poll of the Runtime
// API. Programs alternate, so that whatever else the machine does falls on all of them.
func (s *stage) polls(ctx context.Context, names []string, times int, warm bool) (map[string][]time.Duration, error) {
	found := map[string][]time.Duration{}
	for range times {
		for _, name := range names {
			f, err := s.start(name, warm)
			if err != nil {
				return nil, err
			}
			result, err := f.Do(ctx, runtimeapi.Event{Payload: []byte("{}")})
			f.Close()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if result.ColdStart == 0 {
				return nil, fmt.Errorf("%s did not start: %s", name, result.Payload)
			}
			found[name] = append(found[name], result.ColdStart)
		}
	}
	return found, nil
}

// firstCharge is the median of a process's very first charge.
func (s *stage) firstCharge(ctx context.Context, warm bool, from, times int) (time.Duration, error) {
	var found []time.Duration
	for i := range max(times, 1) {
		f, err := s.start("charge", warm)
		if err != nil {
			return 0, err
		}
		took, err := send(ctx, f, charge(s, from+i), 201)
		f.Close()
		if err != nil {
			return 0, err
		}
		found = append(found, took)
	}
	return median(found), nil
}

// cost measures one kind of request. A process that answers the first alone is measured beside one that answers all,
// so that the cost of starting is nobody's.
func (s *stage) cost(ctx context.Context, kind request, from, number int) (requestCost, error) {
	one, err := s.batch(ctx, kind, from, 0)
	if err != nil {
		return requestCost{}, err
	}
	all, err := s.batch(ctx, kind, from+number+10, number)
	if err != nil {
		return requestCost{}, err
	}
	cost := requestCost{
		name: kind.name, p50: median(all.took), cpu: (all.cpu - one.cpu) / time.Duration(number),
		memory: all.memory, calls: all.calls,
	}
	cost.waits = time.Duration(cost.calls.writes+cost.calls.reads)*s.delays.table + time.Duration(cost.calls.operator)*s.delays.operator
	return cost, nil
}

// batch is what one process did.
type batch struct {
	took   []time.Duration
	cpu    time.Duration
	memory int64
	calls  calls // of one request: all of them called alike
}

// batch sends a request that makes the process know merchant and secrets, and then number measured ones.
func (s *stage) batch(ctx context.Context, kind request, from, number int) (batch, error) {
	if kind.repeated {
		if err := s.sendBefore(ctx, kind, from, number); err != nil {
			return batch{}, err
		}
	}
	f, err := s.start(kind.function, true)
	if err != nil {
		return batch{}, err
	}
	before := childrenCPU()
	b, err := s.sendAll(ctx, f, kind, from, number)
	if err == nil {
		b.memory, err = peakMemory(f.PIDs())
	}
	f.Close()
	b.cpu = childrenCPU() - before
	return b, err
}

// sendBefore sends a batch's requests once, by another process, so that what is measured is nothing but the repeat.
func (s *stage) sendBefore(ctx context.Context, kind request, from, number int) error {
	f, err := s.start(kind.function, true)
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range number + 1 {
		if _, err := send(ctx, f, kind.make(s, from+i), 201); err != nil {
			return err
		}
	}
	return nil
}

// sendAll sends the requests of a batch and looks at what each called.
func (s *stage) sendAll(ctx context.Context, f *runtimeapi.Function, kind request, from, number int) (batch, error) {
	var b batch
	for i := range number + 1 {
		if _, err := s.take(); err != nil {
			return b, err
		}
		took, err := send(ctx, f, kind.make(s, from+i), kind.status)
		if err != nil {
			return b, err
		}
		called, err := s.take()
		switch {
		case err != nil:
			return b, err
		case i == 0:
			continue
		case i > 1 && called != b.calls:
			return b, fmt.Errorf("request %d called %+v, the one before %+v", i, called, b.calls)
		}
		b.calls, b.took = called, append(b.took, took)
	}
	return b, nil
}

// take gives what was called since the last take.
func (s *stage) take() (calls, error) {
	operations, err := s.table.take()
	found := calls{operator: int(s.platform.calls.Swap(0))}
	for operation, times := range operations {
		switch operation {
		case "PutItem":
			found.writes += times
		case "GetItem":
			found.reads += times
		default:
			found.others += times
		}
	}
	return found, err
}

// send sends one event and checks the status of its answer, unless any will do.
func send(ctx context.Context, f *runtimeapi.Function, event []byte, status int) (time.Duration, error) {
	result, err := f.Do(ctx, runtimeapi.Event{Payload: event})
	if err != nil {
		return 0, err
	}
	if status == 0 && !result.FunctionError {
		return result.Duration, nil
	}
	var answer struct{ StatusCode int }
	if err := json.Unmarshal(result.Payload, &answer); err != nil {
		return 0, err
	}
	if result.FunctionError || answer.StatusCode != status {
		return 0, fmt.Errorf("the function answered %s, want status %d", result.Payload, status)
	}
	return result.Duration, nil
}

// childrenCPU is the processor time of all processes that were started here and have ended.
func childrenCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// peakMemory is the largest resident size that a function's only process has had.
func peakMemory(pids []int) (int64, error) {
	if len(pids) != 1 {
		return 0, fmt.Errorf("%d processes, want one", len(pids))
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pids[0]) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if size, found := strings.CutPrefix(line, "VmHWM:"); found {
			kilobytes, err := strconv.ParseInt(strings.Fields(size)[0], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("the system does not tell the peak memory (VmHWM)")
}

// median is the middle of times; 0 of none.
func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
