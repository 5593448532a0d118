package simulate

import (
	"context"
	"runtime"
	"slices"
	"time"

	"mobilegateway/functions/relay"
	"mobilegateway/proof/simulate/tape"
)

// A run repeats most of an earlier one, and the code of a function takes most of its time. So a search records what an
// instance does at each moment, and repeats that instead of its code. This loses nothing, because a moment has all that
// decides what the code does next: its payloads, its random values, and the calls that it has begun. It also has their
// results, with their times. The world, its faults and its invariants are the same. If an instance comes to a new
// moment, the run is repeated with its code.

// moment is a point in the life of an instance at which its code continues.
type moment struct{ of, begun, seen, waiting, at uint64 }

// repeatCall makes a recorded call in an instance.
type repeatCall func(ctx context.Context, i *exploredInstance)

// recordedCall is a call that begins at a moment.
type recordedCall struct {
	repeat     repeatCall
	deadline   time.Time // of the call's context, zero for none
	invocation int       // its number at the instance
	task       string    // the name of its task, empty for none
}

// following is what an instance does at a moment: it logs lines, begins calls, each but the first in a task of its own,
// or ends the invocation. An engineer reads the log, so it has an effect too.
type following struct {
	lines [][]byte
	calls []recordedCall
	end   *result
}

// recorded is what a search has recorded.
type recorded struct {
	after map[moment]*following
	// isOff has the numbers of the instances whose code runs. missing is the one that came to a moment that is not
	// recorded, 0 for none.
	isOff   map[int]bool
	missing int
}

func newRecorded() recorded {
	return recorded{after: map[moment]*following{}, isOff: map[int]bool{}}
}

// calls are the calls of one instance.
type calls struct {
	of, begun   uint64 // what the instance draws from; a hash of its payloads and their times
	invocations int    // their number so far
	isRepeat    bool   // it repeats recorded calls
	waiting     uint64 // a hash of the calls that waited when its code continued
	// following follows the moment present of an instance whose code runs.
	present   moment
	following *following
}

// repeat takes a run back, and prepares another one of the same path with the code of the instance that needs it.
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
	s.recorded.isOff[s.recorded.missing], s.recorded.missing = true, 0
}

func (i *exploredInstance) moment() moment {
	return moment{i.calls.of, i.calls.begun, i.seen.sum, i.calls.waiting, uint64(time.Now().UnixNano())}
}

// mustRecord reports whether what an instance does is recorded. A crashed one only ends.
func (x *explorer) mustRecord(i *exploredInstance) bool {
	return i.function != "" && !i.calls.isRepeat && !i.Crashed() && !x.scope.Full && !x.search.isReplay
}

// follow returns what follows the present moment of an instance whose code runs, to add to it.
func (x *explorer) follow(i *exploredInstance) *following {
	if now := i.moment(); i.calls.following == nil || i.calls.present != now {
		i.calls.present, i.calls.following = now, &following{}
		x.search.recorded.after[now] = i.calls.following
	}
	return i.calls.following
}

// record records the beginning of a call.
func (x *explorer) record(ctx context.Context, i *exploredInstance, repeat repeatCall) {
	if !x.mustRecord(i) {
		return
	}
	call := recordedCall{repeat: repeat, task: i.tasks.name()}
	call.deadline, _ = ctx.Deadline()
	call.invocation, _ = ctx.Value(invocationKey{}).(int)
	f := x.follow(i)
	f.calls = append(f.calls, call)
}

// goOn begins the next moment of an instance, after it has seen something. It may do nothing then.
func (x *explorer) goOn(i *exploredInstance) {
	i.calls.waiting = 0
	for name := range i.pending {
		i.calls.waiting += tape.Mix(hashBytes([]byte(name)))
	}
	if x.mustRecord(i) {
		x.follow(i)
	}
}

// exploredLog records the log lines of an instance.
type exploredLog struct {
	x     *explorer
	i     *exploredInstance
	lines logWriter
}

// Write implements io.Writer.
func (l exploredLog) Write(line []byte) (int, error) {
	if l.x.mustRecord(l.i) {
		f := l.x.follow(l.i)
		f.lines = append(f.lines, slices.Clone(line))
	}
	return l.lines.Write(line)
}

// sleep lets an instance wait.
func (x *explorer) sleep(ctx context.Context, i *exploredInstance, wait time.Duration) error {
	x.record(ctx, i, func(ctx context.Context, i *exploredInstance) { _ = i.log.x.sleep(ctx, i, wait) })
	name := "wait after " + i.seen.last
	var err error
	i.tasks.park(func() { err = i.Sleep(ctx, wait) })
	x.crashAfter(i, "a wait")
	i.seen.add(i.sightOf(ctx, name), errorDigest(err))
	x.goOn(i)
	return err
}

// handle handles an invocation: it repeats what is recorded, or runs the function.
func (x *explorer) handle(ctx context.Context, i *exploredInstance, payload []byte) result {
	h := newHash()
	h.add(i.calls.begun)
	h.add(uint64(time.Now().UnixNano()))
	h.add(hashBytes(payload))
	i.calls.begun = h.sum
	i.calls.invocations++
	ctx = context.WithValue(ctx, invocationKey{}, i.calls.invocations)
	i.seen.add("invocation", h.sum)
	i.calls.isRepeat = !x.scope.Full && !x.search.isReplay && !x.search.recorded.isOff[i.Number()]
	x.goOn(i)
	if i.calls.isRepeat {
		return x.repeatInvocation(i)
	}
	i.tasks.end() // of an earlier invocation
	defer i.tasks.end()
	if i.handler == nil {
		i.handler = must(constructors[i.function](i.parts))
	}
	response, err := i.handler.Invoke(ctx, payload)
	end := result{payload: response, err: err}
	if x.mustRecord(i) {
		x.follow(i).end = &end
	}
	return end
}

// repeatedInvocation repeats what is recorded of an invocation.
type repeatedInvocation struct {
	x     *explorer
	i     *exploredInstance
	tasks int           // that have not ended
	ended chan struct{} // closed at the end of the invocation, or if none will come
	isEnd bool          // ended is closed
	end   *result       // nil before the end
}

// repeatInvocation repeats an invocation. It ends the run if the instance comes to a moment that is not recorded.
func (x *explorer) repeatInvocation(i *exploredInstance) result {
	r := &repeatedInvocation{x: x, i: i, ended: make(chan struct{})}
	if i.function != functionRelay {
		r.follow()
		if r.tasks == 0 && r.end == nil {
			r.miss()
		}
		<-r.ended
	} else {
		r.start(r.follow)
		timer := time.NewTimer(relay.MaxBatchWait) // the relay leaves its batch then
		defer timer.Stop()
		select {
		case <-r.ended:
		case <-timer.C:
			if r.end == nil {
				r.leave()
			}
		}
	}
	if r.end == nil {
		runtime.Goexit() // the instance has crashed, or the run has ended
	}
	return *r.end
}

// follow does what follows the present moment, until nothing does.
func (r *repeatedInvocation) follow() {
	for {
		next := r.x.search.recorded.after[r.i.moment()]
		if next == nil {
			r.miss()
			return
		}
		for _, line := range next.lines {
			_, _ = r.i.log.Write(line)
		}
		if next.end != nil {
			r.end = next.end
			r.finish()
		}
		if len(next.calls) == 0 {
			return
		}
		for _, call := range next.calls[1:] {
			r.start(func() {
				call.repeatIn(r.i)
				r.follow()
			})
		}
		next.calls[0].repeatIn(r.i)
	}
}

// leave ends the invocation, as a timer of its code does. Its tasks continue.
func (r *repeatedInvocation) leave() {
	next := r.x.search.recorded.after[r.i.moment()]
	if next == nil || next.end == nil {
		r.miss()
	}
	r.end = next.end
}

// miss ends the run, so that it is repeated with the code of the instance.
func (r *repeatedInvocation) miss() {
	if !r.i.Crashed() {
		r.x.search.recorded.missing, r.x.search.frozen = r.i.Number(), true
	}
	r.finish()
	runtime.Goexit()
}

// start starts a task.
func (r *repeatedInvocation) start(task func()) {
	r.tasks++
	r.i.Start(func() {
		defer func() {
			if r.tasks--; r.tasks == 0 && r.i.Crashed() {
				r.finish()
			}
		}()
		task()
	})
}

func (r *repeatedInvocation) finish() {
	if !r.isEnd {
		r.isEnd = true
		close(r.ended)
	}
}

// repeatIn makes a recorded call in an instance.
func (c recordedCall) repeatIn(i *exploredInstance) {
	ctx := context.WithValue(context.Background(), invocationKey{}, c.invocation)
	ctx = context.WithValue(ctx, taskKey{}, c.task)
	if !c.deadline.IsZero() {
		var cancel func()
		ctx, cancel = context.WithDeadline(ctx, c.deadline)
		defer cancel()
	}
	c.repeat(ctx, i)
}
