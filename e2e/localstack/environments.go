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

	"mobilegateway/world/lambda"
)

// maxEventBytes limits a message of LocalStack's executor, in bytes: an event of 6 MB in a JSON string.
const maxEventBytes = 16 << 20

// environmentPool has the execution environments that LocalStack started through executor/gateway_executor.py. Each is
// one process of a function, driven by the Runtime API of world/lambda.
type environmentPool struct {
	// logs is the folder of the functions' logs.
	logs string

	mu sync.Mutex
	// variableOverrides are set in every function's environment; an empty value removes the variable.
	variableOverrides map[string]string
	running           map[string]*executionEnvironment
	// eventCount counts the invocations of each function, scheduledCount those by a schedule.
	eventCount, scheduledCount map[string]int
}

type executionEnvironment struct {
	name     string // the function's folder below functions/, such as charge
	spec     lambda.Spec
	function *lambda.Function
	log      io.Closer
}

func (e *environmentPool) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /environments/{id}", e.start)
	mux.HandleFunc("POST /environments/{id}/invocations", e.invoke)
	mux.HandleFunc("DELETE /environments/{id}", e.stop)
	return mux
}

// start creates an environment. Its process starts with the first event.
func (e *environmentPool) start(w http.ResponseWriter, r *http.Request) {
	var message struct {
		Function, Bootstrap string
		Timeout, Memory     int // seconds, MB
		Environment         map[string]string
	}
	if !decodeMessage(w, r, &message) {
		return
	}
	name := functionFolder(message.Function)
	log, err := os.OpenFile(filepath.Join(e.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for variable, value := range e.variableOverrides {
		message.Environment[variable] = value
		if value == "" {
			delete(message.Environment, variable)
		}
	}
	spec := lambda.Spec{
		Name: message.Function, Bootstrap: message.Bootstrap, Env: message.Environment, Memory: message.Memory,
		Timeout: time.Duration(message.Timeout) * time.Second, MaxProcesses: 1, Log: log,
	}
	e.running[r.PathValue("id")] = &executionEnvironment{name, spec, lambda.NewFunction(spec), log}
}

// override sets a variable in every function's environment, from the next process on.
func (e *environmentPool) override(variable, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.variableOverrides[variable] = value
	for _, running := range e.running {
		running.spec.Env[variable] = value
		before := running.function
		running.function = lambda.NewFunction(running.spec)
		go before.Close() // it may end an event first
	}
}

func (e *environmentPool) invoke(w http.ResponseWriter, r *http.Request) {
	var message struct{ ID, ARN, Trace, Payload string }
	if !decodeMessage(w, r, &message) {
		return
	}
	e.mu.Lock()
	found := e.running[r.PathValue("id")]
	var function *lambda.Function
	if found != nil {
		function = found.function
		e.eventCount[found.name]++
		if strings.Contains(message.Payload, `"part"`) { // the input of a schedule in template.yaml
			e.scheduledCount[found.name]++
		}
	}
	e.mu.Unlock()
	if found == nil {
		http.Error(w, "the environment does not exist", http.StatusNotFound)
		return
	}
	result, err := function.Invoke(r.Context(), lambda.Event{
		ID: message.ID, ARN: message.ARN, Trace: message.Trace, Payload: []byte(message.Payload),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if result.FunctionError {
		w.Header().Set("Function-Error", "yes")
	}
	_, _ = w.Write(result.Payload) // an error means that LocalStack has ended
}

func (e *environmentPool) stop(_ http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	found := e.running[r.PathValue("id")]
	delete(e.running, r.PathValue("id"))
	e.mu.Unlock()
	if found != nil {
		found.function.Close()
		_ = found.log.Close()
	}
}

// eventCounts returns how many events a function got, and how many of them by a schedule.
func (e *environmentPool) eventCounts(name string) (all, scheduled int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.eventCount[name], e.scheduledCount[name]
}

// functionFolder returns the folder of a deployed function: charge for "gateway-ChargeFunction-0a1b2c3d".
func functionFolder(deployed string) string {
	for part := range strings.SplitSeq(deployed, "-") {
		if name, found := strings.CutSuffix(part, "Function"); found {
			return strings.ToLower(name)
		}
	}
	return deployed
}

func decodeMessage(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxEventBytes)).Decode(into)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}
