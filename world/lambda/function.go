// Package lambda runs deployed bootstrap programs as AWS Lambda does. It serves the Lambda Runtime API to each
// process of a function and sends it one event at a time.
//
// A Function starts processes when events need them, at most Spec.MaxProcesses, and reuses them for later events.
// Further events wait in order of arrival. The next event replaces a process that exceeded the timeout or died.
// Processes are frozen between events only if Spec.Freezes is set, and there are no extensions, layers or response
// streaming.
//
// The invariant: an event that a process has received is never sent again.
package lambda

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"slices"
	"sync"
	"time"
)

// Limits and defaults. They are Lambda's own unless a comment names ours.
const (
	// DefaultMaxProcesses is how many events a function handles at once by default; it is ours, for one machine.
	DefaultMaxProcesses = 10
	// DefaultTimeout is the default time limit of an invocation.
	DefaultTimeout = 3 * time.Second
	// InitTimeout bounds the time from the start of a process to its first request for an event.
	InitTimeout = 10 * time.Second
	// MaxResponse is the maximum size of a function's response.
	MaxResponse = 6 << 20
	// DefaultMemory is the default memory size in MB. It is not enforced.
	DefaultMemory = 128
)

// ErrClosed is the error of an invocation after Close.
var ErrClosed = errors.New("runtimeapi: the function is closed")

// Spec describes a function. Name and Bootstrap are required.
type Spec struct {
	// Name is the function's name, in AWS_LAMBDA_FUNCTION_NAME.
	Name string
	// Bootstrap is the program's path.
	Bootstrap string
	// Env is the program's environment; the runtime adds its own variables. Nothing is inherited.
	Env map[string]string
	// Timeout is an invocation's time limit. A process that exceeds it is killed. 0: DefaultTimeout.
	Timeout time.Duration
	// InitTimeout is the limit of a process's start. 0: the constant of that name.
	InitTimeout time.Duration
	// Memory is the function's memory size in MB. 0: DefaultMemory.
	Memory int
	// MaxProcesses is how many events are handled at once. 0: DefaultMaxProcesses.
	MaxProcesses int
	// Freezes stops a process while it waits for an event, as Lambda does. A task that an event has left running
	// continues during the process's next one. Only on Linux.
	Freezes bool
	// Log receives stdout and stderr of the processes, one line per Write and one Write at a time. nil discards them.
	Log io.Writer
	// OnProcessChange is called after a process started or ended, unless nil. It must not call the Function's Close.
	OnProcessChange func()
}

// Event is one invocation.
type Event struct {
	// ID is the request id; "" generates one.
	ID string
	// Trace is the X-Ray trace header; "" generates one that is not sampled.
	Trace string
	// ARN is the invoked function's ARN; "" generates one from the function's name.
	ARN string
	// Payload is the event itself, JSON.
	Payload []byte
}

// Result is the result of an invocation that reached the function or failed at its start.
type Result struct {
	// Payload is the function's response, or the error document if FunctionError is set.
	Payload []byte
	// FunctionError is true if the function reported an error, died, timed out or did not start.
	FunctionError bool
	// ColdStart is the time from the process's start to its first request for an event; 0 on a warm process.
	ColdStart time.Duration
	// Duration is the time from sending the event to the response; 0 if no process received it.
	Duration time.Duration
}

// Invoker runs a function; *Function is one.
type Invoker interface {
	Invoke(ctx context.Context, event Event) (Result, error)
}

// Function runs one bootstrap program. It is safe for concurrent use.
type Function struct {
	spec        Spec
	log         *log.Logger
	slots       chan struct{}
	invocations sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	idle      []*process // most recently used last
	processes []*process // in order of start
}

// NewFunction returns a Function. The first event starts its first process.
func NewFunction(spec Spec) *Function {
	spec.Timeout = cmp.Or(spec.Timeout, DefaultTimeout)
	spec.InitTimeout = cmp.Or(spec.InitTimeout, InitTimeout)
	spec.Memory = cmp.Or(spec.Memory, DefaultMemory)
	spec.MaxProcesses = cmp.Or(spec.MaxProcesses, DefaultMaxProcesses)
	spec.Log = cmp.Or[io.Writer](spec.Log, io.Discard)
	if spec.OnProcessChange == nil {
		spec.OnProcessChange = func() {}
	}
	return &Function{spec: spec, log: log.New(spec.Log, "", 0), slots: make(chan struct{}, spec.MaxProcesses)}
}

// Invoke sends an event to the function and waits for its result. err is ErrClosed or ctx's error. After ctx's error, a
// process still handles the event to its end: a caller that disconnects does not stop a Lambda function.
func (f *Function) Invoke(ctx context.Context, event Event) (Result, error) {
	event = event.withDefaults(f.spec.Name)
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	if !f.beginInvocation() {
		<-f.slots
		return Result{}, ErrClosed
	}
	done := make(chan Result, 1)
	go func() {
		defer f.invocations.Done()
		defer func() { <-f.slots }()
		done <- f.runInvocation(event)
	}()
	select {
	case r := <-done:
		return r, nil
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// PIDs lists the ids of the running processes in order of their start.
func (f *Function) PIDs() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	pids := make([]int, 0, len(f.processes))
	for _, p := range f.processes {
		pids = append(pids, p.command.Process.Pid)
	}
	return pids
}

// Close kills all processes and waits for their end. Open invocations end with a function error.
func (f *Function) Close() {
	f.mu.Lock()
	f.closed = true
	processes := slices.Clone(f.processes)
	f.mu.Unlock()
	for _, p := range processes {
		p.kill()
	}
	f.invocations.Wait()
	for _, p := range processes {
		<-p.exited
	}
}

// beginInvocation counts an invocation, unless the function is closed.
func (f *Function) beginInvocation() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.invocations.Add(1)
	return true
}

// runInvocation handles one event with one process. It replaces a warm process that died before it received the event.
// A new process that does not request the event is an error of the function.
func (f *Function) runInvocation(event Event) Result {
	for {
		p, coldStarted, err := f.acquireProcess()
		if err != nil {
			return errorResult("Runtime.ExitError", event.ID, err.Error())
		}
		r, accepted := p.invoke(event, coldStarted, f.spec)
		if !accepted && !coldStarted {
			p.kill()
			<-p.exited
			continue
		}
		f.releaseProcess(p)
		return r
	}
}

// acquireProcess returns the most recently used idle process, or starts one.
func (f *Function) acquireProcess() (p *process, coldStarted bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, false, ErrClosed
	}
	if n := len(f.idle); n > 0 {
		p = f.idle[n-1]
		f.idle = f.idle[:n-1]
		return p, false, nil
	}
	p, err = startProcess(f.spec, f.log)
	if err != nil {
		return nil, true, err
	}
	f.processes = append(f.processes, p)
	go f.watchExit(p)
	return p, true, nil
}

// releaseProcess makes a process idle. It waits for the end of a dying one, so that there are at most MaxProcesses.
func (f *Function) releaseProcess(p *process) {
	if p.killed.Load() {
		<-p.exited
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-p.exited:
	default:
		f.idle = append(f.idle, p)
	}
}

// watchExit removes a process from the lists after its end.
func (f *Function) watchExit(p *process) {
	f.spec.OnProcessChange()
	<-p.exited
	f.mu.Lock()
	isThis := func(other *process) bool { return other == p }
	f.idle, f.processes = slices.DeleteFunc(f.idle, isThis), slices.DeleteFunc(f.processes, isThis)
	f.mu.Unlock()
	f.spec.OnProcessChange()
}
