package kernel

import (
	"context"
	"encoding/binary"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"mobilegateway/proof/simulate/tape"
)

// scheduler takes in the parked tasks of instances.
type scheduler interface {
	add(p *parked)
	// wake makes a task ready that waits for a time, if it still waits.
	wake(p *parked)
	// newParked returns one for a task that waits, and reuse keeps one that was resumed.
	newParked() *parked
	reuse(p *parked)
	// release makes the tasks of an instance ready that wait for a time.
	release(i *Instance)
}

// parked is a task that waits to be resumed, one that has not begun, or an event of the world.
type parked struct {
	name     string
	instance *Instance   // nil for an event
	at       time.Time   // the time from which it can be resumed; zero for at once
	until    func() bool // reports whether it can be resumed; nil for at once
	sequence int
	resume   chan struct{} // of a task that waits
	run      func()        // of the others
	task     *task         // nil for an event
	stopped  atomic.Bool   // a timer that does nothing
	woken    bool          // before its time
}

// current has the task that runs: nil for one without a name, for an event, or if it is not known.
type current struct{ task *task }

// task is a task of an instance that names its tasks.
type task struct {
	name     string
	parent   *task // that started it, nil for an event
	children int   // that it has started
}

// canResume reports whether a task or an event of the ready ones can be resumed. A crashed one always can, to end.
func (p *parked) canResume() bool {
	return !p.instance.waitsFrozen() && (p.until == nil || p.instance.crashed || p.until())
}

// Instance is one instance of a function, or of a program of a person. It has its own clock and randomness. It can
// crash: each further outside call then ends its goroutine. It can freeze: its tasks wait until it thaws.
type Instance struct {
	Name string
	// Skew is how much its clock is ahead.
	Skew time.Duration
	// NamesTasks is true if the next tasks get names: each one by the task that started it, and its number there.
	NamesTasks bool

	scheduler scheduler
	current   *current
	number    int
	crashed   bool
	frozen    bool
	running   atomic.Int64 // tasks that have not ended
	random    uint64
}

// DrawFrom sets where the random values begin. Instances with other numbers draw other values.
func (i *Instance) DrawFrom(number uint64) { i.random = tape.Mix(number) }

func (i *Instance) id() int {
	if i == nil {
		return 0
	}
	return i.number
}

func (i *Instance) waitsFrozen() bool { return i != nil && i.frozen && !i.crashed }

// Number is the instance's number, from 1.
func (i *Instance) Number() int { return i.number }

// Crashed reports whether the instance has crashed.
func (i *Instance) Crashed() bool { return i.crashed }

// Crash ends the instance: its parked tasks end, and its running one at its next outside call.
func (i *Instance) Crash() {
	i.crashed = true
	i.scheduler.release(i)
}

// Busy reports whether a task of the instance has not ended.
func (i *Instance) Busy() bool { return i.running.Load() > 0 }

// Running is the number of the instance's tasks that have not ended.
func (i *Instance) Running() int { return int(i.running.Load()) }

// Freeze stops the instance's tasks, Thaw lets them continue.
func (i *Instance) Freeze() { i.frozen = true }

// Thaw is the end of Freeze.
func (i *Instance) Thaw() { i.frozen = false }

// Now is the instance's clock.
func (i *Instance) Now() time.Time { return time.Now().Add(i.Skew) }

// Read fills buffer with the instance's random values.
func (i *Instance) Read(buffer []byte) (int, error) {
	var word [8]byte
	for start := 0; start < len(buffer); start += len(word) {
		i.random += tape.Increment
		binary.BigEndian.PutUint64(word[:], tape.Mix(i.random))
		copy(buffer[start:], word[:])
	}
	return len(buffer), nil
}

// Start runs a task in a goroutine, which begins when the kernel resumes it. In a crashed instance it also ends the
// calling goroutine. The task still begins, because another goroutine may wait for its end; it ends at its first
// outside call.
func (i *Instance) Start(run func()) {
	i.Begin(run)
	i.Exit()
}

// Begin is Start for a caller that holds a lock: it continues to its next outside call also in a crashed instance.
func (i *Instance) Begin(run func()) {
	i.running.Add(1)
	var started *task
	if parent := i.current.task; i.NamesTasks {
		started = &task{parent: parent}
		if parent != nil {
			parent.children++
			started.name = parent.name + "/" + strconv.Itoa(parent.children)
		}
	}
	i.scheduler.add(&parked{name: "start", instance: i, task: started, run: func() {
		defer i.running.Add(-1)
		run()
	}})
}

// After runs a task after a time, unless stop is called before. It does not run in a crashed instance.
func (i *Instance) After(wait time.Duration, run func()) (stop func()) {
	timer := &parked{name: "timer", instance: i, at: time.Now().Add(wait)}
	timer.run = func() {
		if timer.stopped.Load() || i.crashed {
			return
		}
		i.running.Add(1)
		defer i.running.Add(-1)
		run()
	}
	i.scheduler.add(timer)
	return func() { timer.stopped.Store(true) }
}

// TaskName is the name of the task that runs.
func (i *Instance) TaskName() string {
	if i.current.task == nil {
		return ""
	}
	return i.current.task.name
}

// Gate parks the calling task until the kernel resumes it. The task then makes the outside call that name describes.
// In a crashed instance it ends the goroutine and does not return.
func (i *Instance) Gate(name string) { i.wait(name, time.Time{}) }

// Sleep lets the instance's task wait. It returns the context's error if the context ends first, also before its
// deadline.
func (i *Instance) Sleep(ctx context.Context, wait time.Duration) error {
	until, err := time.Now().Add(wait), error(nil)
	if deadline, limited := ctx.Deadline(); limited && deadline.Before(until) {
		until, err = deadline, context.DeadlineExceeded
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if ctx.Done() == nil {
		i.wait("wait", until)
		return err
	}
	i.Exit()
	p := &parked{
		name: "wait", instance: i, at: until, task: i.current.task, resume: make(chan struct{}, 1),
	} // it is not used again, because it may be woken late
	stop := context.AfterFunc(ctx, func() { i.scheduler.wake(p) })
	i.scheduler.add(p)
	<-p.resume
	stop()
	i.Exit()
	if time.Now().Before(until) {
		return ctx.Err()
	}
	return err
}

// Await parks the instance's task until done is closed. It returns the context's error if the context ends first. Tasks
// that wait for one channel continue one after the other, as the kernel chooses.
func (i *Instance) Await(ctx context.Context, done <-chan struct{}) error {
	isDone := func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
	i.park("await", time.Time{}, func() bool { return isDone() || ctx.Err() != nil })
	if isDone() {
		return nil
	}
	return ctx.Err()
}

func (i *Instance) wait(name string, until time.Time) { i.park(name, until, nil) }

func (i *Instance) park(name string, at time.Time, until func() bool) {
	if i.crashed {
		runtime.Goexit()
	}
	p := i.scheduler.newParked()
	p.name, p.instance, p.at, p.until, p.task = name, i, at, until, i.current.task
	i.scheduler.add(p)
	<-p.resume
	i.scheduler.reuse(p)
	if i.crashed {
		runtime.Goexit()
	}
}

// Exit ends the calling goroutine of a crashed instance; it does nothing otherwise.
func (i *Instance) Exit() {
	if i.crashed {
		runtime.Goexit()
	}
}
