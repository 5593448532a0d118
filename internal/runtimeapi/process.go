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
	work    chan *delivery
	exited  chan struct{} // closed once the process is gone and its output is written

	mu         sync.Mutex
	firstAsk   time.Time // when it first asked for an event
	current    *delivery // the event it works on
	initError  []byte    // the error document of its start
	killed     bool
	exitReason string
}

// delivery is an event on its way through a process.
type delivery struct {
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
	p := &process{work: make(chan *delivery), exited: make(chan struct{})}
	p.server = &http.Server{Handler: p.routes(), ReadHeaderTimeout: 5 * time.Second}
	p.command = exec.Command(spec.Bootstrap)
	p.command.Dir = filepath.Dir(spec.Bootstrap)
	p.command.Env = environment(spec, listener.Addr().String())
	p.command.SysProcAttr = processAttributes()
	p.command.WaitDelay = time.Second // a grandchild that holds the output must not hold us
	stdout, stderr := &lineWriter{to: log}, &lineWriter{to: log}
	p.command.Stdout, p.command.Stderr = stdout, stderr
	p.started = time.Now()
	if err := p.run(func() {
		stdout.flush()
		stderr.flush()
	}); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("start %s: %w", spec.Bootstrap, err)
	}
	go func() { _ = p.server.Serve(listener) }() // ends with the process
	return p, nil
}

// run starts the program from a thread that lives as long as the program does: the kernel's signal that the parent died
// follows the thread, not the process. written is called once all output has come.
func (p *process) run(written func()) error {
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
		written()
		p.end(err)
	}()
	return <-started
}

// environment is what the program sees: the function's own variables and those that the Lambda runtime sets.
// AWS_EXECUTION_ENV is left out on purpose: it marks the real service.
func environment(spec Spec, address string) []string {
	own := map[string]string{
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
		if _, reserved := own[name]; !reserved {
			list = append(list, name+"="+value)
		}
	}
	for name, value := range own {
		list = append(list, name+"="+value)
	}
	return list
}

// end notes that the process is gone.
func (p *process) end(err error) {
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

// dying tells whether the process was told to end, or will end of itself because its start failed.
func (p *process) dying() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// serve hands an event to the process and waits for what becomes of it. taken is false where the process never came
// for the event: then nothing was run, and the result says why.
func (p *process) serve(event Event, cold bool, spec Spec) (result Result, taken bool) {
	d := &delivery{event: event, timeout: spec.Timeout, result: make(chan Result, 1)}
	asking := time.NewTimer(spec.InitTimeout)
	defer asking.Stop()
	select {
	case p.work <- d:
	case <-p.exited:
		return p.startFailure(event.ID), false
	case <-asking.C:
		p.kill()
		<-p.exited
		return failure("Sandbox.Timedout", event.ID, fmt.Sprintf("no request for an event within %s", spec.InitTimeout)), false
	}
	began := time.Now()
	result = p.await(d)
	result.Duration = time.Since(began)
	if cold {
		result.ColdStart = p.coldStart()
	}
	return result, true
}

// await waits for the answer to an event that the process took.
func (p *process) await(d *delivery) Result {
	limit := time.NewTimer(d.timeout)
	defer limit.Stop()
	select {
	case r := <-d.result:
		return r
	case <-limit.C:
		p.kill()
		<-p.exited
	case <-p.exited:
	}
	select {
	case r := <-d.result: // it answered, and ended at once
		return r
	default:
	}
	if p.dying() {
		return failure("Sandbox.Timedout", d.event.ID, fmt.Sprintf("Task timed out after %.2f seconds", d.timeout.Seconds()))
	}
	return failure("Runtime.ExitError", d.event.ID, "Runtime exited: "+p.reason())
}

// startFailure is the result of a process that ended before it asked for the event.
func (p *process) startFailure(id string) Result {
	p.mu.Lock()
	document := p.initError
	p.mu.Unlock()
	if document != nil {
		return Result{Payload: document, FunctionError: true}
	}
	return failure("Runtime.ExitError", id, "Runtime exited: "+p.reason())
}

func (p *process) reason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exitReason
}

func (p *process) coldStart() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.firstAsk.Sub(p.started)
}

// lockedWriter lets several processes write to one log.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write passes one line on.
func (w *lockedWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(line)
}
