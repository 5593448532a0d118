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
	name      string
	size      int64         // bytes
	firstPoll time.Duration // median from exec to the first poll, without connections of the init phase
	warm      time.Duration // the same with them
}

// requestCost is what one kind of request costs.
type requestCost struct {
	name           string
	p50            time.Duration // from the event to the answer
	simulatedDelay time.Duration // what of it the stand-ins' delays are
	cpu            time.Duration // of the function's process, user and system
	memory         int64         // peak of its process, bytes
	calls          callCounts
}

// callCounts is what one request called.
type callCounts struct{ writes, reads, others, operator int }

// measureAll runs everything once.
func measureAll(ctx context.Context, s *fixture, starts, number int) (*report, error) {
	r := &report{starts: starts, requests: number, delays: s.delays}
	names := []string{baseline}
	for _, f := range s.functions {
		names = append(names, f.Name)
	}
	polls, err := s.measureStarts(ctx, names, starts, false)
	if err != nil {
		return nil, err
	}
	warm, err := s.measureStarts(ctx, names, (starts+1)/2, true)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		size, err := s.programSize(name)
		if err != nil {
			return nil, err
		}
		r.programs = append(r.programs, programCost{name, size, median(polls[name]), median(warm[name])})
	}
	for i, kind := range requests() {
		cost, err := s.measureRequest(ctx, kind, (i+1)*1_000_000, number)
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

// programSize is the size of a program in bytes.
func (s *fixture) programSize(name string) (int64, error) {
	info, err := os.Stat(s.programPath(name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// measureStarts starts every program in turn, again and again, and gives the times from exec to the first poll of the Runtime
// API. Programs alternate, so that whatever else the machine does falls on all of them.
func (s *fixture) measureStarts(ctx context.Context, names []string, times int, warm bool) (map[string][]time.Duration, error) {
	found := map[string][]time.Duration{}
	for range times {
		for _, name := range names {
			f, err := s.newFunction(name, warm)
			if err != nil {
				return nil, err
			}
			result, err := f.InvokeEvent(ctx, runtimeapi.Event{Payload: []byte("{}")})
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
func (s *fixture) firstCharge(ctx context.Context, warm bool, from, times int) (time.Duration, error) {
	var found []time.Duration
	for i := range max(times, 1) {
		f, err := s.newFunction("charge", warm)
		if err != nil {
			return 0, err
		}
		duration, err := invokeAndCheck(ctx, f, charge(s, from+i), 201)
		f.Close()
		if err != nil {
			return 0, err
		}
		found = append(found, duration)
	}
	return median(found), nil
}

// measureRequest measures one kind of request. A process that answers the first alone is measured beside one that answers all,
// so that the cost of starting is nobody's.
func (s *fixture) measureRequest(ctx context.Context, kind requestKind, from, number int) (requestCost, error) {
	firstOnly, err := s.runBatch(ctx, kind, from, 0)
	if err != nil {
		return requestCost{}, err
	}
	all, err := s.runBatch(ctx, kind, from+number+10, number)
	if err != nil {
		return requestCost{}, err
	}
	cost := requestCost{
		name: kind.name, p50: median(all.durations), cpu: (all.cpu - firstOnly.cpu) / time.Duration(number),
		memory: all.memory, calls: all.calls,
	}
	cost.simulatedDelay = time.Duration(cost.calls.writes+cost.calls.reads)*s.delays.table + time.Duration(cost.calls.operator)*s.delays.operator
	return cost, nil
}

// batchResult is what one process did.
type batchResult struct {
	durations []time.Duration
	cpu       time.Duration
	memory    int64
	calls     callCounts // of one request: all of them called alike
}

// runBatch sends a request that makes the process know merchant and secrets, and then number measured ones.
func (s *fixture) runBatch(ctx context.Context, kind requestKind, from, number int) (batchResult, error) {
	if kind.repeated {
		if err := s.sendOriginals(ctx, kind, from, number); err != nil {
			return batchResult{}, err
		}
	}
	f, err := s.newFunction(kind.function, true)
	if err != nil {
		return batchResult{}, err
	}
	before := childrenCPU()
	b, err := s.sendBatch(ctx, f, kind, from, number)
	if err == nil {
		b.memory, err = peakMemory(f.PIDs())
	}
	f.Close()
	b.cpu = childrenCPU() - before
	return b, err
}

// sendOriginals sends a batch's requests once, by another process, so that what is measured is nothing but the repeat.
func (s *fixture) sendOriginals(ctx context.Context, kind requestKind, from, number int) error {
	f, err := s.newFunction(kind.function, true)
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range number + 1 {
		if _, err := invokeAndCheck(ctx, f, kind.newEvent(s, from+i), 201); err != nil {
			return err
		}
	}
	return nil
}

// sendBatch sends the requests of a batch and looks at what each called.
func (s *fixture) sendBatch(ctx context.Context, f *runtimeapi.Function, kind requestKind, from, number int) (batchResult, error) {
	var b batchResult
	for i := range number + 1 {
		if _, err := s.drainCalls(); err != nil {
			return b, err
		}
		duration, err := invokeAndCheck(ctx, f, kind.newEvent(s, from+i), kind.status)
		if err != nil {
			return b, err
		}
		called, err := s.drainCalls()
		switch {
		case err != nil:
			return b, err
		case i == 0:
			continue
		case i > 1 && called != b.calls:
			return b, fmt.Errorf("request %d called %+v, the one before %+v", i, called, b.calls)
		}
		b.calls, b.durations = called, append(b.durations, duration)
	}
	return b, nil
}

// drainCalls gives what was called since the last take.
func (s *fixture) drainCalls() (callCounts, error) {
	operations, err := s.dynamo.drainCalls()
	found := callCounts{operator: int(s.operator.calls.Swap(0))}
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

// invokeAndCheck sends one event and checks the status of its answer, unless any will do.
func invokeAndCheck(ctx context.Context, f *runtimeapi.Function, event []byte, status int) (time.Duration, error) {
	result, err := f.InvokeEvent(ctx, runtimeapi.Event{Payload: event})
	if err != nil {
		return 0, err
	}
	if status == 0 && !result.FunctionError {
		return result.Duration, nil
	}
	var response struct{ StatusCode int }
	if err := json.Unmarshal(result.Payload, &response); err != nil {
		return 0, err
	}
	if result.FunctionError || response.StatusCode != status {
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
