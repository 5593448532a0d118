package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"mobilegateway/bench/usage"
	"mobilegateway/world/lambda"
)

type report struct {
	starts    int
	requests  int
	delays    delays
	programs  []programCost // the minimal function first
	kinds     []requestCost
	plain     units         // of a payment from request to delivered, without packed responses
	firstWarm time.Duration // a process's first charge, with connections from the init phase
	firstCold time.Duration // the same without
}

type programCost struct {
	name      string
	size      int64         // bytes
	firstPoll time.Duration // median from exec to the first poll, without connections of the init phase
	warm      time.Duration // the same with these connections
}

// requestCost has the measurements of one kind of request. Its cpu is that of one request.
type requestCost struct {
	name   string
	p50    time.Duration // from the event to the response
	p99    time.Duration
	waited time.Duration // median time in calls of DynamoDB and the operator
	batchResult
}

// callCounts are the calls of one request. A write is PutItem, a read is GetItem.
type callCounts struct{ writes, reads, others, operator, merchant int }

func measureAll(ctx context.Context, s *fixture, starts, number int) (*report, error) {
	r := &report{starts: starts, requests: number, delays: s.delays}
	names := []string{baseline}
	for _, f := range s.deployment.Functions {
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
	if r.plain, err = s.deliveredPlain(ctx, 70_000_000); err != nil {
		return nil, err
	}
	if r.firstWarm, err = s.firstCharge(ctx, true, 50_000_000, starts/2); err != nil {
		return nil, err
	}
	r.firstCold, err = s.firstCharge(ctx, false, 60_000_000, starts/2)
	return r, err
}

// deliveredPlain returns the units of a payment from request to delivered if responses are not packed
// (PackResponses=no), which is the default of template.yaml.
func (s *fixture) deliveredPlain(ctx context.Context, from int) (sum units, err error) {
	s.plain = true
	s.stopSteps()
	defer func() { s.plain = false; s.stopSteps() }()
	for i, kind := range requests() {
		if !isDelivery(kind.name) {
			continue
		}
		b, err := s.runBatch(ctx, kind, from+i*1000, 5)
		if err != nil {
			return sum, fmt.Errorf("%s, not packed: %w", kind.name, err)
		}
		sum = sum.plus(b.units)
	}
	return sum, nil
}

func (s *fixture) programSize(name string) (int64, error) {
	info, err := os.Stat(s.programPath(name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// measureStarts starts every program in turn, many times, and returns the times from exec to the first poll of the
// Runtime API. Programs alternate, so that other work of the machine slows down all of them.
func (s *fixture) measureStarts(
	ctx context.Context, names []string, times int, warm bool,
) (map[string][]time.Duration, error) {
	found := map[string][]time.Duration{}
	for range times {
		for _, name := range names {
			f, err := s.newFunction(name, warm)
			if err != nil {
				return nil, err
			}
			result, err := f.Invoke(ctx, lambda.Event{Payload: []byte("{}")})
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

// firstCharge returns the median duration of a process's first charge.
func (s *fixture) firstCharge(ctx context.Context, warm bool, from, times int) (time.Duration, error) {
	var found []time.Duration
	for i := range max(times, 1) {
		f, err := s.newFunction("charge", warm)
		if err != nil {
			return 0, err
		}
		duration, err := invokeAndCheck(ctx, f, charge(s, from+i), http.StatusCreated)
		f.Close()
		if err != nil {
			return 0, err
		}
		found = append(found, duration)
	}
	return median(found), nil
}

// measureRequest measures one kind of request. It subtracts the CPU time of a process that gets only one request, and
// so the cost of starting.
func (s *fixture) measureRequest(ctx context.Context, kind requestKind, from, number int) (requestCost, error) {
	firstOnly, err := s.runBatch(ctx, kind, from, 0)
	if err != nil {
		return requestCost{}, err
	}
	all, err := s.runBatch(ctx, kind, from+number+10, number)
	if err != nil {
		return requestCost{}, err
	}
	all.cpu = (all.cpu - firstOnly.cpu) / time.Duration(number)
	return requestCost{
		name: kind.name, p50: median(all.durations), p99: percentile(all.durations, 99), waited: median(all.waits),
		batchResult: all,
	}, nil
}

// batchResult has the measurements of one process.
type batchResult struct {
	durations []time.Duration
	waits     []time.Duration // in calls, by request
	cpu       time.Duration   // of the function's process, user and system
	memory    int64           // peak of its process, bytes
	calls     callCounts      // of one request; all requests make the same calls
	units     units           // the most of one request
	circuits  int             // reads of circuits beside all requests; the other fields are without them
}

// runBatch sends a request for which the process reads merchant and secrets, and then number measured ones. If only the
// repeats are measured, another process sends the requests before.
func (s *fixture) runBatch(ctx context.Context, kind requestKind, from, number int) (batchResult, error) {
	if kind.repeated {
		original := kind
		original.repeated, original.status = false, http.StatusCreated
		if _, err := s.runBatch(ctx, original, from, number); err != nil {
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

// sendBatch sends the requests of a batch and counts the calls of each.
func (s *fixture) sendBatch(
	ctx context.Context, f *lambda.Function, kind requestKind, from, number int,
) (b batchResult, err error) {
	s.drainCircuits()
	defer func() { b.circuits = s.drainCircuits() }()
	for i := range number + 1 {
		event, err := s.prepare(ctx, kind, from+i)
		if err != nil {
			return b, err
		}
		s.drainCalls()
		_, _ = s.billed.drain()
		duration, err := invokeAndCheck(ctx, f, event, kind.status)
		if err != nil {
			return b, err
		}
		called, waited := s.drainCalls()
		billed, err := s.billed.drain()
		if err != nil {
			return b, err
		}
		if i == 0 {
			continue
		}
		if i > 1 && called != b.calls {
			return b, fmt.Errorf("request %d made the calls %+v, the one before %+v", i, called, b.calls)
		}
		b.calls = called
		if billed.writes() > b.units.writes() || billed.reads > b.units.reads {
			b.units = billed
		}
		b.durations, b.waits = append(b.durations, duration), append(b.waits, waited)
	}
	return b, nil
}

// drainCircuits returns the reads of circuits since it was last called.
func (s *fixture) drainCircuits() int {
	calls, _ := s.circuits.drain()
	return calls["GetItem"]
}

// drainCalls returns the calls since it was last called, and how long they took.
func (s *fixture) drainCalls() (callCounts, time.Duration) {
	operations, waited := s.dynamo.drain()
	operatorCalls, operatorWaited := s.operator.drain()
	inboxCalls, inboxWaited := s.inbox.drain()
	found := callCounts{operator: operatorCalls[""], merchant: inboxCalls[""]}
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
	return found, waited + operatorWaited + inboxWaited
}

// invokeAndCheck sends one event and checks the status of its response; 0 accepts any.
func invokeAndCheck(ctx context.Context, f *lambda.Function, event []byte, status int) (time.Duration, error) {
	result, err := f.Invoke(ctx, lambda.Event{Payload: event})
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
		return 0, fmt.Errorf("the function responded %s, want status %d", result.Payload, status)
	}
	return result.Duration, nil
}

// childrenCPU is the CPU time of all child processes that have ended.
func childrenCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// peakMemory is the largest resident size of a function's only process.
func peakMemory(pids []int) (int64, error) {
	if len(pids) != 1 {
		return 0, fmt.Errorf("%d processes, want one", len(pids))
	}
	return usage.PeakMemory(pids[0])
}

func median(times []time.Duration) time.Duration { return percentile(times, 50) }

// percentile returns the time that a part of the times is below, in percent.
func percentile(times []time.Duration, percent int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)*percent/100]
}
