// Package kernel schedules the tasks of a simulated history: it decides which outside call happens next, and when time
// passes. It runs inside a bubble of testing/synctest, so that the code under test sees a simulated clock.
//
// A task runs until its next outside call, where it parks. Then the kernel waits until every goroutine of the bubble is
// blocked, and resumes one. So one task runs at a time, and the same choices give the same history. The kernel has no
// operator, no table and no rule of the gateway. Its invariant: nothing happens outside a task between two choices.
package kernel

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// Chooser makes the choices of a history; zero is the harmless one.
type Chooser interface {
	Choose(label string, count int) int
	Happens(label string, perMille int) bool
}

// maxIdleSteps bounds how long the kernel waits for tasks that wait for a timer of their own.
const maxIdleSteps = 3600

// stackSpace makes a stack of 16 KB, the largest size that the runtime keeps for the next goroutines.
const stackSpace = 12 << 10

// Waiting is a task or an event that can be resumed now.
type Waiting struct {
	// Name is the name of the outside call or of the event.
	Name string
	// Instance is nil for an event.
	Instance *Instance
}

// Selector chooses the next one of those that can be resumed. firstTimed is the time of the first one that waits for a
// time, zero for none. A negative number lets time pass to it.
type Selector func(ready []Waiting, firstTimed time.Time) int

// Kernel schedules one history.
type Kernel struct {
	// Observe, if set, is called between two steps, when every task is parked. An error ends the history.
	Observe func() error
	// MaxSteps ends a history that does not end by itself; 0 for no bound.
	MaxSteps int
	// Select, if set, chooses the next task or event instead of the Chooser. Exhaustive mode uses it.
	Select Selector

	choose    Chooser
	ready     []*parked // parked, in the order of their arrival
	timed     []*parked // parked until a time, in the order of their times
	enabled   []int     // the places of those in ready that can be resumed
	instances []*Instance
	steps     int
	timer     *time.Timer   // of advance
	signal    chan struct{} // a task has parked while time passes
	current   *current

	mutex      sync.Mutex
	arrivals   []*parked // parked since the last step, in no order
	woken      []*parked // since the last step, in no order
	timePasses bool
	unused     []*parked      // resumed, to be used again
	idle       []chan *parked // goroutines that have ended a task
}

// New makes a kernel. Call it inside a bubble.
func New(choose Chooser) *Kernel {
	return &Kernel{choose: choose, signal: make(chan struct{}, 1), current: &current{}}
}

// Steps returns the number of resumed tasks and events so far.
func (k *Kernel) Steps() int { return k.steps }

// NewInstance makes an instance. Its random values depend only on its number.
func (k *Kernel) NewInstance(name string) *Instance {
	i := &Instance{Name: name, scheduler: k, current: k.current, number: len(k.instances) + 1}
	i.DrawFrom(uint64(i.number)) //nolint:gosec // positive
	k.instances = append(k.instances, i)
	return i
}

func (k *Kernel) release(i *Instance) {
	ours := func(p *parked) bool { return p.instance == i }
	for _, p := range k.timed {
		if ours(p) {
			k.ready = append(k.ready, p)
		}
	}
	k.timed = slices.DeleteFunc(k.timed, ours)
}

// Waiting is the number of goroutines of an instance that are parked, also those that no Start began.
func (k *Kernel) Waiting(i *Instance) (count int) {
	for _, parked := range [][]*parked{k.ready, k.timed} {
		for _, p := range parked {
			if p.instance == i && !p.stopped.Load() {
				count++
			}
		}
	}
	return count
}

// At schedules an event of the world. It may start tasks, and runs when no task does.
func (k *Kernel) At(at time.Time, name string, run func()) {
	k.add(&parked{name: name, at: at, run: run})
}

// Run schedules until no task and no event is left, or Observe returns an error, or MaxSteps is reached. Then it ends
// all tasks.
func (k *Kernel) Run() error {
	err := k.run()
	k.stop()
	return err
}

func (k *Kernel) run() error {
	for idle := 0; ; {
		synctest.Wait()
		k.collect()
		if k.Observe != nil {
			if err := k.Observe(); err != nil {
				return err
			}
		}
		next := k.choosePending()
		switch {
		case next != nil:
			idle = 0
			if k.steps++; k.MaxSteps > 0 && k.steps > k.MaxSteps {
				k.ready = append(k.ready, next) // stop ends it too
				return fmt.Errorf("the history did not end within %d steps", k.MaxSteps)
			}
			k.resume(next) // last: the task runs beside the kernel until the next Wait
		case len(k.timed) > 0:
			k.advance(time.Until(k.timed[0].at))
		case k.runningTasks() == 0:
			return nil
		default: // a task waits for a timer of its own
			if idle++; idle > maxIdleSteps {
				return fmt.Errorf("%d tasks wait for something that does not come", k.runningTasks())
			}
			k.advance(time.Second)
		}
	}
}

// advance lets time pass, or less if a task parks meanwhile.
func (k *Kernel) advance(wait time.Duration) {
	if k.timer == nil {
		k.timer = time.NewTimer(wait)
	} else {
		k.timer.Reset(wait)
	}
	k.current.task = nil
	k.setTimePasses(true)
	select {
	case <-k.timer.C:
	case <-k.signal:
	}
	k.setTimePasses(false)
	k.timer.Stop()
}

func (k *Kernel) setTimePasses(passes bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.timePasses = passes
	select {
	case <-k.signal:
	default:
	}
	if passes && len(k.arrivals)+len(k.woken) > 0 {
		k.signal <- struct{}{}
	}
}

// add takes a parked task or event in.
func (k *Kernel) add(p *parked) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.arrivals = append(k.arrivals, p)
	if k.timePasses {
		select {
		case k.signal <- struct{}{}:
		default:
		}
	}
}

// wake makes a task ready that waits for a time.
func (k *Kernel) wake(p *parked) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	p.woken = true
	k.woken = append(k.woken, p)
	if k.timePasses {
		select {
		case k.signal <- struct{}{}:
		default:
		}
	}
}

// collectWoken moves the tasks that were woken from the timed to the ready ones.
func (k *Kernel) collectWoken() {
	if len(k.woken) == 0 {
		return
	}
	k.woken = k.woken[:0]
	for _, p := range k.timed {
		if p.woken {
			k.ready = append(k.ready, p)
		}
	}
	k.timed = slices.DeleteFunc(k.timed, func(p *parked) bool { return p.woken })
}

// collect sorts the arrivals into the lists. Tasks that parked between two steps are put in an order of their own,
// because several may have run at once after a common wait.
func (k *Kernel) collect() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	slices.SortStableFunc(k.arrivals, func(a, b *parked) int {
		return cmp.Or(cmp.Compare(a.instance.id(), b.instance.id()), cmp.Compare(a.name, b.name))
	})
	for _, p := range k.arrivals {
		k.steps++
		p.sequence = k.steps
		if p.at.IsZero() {
			k.ready = append(k.ready, p)
			continue
		}
		place, _ := slices.BinarySearchFunc(k.timed, p, func(a, b *parked) int {
			return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.sequence, b.sequence))
		})
		k.timed = slices.Insert(k.timed, place, p)
	}
	k.arrivals = k.arrivals[:0]
	k.collectWoken()
	now := time.Now()
	due := 0
	for due < len(k.timed) && !k.timed[due].at.After(now) {
		due++
	}
	k.ready = append(k.ready, k.timed[:due]...)
	k.timed = slices.Delete(k.timed, 0, due)
}

// choosePending removes and returns the next task or event; nil if none can run. Tasks of frozen instances wait.
func (k *Kernel) choosePending() *parked {
	k.enabled = k.enabled[:0]
	for i, p := range k.ready {
		if p.canResume() {
			k.enabled = append(k.enabled, i)
		}
	}
	place := -1
	if k.Select != nil {
		place = k.selectPlace()
	} else if len(k.enabled) > 0 {
		place = k.choose.Choose("next", len(k.enabled))
	}
	if place < 0 {
		return nil
	}
	place = k.enabled[place]
	next := k.ready[place]
	k.ready = slices.Delete(k.ready, place, place+1)
	return next
}

// selectPlace lets Select choose a place of enabled. It returns a negative number to let time pass.
func (k *Kernel) selectPlace() int {
	ready := make([]Waiting, len(k.enabled))
	for i, place := range k.enabled {
		ready[i] = Waiting{k.ready[place].name, k.ready[place].instance}
	}
	var firstTimed time.Time
	if len(k.timed) > 0 {
		firstTimed = k.timed[0].at
	}
	place := k.Select(ready, firstTimed)
	if place < 0 {
		k.collect() // the selector may have added events
	}
	return place
}

// runningTasks counts the tasks that have not ended. Those of frozen instances do not count: nothing resumes them.
func (k *Kernel) runningTasks() int {
	running := 0
	for _, instance := range k.instances {
		if !instance.waitsFrozen() {
			running += int(instance.running.Load())
		}
	}
	return running
}

// begin runs a task in a goroutine. Goroutines are used again, because their stacks have grown.
func (k *Kernel) begin(p *parked) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if last := len(k.idle) - 1; last >= 0 {
		k.idle[last] <- p
		k.idle = k.idle[:last]
		return
	}
	next := make(chan *parked, 1)
	next <- p
	go func() {
		growStack()
		for p := range next {
			p.run()
			k.mutex.Lock()
			if p.task != nil {
				k.current.task = p.task.parent // it may wait for the end of this one, and continues then
			}
			k.idle = append(k.idle, next)
			k.mutex.Unlock()
		}
	}()
}

// growStack makes the goroutine's stack large enough for most tasks at once, while there is nothing to copy.
//
//go:noinline
func growStack() {
	var space [stackSpace]byte
	runtime.KeepAlive(&space)
}

// resume continues or begins a task, or runs an event.
func (k *Kernel) resume(p *parked) {
	k.current.task = p.task
	switch {
	case p.run == nil:
		p.resume <- struct{}{}
	case p.instance != nil:
		k.begin(p)
	default:
		p.run()
	}
}

func (k *Kernel) newParked() *parked {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	last := len(k.unused) - 1
	if last < 0 {
		return &parked{resume: make(chan struct{}, 1)}
	}
	p := k.unused[last]
	k.unused = k.unused[:last]
	return p
}

func (k *Kernel) reuse(p *parked) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.unused = append(k.unused, p)
}

// stop ends all tasks.
func (k *Kernel) stop() {
	for _, instance := range k.instances {
		instance.crashed = true
	}
	for range maxIdleSteps {
		synctest.Wait()
		k.collect()
		pending := append(slices.Clone(k.ready), k.timed...)
		k.ready, k.timed = nil, nil
		for _, p := range pending {
			if p.instance != nil {
				k.resume(p)
				synctest.Wait()
			}
		}
		if k.runningTasks() == 0 {
			for _, goroutine := range k.idle {
				close(goroutine)
			}
			return
		}
		if len(pending) == 0 {
			time.Sleep(time.Minute) // for timers of their own
		}
	}
}
