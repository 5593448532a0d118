package lambda

import (
	"crypto/rand"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"mobilegateway/internal/childprocess"
)

// process is one running bootstrap with its own Runtime API, whose address identifies it.
type process struct {
	command *exec.Cmd
	server  *http.Server
	started time.Time
	secret  string // the first part of the API's path: every user of the machine can reach the port
	pending chan *invocation
	freezes bool // while it waits for an event
	killed  atomic.Bool
	exited  chan struct{} // closed once the process has ended and its output is written

	exitReason string // set before exited is closed

	mu        sync.Mutex
	firstPoll time.Time   // when it first requested an event
	current   *invocation // the event that it handles
	initError []byte      // the error document of its failed start
}

// invocation is an event on its way through a process.
type invocation struct {
	event   Event
	timeout time.Duration
	result  chan Result // buffered: one result
}

func startProcess(spec Spec, log *log.Logger) (*process, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the Runtime API: %w", err)
	}
	p := &process{
		secret: rand.Text(), pending: make(chan *invocation), exited: make(chan struct{}), freezes: spec.Freezes,
	}
	p.server = &http.Server{Handler: p.routes(), ReadHeaderTimeout: 5 * time.Second}
	p.command = exec.Command(spec.Bootstrap)
	p.command.Dir = filepath.Dir(spec.Bootstrap)
	p.command.Env = processEnvironment(spec, listener.Addr().String()+"/"+p.secret)
	p.command.WaitDelay = time.Second // do not wait longer for a grandchild that keeps the output open
	stdout, stderr := &lineWriter{out: log}, &lineWriter{out: log}
	p.command.Stdout, p.command.Stderr = stdout, stderr
	p.started = time.Now()
	if err := childprocess.Start(p.command, func(err error) {
		stdout.flush()
		stderr.flush()
		p.markExited(err)
	}); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("start %s: %w", spec.Bootstrap, err)
	}
	go func() { _ = p.server.Serve(listener) }() // ends with the process
	return p, nil
}

// processEnvironment returns the function's own variables and those of the Lambda runtime. It omits AWS_EXECUTION_ENV,
// which marks the real service.
func processEnvironment(spec Spec, address string) []string {
	all := map[string]string{}
	maps.Copy(all, spec.Env)
	maps.Copy(all, map[string]string{
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
	})
	var list []string
	for name, value := range all {
		list = append(list, name+"="+value)
	}
	return list
}

func (p *process) markExited(err error) {
	p.exitReason = "exit status 0"
	if err != nil {
		p.exitReason = err.Error()
	}
	_ = p.server.Close()
	close(p.exited)
}

// kill kills the process and its children. Further calls do nothing.
func (p *process) kill() {
	p.killed.Store(true)
	select {
	case <-p.exited: // another process may have its id now
	default:
		childprocess.KillGroup(p.command.Process)
	}
}

// invoke sends an event to the process and waits for the result. accepted is false if the process never requested the
// event. Then it did not run, and the result has the reason.
func (p *process) invoke(event Event, coldStarted bool, spec Spec) (result Result, accepted bool) {
	d := &invocation{event: event, timeout: spec.Timeout, result: make(chan Result, 1)}
	select {
	case p.pending <- d:
	case <-p.exited:
		return p.startErrorResult(event.ID), false
	case <-time.After(spec.InitTimeout):
		p.kill()
		<-p.exited
		text := fmt.Sprintf("no request for an event within %s", spec.InitTimeout)
		return errorResult("Sandbox.Timedout", event.ID, text), false
	}
	started := time.Now()
	result = p.awaitResult(d)
	result.Duration = time.Since(started)
	if coldStarted {
		p.mu.Lock()
		result.ColdStart = p.firstPoll.Sub(p.started)
		p.mu.Unlock()
	}
	return result, true
}

// awaitResult waits for the result of an event that the process received.
func (p *process) awaitResult(d *invocation) Result {
	select {
	case r := <-d.result:
		return r
	case <-time.After(d.timeout):
		p.kill()
		<-p.exited
	case <-p.exited:
	}
	select {
	case r := <-d.result: // it responded and then ended
		return r
	default:
	}
	if p.killed.Load() {
		text := fmt.Sprintf("Task timed out after %.2f seconds", d.timeout.Seconds())
		return errorResult("Sandbox.Timedout", d.event.ID, text)
	}
	return errorResult("Runtime.ExitError", d.event.ID, "Runtime exited: "+p.exitReason)
}

// startErrorResult returns the result for a process that ended before it requested the event.
func (p *process) startErrorResult(id string) Result {
	p.mu.Lock()
	document := p.initError
	p.mu.Unlock()
	if document != nil {
		return Result{Payload: document, FunctionError: true}
	}
	return errorResult("Runtime.ExitError", id, "Runtime exited: "+p.exitReason)
}
