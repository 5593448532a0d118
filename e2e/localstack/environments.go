//go:build linux

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mobilegateway/internal/runtimeapi"
)

// maxEvent is the largest message of LocalStack's executor in bytes: an event of 6 MB, as a JSON string.
const maxEvent = 16 << 20

// environments are the execution environments that LocalStack has started: each is one process of a function, driven by
// the Runtime API of internal/runtimeapi. executor/gateway_executor.py is who asks.
type environments struct {
	// logs is the folder of the functions' logs.
	logs string
	// extra is what every function's environment is given or, with an empty value, loses.
	extra map[string]string

	mu      sync.Mutex
	running map[string]*environment
	// events counts the invocations of each function, and of each function by a schedule.
	events, scheduled map[string]int
}

// environment is one of them.
type environment struct {
	name     string // the function's folder below functions/, such as charge
	function *runtimeapi.Function
	log      io.Closer
}

// newEnvironments begins with none.
func newEnvironments(logs string, extra map[string]string) *environments {
	return &environments{
		logs: logs, extra: extra, running: map[string]*environment{}, events: map[string]int{}, scheduled: map[string]int{},
	}
}

// handler is what the executor calls.
func (e *environments) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /environments/{id}", e.start)
	mux.HandleFunc("POST /environments/{id}/invocations", e.invoke)
	mux.HandleFunc("DELETE /environments/{id}", e.stop)
	return mux
}

// start prepares an environment; its process starts with the first event.
func (e *environments) start(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Function, Bootstrap string
		Timeout, Memory     int // seconds, MB
		Environment         map[string]string
	}
	if !read(w, r, &asked) {
		return
	}
	name := functionName(asked.Function)
	log, err := os.OpenFile(filepath.Join(e.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for variable, value := range e.extra {
		asked.Environment[variable] = value
		if value == "" {
			delete(asked.Environment, variable)
		}
	}
	started := &environment{name: name, log: log, function: runtimeapi.NewFunction(runtimeapi.Spec{
		Name: asked.Function, Bootstrap: asked.Bootstrap, Env: asked.Environment, Memory: asked.Memory,
		Timeout: time.Duration(asked.Timeout) * time.Second, MaxProcesses: 1, Log: log,
	})}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running[r.PathValue("id")] = started
}

// invoke hands an event to an environment and waits for the answer.
func (e *environments) invoke(w http.ResponseWriter, r *http.Request) {
	var asked struct{ ID, ARN, Trace, Payload string }
	if !read(w, r, &asked) {
		return
	}
	e.mu.Lock()
	found := e.running[r.PathValue("id")]
	if found != nil {
		e.events[found.name]++
		if strings.Contains(asked.Payload, `"aws.events"`) {
			e.scheduled[found.name]++
		}
	}
	e.mu.Unlock()
	if found == nil {
		http.Error(w, "there is no such environment", http.StatusNotFound)
		return
	}
	result, err := found.function.Do(r.Context(), runtimeapi.Event{ID: asked.ID, ARN: asked.ARN, Trace: asked.Trace, Payload: []byte(asked.Payload)})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if result.FunctionError {
		w.Header().Set("Function-Error", "yes")
	}
	_, _ = w.Write(result.Payload) // a LocalStack that is gone needs no answer
}

// stop ends an environment.
func (e *environments) stop(_ http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	found := e.running[r.PathValue("id")]
	delete(e.running, r.PathValue("id"))
	e.mu.Unlock()
	if found != nil {
		found.close()
	}
}

func (e *environment) close() {
	e.function.Close()
	_ = e.log.Close()
}

// counts tells how many events a function had, and how many of them from a schedule.
func (e *environments) counts(name string) (all, scheduled int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.events[name], e.scheduled[name]
}

// functionName is the folder of a deployed function: "gateway-ChargeFunction-0a1b2c3d" is charge.
func functionName(deployed string) string {
	for part := range strings.SplitSeq(deployed, "-") {
		if name, found := strings.CutSuffix(part, "Function"); found {
			return strings.ToLower(name)
		}
	}
	return deployed
}

// read decodes a message of the executor.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxEvent)).Decode(into)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}
