package simulate

import (
	"context"
	"strconv"

	"mobilegateway/internal/simulate/tape"
)

// seen is what the code of an instance has seen: for each call by its name, the results and the times, in their order.
//
// The relay and the sweep make some calls at once: the payer's SMS beside the notification, two reads of the health of
// an endpoint. Two orders of such calls with the same results are the same to the code, so the order of calls with
// different names is left out. This loses nothing: each task continues from the results of its own calls. The tasks of
// an invocation share only what one passes to another at its start or its end. The name of a call identifies its task,
// with the number of its invocation: the rest of an earlier one can meet the next. If two tasks make the same call at
// once all the same, the order of all further calls counts.
type seen struct {
	sum    uint64 // of the chains
	chains map[string]uint64
	// waiting has the calls that wait to be made. last is the call that saw something last, by the task that runs.
	waiting map[string]bool
	last    string
	// inOrder keeps the order of all calls. The relay's tasks for two records make the same calls.
	inOrder bool
}

// invocationKey is the key of a context's value: the number of the invocation at the instance.
type invocationKey struct{}

// sightOf is the name under which an instance sees a call of an invocation.
func sightOf(ctx context.Context, name string) string {
	if number, _ := ctx.Value(invocationKey{}).(int); number > 1 {
		return name + " of invocation " + strconv.Itoa(number)
	}
	return name
}

// begin notes that a call waits to be made.
func (s *seen) begin(name string) {
	if s.waiting == nil {
		s.waiting = map[string]bool{}
	}
	s.inOrder = s.inOrder || s.waiting[name]
	s.waiting[name] = true
}

// add adds what the code sees of a call.
func (s *seen) add(name string, digests ...uint64) {
	delete(s.waiting, name)
	if s.last = name; s.inOrder {
		digests = append([]uint64{hashBytes([]byte(name))}, digests...)
		name = ""
	}
	if s.chains == nil {
		s.chains = map[string]uint64{}
	}
	before, found := s.chains[name]
	if found {
		s.sum -= tape.Mix(before)
	} else {
		before = hashBytes([]byte(name))
	}
	h := hash{before}
	for _, digest := range digests {
		h.add(digest)
	}
	s.chains[name] = h.sum
	s.sum += tape.Mix(h.sum)
}
