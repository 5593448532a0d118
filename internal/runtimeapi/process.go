package runtimeapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// process is one running bootstrap with a Runtime API of its own, so that the address tells who asks.
type process struct {
	command *exec.Cmd
	server  *http.Server
	started time.Time
	pending chan *invocation
	exited  chan struct{} // closed once the process is gone and its output is written

	mu         sync.Mutex
	firstPoll  time.Time   // when it first asked for an event
	current    *invocation // the event it works on
	initError  []byte      // the error document of its start
	killed     bool
	exitReason string
}

// invocation is an event on its way through a process.
type invocation struct {
	event   Event
	timeout time.Duration
	result  chan Result // buffered: one answer
}

// startProcess starts a bootstrap and the Runtime API it talks to.
func startProcess(spec Spec, log *lockedWriter) (*process, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the Runtime API: %w", err)
	}
	p := &process{pending: make(chan *invocation), exited: make(chan struct{})}
	p.server = &http.Server{Handler: p.routes(), ReadHeaderTimeout: 5 * time.Second}
	p.command = exec.Command(spec.Bootstrap)
	p.command.Dir = filepath.Dir(spec.Bootstrap)
	p.command.Env = processEnvironment(spec, listener.Addr().String())
	p.command.SysProcAttr = processAttributes()
	p.command.WaitDelay = time.Second // a grandchild that holds the output must not hold us
	stdout, stderr := &lineWriter{out: log}, &lineWriter{out: log}
	p.command.Stdout, p.command.Stderr = stdout, stderr
	p.started = time.Now()
	if err := p.startAndWait(func() {
		stdout.flush()
		stderr.flush()
	}); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("start %s: %w", spec.Bootstrap, err)
	}
	go func() { _ = p.server.Serve(listener) }() // ends with the process
	return p, nil
}

// startAndWait starts the program from a thread that lives as long as the program does: the kernel's signal that the parent died
// follows the thread, not the process. written is called once all output has come.
func (p *process) startAndWait(onOutputDone func()) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.command.Start()
		started <- err
		if err != nil {
			return
		}
		err = p.command.Wait()
		onOutputDone()
		p.markExited(err)
	}()
	return <-started
}

// processEnvironment is what the program sees: the function's own variables and those that the Lambda runtime sets.
// AWS_EXECUTION_ENV is left out on purpose: it marks the real service.
func processEnvironment(spec Spec, address string) []string {
	runtimeVariables := map[string]string{
		"AWS_LAMBDA_RUNTIME_API":          address,
		"AWS_LAMBDA_FUNCTION_NAME":        spec.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(spec.Memory),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + spec.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      "local",
		"LAMBDA_TASK_ROOT":                filepath.Dir(spec.Bootstrap),
		"_HANDLER":                        "bootstrap",
		"PATH":                            "/usr/local/bin:/usr/bin:/bin",
		"TZ":                              ":UTC",
	}
	var list []string
	for name, value := range spec.Env {
		if _, reserved := runtimeVariables[name]; !reserved {
			list = append(list, name+"="+value)
		}
	}
	for name, value := range runtimeVariables {
		list = append(list, name+"="+value)
	}
	return list
}

// markExited notes that the process is gone.
func (p *process) markExited(err error) {
	p.mu.Lock()
	p.exitReason = "exit status 0"
	if err != nil {
		p.exitReason = err.Error()
	}
	p.mu.Unlock()
	_ = p.server.Close()
	close(p.exited)
}

// kill ends the process and whatever it started. It may be called many times.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	select {
	case <-p.exited: // its id may be another's by now
	default:
		killGroup(p.command.Process)
	}
}

// isStopping tells whether the process was told to end, or will end of itself because its start failed.
func (p *process) isStopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// invoke hands an event to the process and waits for what becomes of it. taken is false where the process never came
// for the event: then nothing was run, and the result says why.
func (p *process) invoke(event Event, coldStarted bool, spec Spec) (result Result, accepted bool) {
	d := &invocation{event: event, timeout: spec.Timeout, result: make(chan Result, 1)}
	initTimer := time.NewTimer(spec.InitTimeout)
	defer initTimer.Stop()
	select {
	case p.pending <- d:
	case <-p.exited:
		return p.startErrorResult(event.ID), false
	case <-initTimer.C:
		p.kill()
		<-p.exited
		return errorResult("Sandbox.Timedout", event.ID, fmt.Sprintf("no request for an event within %s", spec.InitTimeout)), false
	}
	started := time.Now()
	result = p.awaitResult(d)
	result.Duration = time.Since(started)
	if coldStarted {
		result.ColdStart = p.coldStart()
	}
	return result, true
}

// awaitResult waits for the answer to an event that the process took.
func (p *process) awaitResult(d *invocation) Result {
	timeoutTimer := time.NewTimer(d.timeout)
	defer timeoutTimer.Stop()
	select {
	case r := <-d.result:
		return r
	case <-timeoutTimer.C:
		p.kill()
		<-p.exited
	case <-p.exited:
	}
	select {
	case r := <-d.result: // it answered, and ended at once
		return r
	default:
	}
	if p.isStopping() {
		return errorResult("Sandbox.Timedout", d.event.ID, fmt.Sprintf("Task timed out after %.2f seconds", d.timeout.Seconds()))
	}
	return errorResult("Runtime.ExitError", d.event.ID, "Runtime exited: "+p.exitError())
}

// startErrorResult is the result of a process that ended before it asked for the event.
func (p *process) startErrorResult(id string) Result {
	p.mu.Lock()
	document := p.initError
	p.mu.Unlock()
	if document != nil {
		return Result{Payload: document, FunctionError: true}
	}
	return errorResult("Runtime.ExitError", id, "Runtime exited: "+p.exitError())
}

func (p *process) exitError() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exitReason
}

func (p *process) coldStart() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.firstPoll.Sub(p.started)
}

// lockedWriter lets several processes write to one log.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write passes one line on.
func (w *lockedWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(line)
}
