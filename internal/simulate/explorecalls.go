package simulate

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// A run repeats most of an earlier one, and the code of a function takes most of its time. So a search records the
// calls of each invocation and repeats them, instead of its code. This loses nothing: the code's next call depends only
// on its payloads, its random values, the results of its calls and the times at which it saw them. A moment has all of
// these. The world, its faults and its invariants are the same. A run that comes to a new moment is repeated with all
// code. Functions that make two calls at once are never recorded: there, a moment has more than one next call.

// moment is a point in the life of an instance at which it makes its next call.
type moment struct{ of, begun, seen, at uint64 }

// repeatCall makes a recorded call in an instance.
type repeatCall func(ctx context.Context, i *exploredInstance)

// recordedCall is what follows a moment: the lines of a log, and then a call, or the end of the invocation if repeat is
// nil. An engineer reads the log, so it has an effect too.
type recordedCall struct {
	repeat   repeatCall
	deadline time.Time // of the call's context, zero for none
	end      result
	lines    [][]byte
}

// recorded are the recorded calls of a search.
type recorded struct {
	calls map[moment]recordedCall
	// atOnce has the functions that make two calls at once.
	atOnce map[string]bool
	// isOff is true for a run with all code. isMissing is true after a run came to a moment that is not recorded.
	isOff, isMissing bool
}

func newRecorded() recorded {
	return recorded{calls: map[moment]recordedCall{}, atOnce: map[string]bool{}}
}

// calls are the calls of one instance.
type calls struct {
	of, begun uint64 // what the instance draws from; a hash of its payloads and their times
	now       int    // calls in progress
	// invocations is their number so far.
	invocations int
	isOn        bool // an invocation is in progress
	isRepeat    bool // it repeats recorded calls
	lines       [][]byte
}

// repeat takes a run back, and prepares another one of the same path with all code.
func (s *search) repeat() {
	for _, e := range slices.Backward(s.entered) {
		if e.known {
			s.states[e.state] = e.before
		} else {
			delete(s.states, e.state)
		}
	}
	s.entered, s.path = s.entered[:0], s.path[:s.begun]
	s.place, s.frozen = 0, false
	s.recorded.isOff, s.recorded.isMissing = true, false
}

// isRecorded reports whether the calls of an instance must be recorded.
func (i *exploredInstance) isRecorded() bool { return i.function != "" && !i.calls.isRepeat }

func (i *exploredInstance) endCall() { i.calls.now-- }

func (i *exploredInstance) moment() moment {
	return moment{i.calls.of, i.calls.begun, i.seen.sum, uint64(time.Now().UnixNano())}
}

// record records what follows the present moment of an instance.
func (x *explorer) record(ctx context.Context, i *exploredInstance, repeat repeatCall) {
	if !i.isRecorded() {
		return
	}
	if i.calls.now > 0 || !i.calls.isOn {
		x.search.recorded.atOnce[i.function] = true
	}
	deadline, _ := ctx.Deadline()
	x.search.recorded.calls[i.moment()] = recordedCall{repeat: repeat, deadline: deadline, lines: i.calls.lines}
	i.calls.lines = nil
}

// exploredLog records the log lines of an instance.
type exploredLog struct {
	x     *explorer
	i     *exploredInstance
	lines logWriter
}

// Write implements io.Writer.
func (l exploredLog) Write(line []byte) (int, error) {
	if l.i.isRecorded() {
		l.i.calls.lines = append(l.i.calls.lines, slices.Clone(line))
		if !l.i.calls.isOn {
			l.x.search.recorded.atOnce[l.i.function] = true
		}
	}
	return l.lines.Write(line)
}

// sleep lets an instance wait.
func (x *explorer) sleep(ctx context.Context, i *exploredInstance, wait time.Duration) error {
	x.record(ctx, i, func(ctx context.Context, i *exploredInstance) { _ = i.log.x.sleep(ctx, i, wait) })
	i.calls.now++
	defer i.endCall()
	name := "wait after " + i.seen.last
	err := i.Sleep(ctx, wait)
	x.crashAfter(i, "a wait")
	i.seen.add(sightOf(ctx, name), errorDigest(err))
	return err
}

// handle handles an invocation: it repeats the recorded calls, or runs the function.
func (x *explorer) handle(ctx context.Context, i *exploredInstance, payload []byte) result {
	h := newHash()
	h.add(i.calls.begun)
	h.add(uint64(time.Now().UnixNano()))
	h.add(hashBytes(payload))
	i.calls.begun, i.calls.isOn = h.sum, true
	i.calls.invocations++
	ctx = context.WithValue(ctx, invocationKey{}, i.calls.invocations)
	i.seen.add("invocation", h.sum)
	defer func() { i.calls.isOn = false }()
	known := &x.search.recorded
	i.calls.isRepeat = !x.scope.Full && !x.search.isReplay && !known.isOff && !known.atOnce[i.function]
	if i.calls.isRepeat {
		return x.repeatCalls(i)
	}
	if i.handler == nil {
		handler, err := constructors[i.function](i.parts)
		if err != nil {
			panic(err) // the environment is ours
		}
		i.handler = handler
	}
	response, err := i.handler.Invoke(ctx, payload)
	if i.calls.now > 0 {
		known.atOnce[i.function] = true
	}
	end := result{payload: response, err: err}
	known.calls[i.moment()] = recordedCall{end: end, lines: i.calls.lines}
	i.calls.lines = nil
	return end
}

// repeatCalls repeats the recorded calls of an invocation. It ends the run if the next one is not recorded.
func (x *explorer) repeatCalls(i *exploredInstance) result {
	for {
		next, found := x.search.recorded.calls[i.moment()]
		if !found {
			x.search.recorded.isMissing, x.search.frozen = true, true
			runtime.Goexit()
		}
		for _, line := range next.lines {
			_, _ = i.log.Write(line)
		}
		if next.repeat == nil {
			return next.end
		}
		repeatIn(next, i)
	}
}

// repeatIn makes a recorded call in an instance.
func repeatIn(next recordedCall, i *exploredInstance) {
	ctx := context.WithValue(context.Background(), invocationKey{}, i.calls.invocations)
	if !next.deadline.IsZero() {
		var cancel func()
		ctx, cancel = context.WithDeadline(ctx, next.deadline)
		defer cancel()
	}
	next.repeat(ctx, i)
}
