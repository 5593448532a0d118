package explore

import (
	"context"
	"io"
	"strconv"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/kernel"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/shared/wiring"
)

// invocationKey is the key of a context's value: the number of the invocation at the instance.
type invocationKey struct{}

// taskKey is the key of a context's value: the name of the task that makes a repeated call.
type taskKey struct{}

// instance is the instance of an actor. seen is what its code has seen. Two instances of an actor that have
// seen the same continue in the same way.
type instance struct {
	*kernel.Instance
	function string
	handler  wiring.Handler
	parts    *wiring.Dependencies
	log      io.Writer // takes its log lines: its ports
	seen     seen
	hasTasks bool              // its code has started one
	pending  map[string]access // the calls that wait to be made
	calls    calls
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

// moment is a point in the life of an instance at which its code continues.
type moment struct{ of, begun, seen, waiting, at uint64 }

// repeatCall makes a recorded call in an instance.
type repeatCall func(ctx context.Context, i *instance)

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
	end   *deployment.Result
}

func (i *instance) moment() moment {
	return moment{i.calls.of, i.calls.begun, i.seen.sum, i.calls.waiting, uint64(time.Now().UnixNano())}
}

// sightOf is the name under which an instance sees a call of an invocation.
func (i *instance) sightOf(ctx context.Context, name string) string {
	if number, _ := ctx.Value(invocationKey{}).(int); number > 1 {
		name += " of invocation " + strconv.Itoa(number)
	}
	if task, isRepeated := ctx.Value(taskKey{}).(string); isRepeated {
		return name + task
	}
	return name + i.TaskName()
}

// firstRequest is added to the number of a request, so that it draws other values than an instance.
const firstRequest = 1000

// drawFrom sets where the random values of an instance begin.
func (i *instance) drawFrom(number uint64) {
	i.DrawFrom(number)
	i.calls.of = number
}

// recorded is what a search has recorded.
type recorded struct {
	order *merchants.Order // as each run begins with it
	after map[moment]*following
	// isOff has the numbers of the instances whose code runs. missing is the one that came to a moment that is not
	// recorded, 0 for none.
	isOff   map[int]bool
	missing int
}

func newRecorded() *recorded {
	return &recorded{after: map[moment]*following{}, isOff: map[int]bool{}}
}

// reset prepares the next run.
func (r *recorded) reset() {
	r.missing = 0
	clear(r.isOff)
}

// runCode prepares another run of the same path, with the code of the instance that needs it.
func (r *recorded) runCode() { r.isOff[r.missing], r.missing = true, 0 }
