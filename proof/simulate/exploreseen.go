package simulate

import (
	"context"
	"runtime"
	"strconv"
	"sync"

	"mobilegateway/proof/simulate/tape"
)

// seen is what the code of an instance has seen: for each call by its name, the results and the times, in their order.
//
// The relay and the sweep make some calls at once: the payer's SMS beside the notification, two reads of the health of
// an endpoint. Two orders of such calls with the same results are the same to the code, so the order of calls with
// different names is left out. This loses nothing: each task continues from the results of its own calls. The tasks of
// an invocation share only what one passes to another at its start or its end. The name of a call identifies its task,
// with the number of its invocation: the rest of an earlier one can meet the next. Tasks that make the same calls are
// named (see taskNames). If two make the same call at once all the same, the order of all further calls counts.
type seen struct {
	sum    uint64 // of the chains
	chains map[string]uint64
	// waiting has the calls that wait to be made. last is the call that saw something last, by the task that runs.
	waiting map[string]bool
	last    string
	// inOrder keeps the order of all calls.
	inOrder bool
}

// invocationKey is the key of a context's value: the number of the invocation at the instance.
type invocationKey struct{}

// taskKey is the key of a context's value: the name of the task that makes a repeated call.
type taskKey struct{}

// sightOf is the name under which an instance sees a call of an invocation.
func (i *exploredInstance) sightOf(ctx context.Context, name string) string {
	if number, _ := ctx.Value(invocationKey{}).(int); number > 1 {
		name += " of invocation " + strconv.Itoa(number)
	}
	if task, isRepeated := ctx.Value(taskKey{}).(string); isRepeated {
		return name + task
	}
	return name + i.tasks.name()
}

// taskNames name the tasks of an instance: each one by the task that started it, and its number there. They are on if
// two tasks can make the same calls: the relay's, for two records.
type taskNames struct {
	isOn  bool
	mutex sync.Mutex
	tasks map[uint64]*namedTask // by the goroutine
	// now is the task that runs, nil if that is not known: after another one has ended, a task that waited for it
	// continues.
	now *namedTask
}

// namedTask is a task that runs, and how many it has started.
type namedTask struct {
	name     string
	children int
}

// name is the name of the task that runs.
func (t *taskNames) name() string {
	if !t.isOn {
		return ""
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.running().name
}

// running is the task that runs. Call it with the mutex. It costs some microseconds if that is not known.
func (t *taskNames) running() *namedTask {
	if t.now == nil {
		id := goroutineID()
		if t.tasks[id] == nil {
			t.tasks[id] = &namedTask{}
		}
		t.now = t.tasks[id]
	}
	return t.now
}

// park lets the task that runs wait, while others run.
func (t *taskNames) park(wait func()) {
	if !t.isOn {
		wait()
		return
	}
	t.mutex.Lock()
	parked := t.running()
	t.mutex.Unlock()
	wait()
	t.mutex.Lock()
	t.now = parked
	t.mutex.Unlock()
}

// named returns a task with a name.
func (t *taskNames) named(run func()) func() {
	if !t.isOn {
		return run
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	parent := t.running()
	parent.children++
	task := &namedTask{name: parent.name + "/" + strconv.Itoa(parent.children)}
	return func() {
		t.mutex.Lock()
		t.tasks[goroutineID()], t.now = task, task
		t.mutex.Unlock()
		defer t.end()
		run()
	}
}

// end forgets the task that runs. Its goroutine may run another one.
func (t *taskNames) end() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.now = nil
	delete(t.tasks, goroutineID())
}

// goroutineID is the number of the goroutine that runs.
func goroutineID() uint64 {
	var buffer [32]byte
	stack := buffer[len("goroutine "):runtime.Stack(buffer[:], false)]
	var id uint64
	for _, digit := range stack {
		if digit < '0' || digit > '9' {
			break
		}
		id = id*10 + uint64(digit-'0')
	}
	return id
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
