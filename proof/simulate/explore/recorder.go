package explore

import (
	"context"

	"mobilegateway/proof/simulate/tape"
)

// A run repeats most of an earlier one, and the code of a function takes most of its time. So a search records what an
// instance does at each moment, and repeats that instead of its code. This loses nothing, because a moment has all that
// decides what the code does next: its payloads, its random values, and the calls that it has begun. It also has their
// results, with their times. The world, its faults and its invariants are the same. If an instance comes to a new
// moment, the run is repeated with its code.

// mustRecord reports whether what an instance does is recorded. A crashed one only ends.
func (x *run) mustRecord(i *instance) bool {
	return i.function != "" && !i.calls.isRepeat && !i.Crashed() && !x.scope.Full && !x.search.isReplay
}

// follow returns what follows the present moment of an instance whose code runs, to add to it.
func (x *run) follow(i *instance) *following {
	if now := i.moment(); i.calls.following == nil || i.calls.present != now {
		i.calls.present, i.calls.following = now, &following{}
		x.recorded.after[now] = i.calls.following
	}
	return i.calls.following
}

// record records the beginning of a call.
func (x *run) record(ctx context.Context, i *instance, repeat repeatCall) {
	if !x.mustRecord(i) {
		return
	}
	call := recordedCall{repeat: repeat, task: i.TaskName()}
	call.deadline, _ = ctx.Deadline()
	call.invocation, _ = ctx.Value(invocationKey{}).(int)
	f := x.follow(i)
	f.calls = append(f.calls, call)
}

// goOn begins the next moment of an instance, after it has seen something. It may do nothing then.
func (x *run) goOn(i *instance) {
	i.calls.waiting = 0
	for name := range i.pending {
		i.calls.waiting += tape.Mix(hashBytes([]byte(name)))
	}
	if x.mustRecord(i) {
		x.follow(i)
	}
}
