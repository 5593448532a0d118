// Package runtimeapi runs deployed bootstrap programs as AWS Lambda does: it serves the Lambda Runtime API to each of a
// function's processes and hands them one event at a time.
//
// A Function starts processes when events need them, at most Spec.MaxProcesses, and keeps them for later events; further
// events wait in their order of arrival. A process that exceeds the timeout, or dies, is replaced when the next event
// needs it. Nothing is frozen between events, and there are no extensions, layers or response streaming.
//
// The invariant: an event that a process has taken is never handed out a second time.
package runtimeapi

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Limits and defaults, as the Lambda service has them unless the comment says otherwise.
const (
	// DefaultMaxProcesses is how many events a function works on at once where Spec says nothing; ours, for one machine.
	DefaultMaxProcesses = 10
	// DefaultTimeout is an invocation's time limit where Spec says nothing.
	DefaultTimeout = 3 * time.Second
	// InitTimeout is how long a process may take from its start to its first request for an event.
	InitTimeout = 10 * time.Second
	// MaxResponse is the largest answer of a function, in bytes.
	MaxResponse = 6 << 20
	// DefaultMemory is the memory size told to a function where Spec says nothing, in MB. It is told, not enforced.
	DefaultMemory = 128
)

// ErrClosed is the error of an invocation after Close.
var ErrClosed = errors.New("runtimeapi: the function is closed")

// Spec describes a function. Name and Bootstrap are required.
type Spec struct {
	// Name is the function's name, as AWS_LAMBDA_FUNCTION_NAME gives it to the program.
	Name string
	// Bootstrap is the program's path.
	Bootstrap string
	// Env is the program's whole environment beside what the runtime itself sets; nothing is inherited.
	Env map[string]string
	// Timeout is an invocation's time limit; the process is killed past it. 0: DefaultTimeout.
	Timeout time.Duration
	// InitTimeout is the limit of a process's start. 0: the constant of that name.
	InitTimeout time.Duration
	// Memory is the function's memory size in MB. 0: DefaultMemory.
	Memory int
	// MaxProcesses is how many events are worked on at once. 0: DefaultMaxProcesses.
	MaxProcesses int
	// Log receives what the processes write to stdout and stderr, one Write a line, never two at once. nil: discarded.
	Log io.Writer
	// OnProcessChange is called after a process started or ended. It must not call back into the Function's Close. nil: nobody.
	OnProcessChange func()
}

// Event is one invocation.
type Event struct {
	// ID is the request id; "" makes one.
	ID string
	// Trace is the X-Ray trace header; "" makes one that is not sampled.
	Trace string
	// ARN is the invoked function's ARN; "" makes one of the function's name.
	ARN string
	// Payload is the event itself, JSON.
	Payload []byte
}

// Result is what became of an invocation that reached the function or failed in its start.
type Result struct {
	// Payload is the function's answer, or with FunctionError the error document.
	Payload []byte
	// FunctionError is true where the function reported an error, died, timed out or did not start.
	FunctionError bool
	// ColdStart is the time from the process's start to its first request for an event; 0 on a warm process.
	ColdStart time.Duration
	// Duration is the time from handing out the event to the answer; 0 where no process took it.
	Duration time.Duration
}

// Function runs one bootstrap program. All its methods may be called at once from many goroutines.
type Function struct {
	spec        Spec
	log         *lockedWriter
	slots       chan struct{}
	invocations sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	idle      []*process // most recently used last
	processes []*process // in order of start
}

// NewFunction makes a Function. It starts no process; the first event does.
func NewFunction(spec Spec) *Function {
	if spec.Timeout == 0 {
		spec.Timeout = DefaultTimeout
	}
	if spec.InitTimeout == 0 {
		spec.InitTimeout = InitTimeout
	}
	if spec.Memory == 0 {
		spec.Memory = DefaultMemory
	}
	if spec.MaxProcesses == 0 {
		spec.MaxProcesses = DefaultMaxProcesses
	}
	if spec.Log == nil {
		spec.Log = io.Discard
	}
	if spec.OnProcessChange == nil {
		spec.OnProcessChange = func() {}
	}
	return &Function{
		spec:  spec,
		log:   &lockedWriter{out: spec.Log},
		slots: make(chan struct{}, spec.MaxProcesses),
	}
}

// Invoke hands an event to the function and waits for its answer. functionError tells that the answer is an error
// document of the function or of its runtime. err is ErrClosed, or ctx's error: then an event that a process has taken
// is still worked on to its end, as a caller that hangs up does not stop a Lambda function.
func (f *Function) Invoke(ctx context.Context, payload []byte) (result []byte, functionError bool, err error) {
	r, err := f.InvokeEvent(ctx, Event{Payload: payload})
	return r.Payload, r.FunctionError, err
}

// InvokeEvent is Invoke with the event's ids given and the result's times told.
func (f *Function) InvokeEvent(ctx context.Context, event Event) (Result, error) {
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

// PIDs lists the ids of the living processes in order of their start.
func (f *Function) PIDs() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	pids := make([]int, 0, len(f.processes))
	for _, p := range f.processes {
		pids = append(pids, p.command.Process.Pid)
	}
	return pids
}

// Close ends all processes at once and waits until they are gone. Invocations under way end with a function error.
func (f *Function) Close() {
	f.mu.Lock()
	f.closed = true
	processes := append([]*process(nil), f.processes...)
	f.mu.Unlock()
	for _, p := range processes {
		p.kill()
	}
	f.invocations.Wait()
	for _, p := range processes {
		<-p.exited
	}
}

// beginInvocation counts an invocation in, unless the function is closed.
func (f *Function) beginInvocation() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.invocations.Add(1)
	return true
}

// runInvocation works on one event with a process of its own. A warm process that died before it took the event is passed over;
// a new one that does not come to take it is the function's fault.
func (f *Function) runInvocation(event Event) Result {
	for {
		p, coldStarted, err := f.acquireProcess()
		if err != nil {
			return errorResult("Runtime.ExitError", event.ID, err.Error())
		}
		r, accepted := p.invoke(event, coldStarted, f.spec)
		if !accepted && !coldStarted && !f.isClosed() {
			p.kill()
			<-p.exited
			continue
		}
		f.releaseProcess(p)
		return r
	}
}

func (f *Function) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// acquireProcess gives the most recently used idle process, or starts one.
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

// releaseProcess makes a living process idle; a dying one is waited for, so that there are never more than MaxProcesses.
func (f *Function) releaseProcess(p *process) {
	if p.isStopping() {
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

// watchExit takes a process off the lists when it is gone.
func (f *Function) watchExit(p *process) {
	f.spec.OnProcessChange()
	<-p.exited
	f.mu.Lock()
	f.idle = removeProcess(f.idle, p)
	f.processes = removeProcess(f.processes, p)
	f.mu.Unlock()
	f.spec.OnProcessChange()
}

func removeProcess(list []*process, p *process) []*process {
	remaining := list[:0:0]
	for _, other := range list {
		if other != p {
			remaining = append(remaining, other)
		}
	}
	return remaining
}
