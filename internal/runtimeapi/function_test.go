package runtimeapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobilegateway/internal/runtimeapi"
)

// TestMain lets the test program be its own bootstrap.
func TestMain(m *testing.M) {
	if mode := os.Getenv("TEST_BOOTSTRAP"); mode != "" {
		os.Exit(bootstrap(mode))
	}
	os.Exit(m.Run())
}

// newFunction makes a function over this test program in a mode of bootstrap_test.go.
func newFunction(t *testing.T, mode string, change func(*runtimeapi.Spec)) *runtimeapi.Function {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec := runtimeapi.Spec{
		Name: "test", Bootstrap: program, Timeout: 20 * time.Second,
		Env: map[string]string{"TEST_BOOTSTRAP": mode, "GREETING": "hello"},
	}
	if change != nil {
		change(&spec)
	}
	f := runtimeapi.NewFunction(spec)
	t.Cleanup(f.Close)
	return f
}

func invoke(t *testing.T, f *runtimeapi.Function, payload string) (string, bool) {
	t.Helper()
	result, functionError, err := f.Invoke(t.Context(), []byte(payload))
	if err != nil {
		t.Fatalf("Invoke: %v", err)
	}
	return string(result), functionError
}

// parseErrorDocument reads Lambda's error document.
func parseErrorDocument(t *testing.T, text string) (kind, message string) {
	t.Helper()
	var d struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("not an error document: %q", text)
	}
	return d.ErrorType, d.ErrorMessage
}

func TestLazyStart(t *testing.T) {
	f := newFunction(t, "serve", nil)
	if pids := f.PIDs(); len(pids) != 0 {
		t.Errorf("processes before the first event: %v", pids)
	}
}

func TestProcessIsReused(t *testing.T) {
	f := newFunction(t, "serve", nil)
	first, _ := invoke(t, f, `"pid"`)
	for range 5 {
		again, functionError := invoke(t, f, `"pid"`)
		if functionError || again != first {
			t.Fatalf("got %s (function error %v), want the first process %s", again, functionError, first)
		}
	}
	if pids := f.PIDs(); len(pids) != 1 || fmt.Sprint(pids[0]) != first {
		t.Errorf("PIDs %v, want [%s]", pids, first)
	}
}

func TestMaxProcesses(t *testing.T) {
	f := newFunction(t, "serve", func(s *runtimeapi.Spec) { s.MaxProcesses = 3 })
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for range 12 {
		wait.Go(func() {
			result, functionError, err := f.Invoke(t.Context(), []byte(`"slow"`))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || functionError {
				t.Errorf("Invoke: %s %v", result, err)
			}
			seen[string(result)]++
		})
	}
	wait.Wait()
	if len(seen) != 3 || len(f.PIDs()) != 3 {
		t.Errorf("12 events at once went to processes %v, living %v; want 3", seen, f.PIDs())
	}
}

func TestProcessEnvironmentAndHeaders(t *testing.T) {
	f := newFunction(t, "serve", nil)
	before := time.Now()
	r, err := f.InvokeEvent(t.Context(), runtimeapi.Event{ID: "id-1", Trace: "Root=1-2-3", ARN: "arn:x", Payload: []byte(`"told"`)})
	if err != nil || r.FunctionError {
		t.Fatalf("%s %v", r.Payload, err)
	}
	var echoed struct {
		ID, Trace, ARN, Name, Memory, Greeting, Execution, Home string
		DeadlineMS                                              int64
	}
	if err := json.Unmarshal(r.Payload, &echoed); err != nil {
		t.Fatal(err)
	}
	if echoed.ID != "id-1" || echoed.Trace != "Root=1-2-3" || echoed.ARN != "arn:x" || echoed.Name != "test" || echoed.Memory != "128" {
		t.Errorf("told %+v", echoed)
	}
	if echoed.Greeting != "hello" || echoed.Execution != "" || echoed.Home != "" {
		t.Errorf("environment not the function's own: %+v", echoed)
	}
	deadline := time.UnixMilli(echoed.DeadlineMS)
	if deadline.Before(before.Add(19*time.Second)) || deadline.After(time.Now().Add(20*time.Second)) {
		t.Errorf("deadline %s after the start, want 20 s", deadline.Sub(before))
	}
	if r.ColdStart <= 0 || r.Duration <= 0 {
		t.Errorf("times of a first event: %s, %s", r.ColdStart, r.Duration)
	}
}

func TestDefaultIDs(t *testing.T) {
	f := newFunction(t, "serve", nil)
	var ids []string
	for range 2 {
		result, _ := invoke(t, f, `"told"`)
		var echoed struct{ ID, Trace string }
		if err := json.Unmarshal([]byte(result), &echoed); err != nil {
			t.Fatal(err)
		}
		if len(echoed.ID) != 36 || !strings.HasPrefix(echoed.Trace, "Root=1-") {
			t.Errorf("told %+v", echoed)
		}
		ids = append(ids, echoed.ID)
	}
	if ids[0] == ids[1] {
		t.Error("two events have one id")
	}
}

func TestFunctionErrors(t *testing.T) {
	cases := map[string]struct{ mode, payload, kind, message string }{
		"it reports an error":          {"serve", `"error"`, "Test.Error", "as asked"},
		"it dies with the event":       {"serve", `"die"`, "Runtime.ExitError", "exit status 7"},
		"it exceeds its time":          {"serve", `"hang"`, "Sandbox.Timedout", "timed out after 0.50 seconds"},
		"its start ends at once":       {"exit", `{}`, "Runtime.ExitError", "exit status 3"},
		"its start reports an error":   {"initerror", `{}`, "Init.Error", "no settings"},
		"its start takes too long":     {"sleep", `{}`, "Sandbox.Timedout", "no request for an event"},
		"its answer is over the limit": {"serve", `"huge"`, "Function.ResponseSizeTooLarge", "exceeded"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFunction(t, c.mode, func(s *runtimeapi.Spec) {
				if strings.Contains(name, "time") {
					s.Timeout = 500 * time.Millisecond
				}
				if c.mode == "sleep" {
					s.InitTimeout = 200 * time.Millisecond
				}
			})
			result, functionError := invoke(t, f, c.payload)
			kind, message := parseErrorDocument(t, result)
			if !functionError || kind != c.kind || !strings.Contains(message, c.message) {
				t.Errorf("function error %v, %s: %s", functionError, kind, message)
			}
		})
	}
}

func TestDeadProcessIsReplaced(t *testing.T) {
	for _, payload := range []string{`"die"`, `"hang"`} {
		t.Run(payload, func(t *testing.T) {
			f := newFunction(t, "serve", func(s *runtimeapi.Spec) { s.Timeout, s.MaxProcesses = 500*time.Millisecond, 1 })
			first, _ := invoke(t, f, `"pid"`)
			if _, functionError := invoke(t, f, payload); !functionError {
				t.Fatal("no function error")
			}
			second, functionError := invoke(t, f, `"pid"`)
			if functionError || second == first {
				t.Errorf("after %s the event went to %s, before to %s", payload, second, first)
			}
			if n := len(f.PIDs()); n != 1 {
				t.Errorf("%d processes live, want 1", n)
			}
		})
	}
}

func TestDeadIdleProcessIsSkipped(t *testing.T) {
	gone := make(chan struct{}, 8)
	f := newFunction(t, "serve", func(s *runtimeapi.Spec) { s.OnProcessChange = func() { gone <- struct{}{} } })
	invoke(t, f, `"pid"`)
	<-gone // its start
	if err := syscall.Kill(f.PIDs()[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-gone // its end
	if _, functionError := invoke(t, f, `"pid"`); functionError {
		t.Error("function error after an idle process was killed")
	}
}

func TestCallerDisconnectDoesNotStopFunction(t *testing.T) {
	f := newFunction(t, "serve", func(s *runtimeapi.Spec) { s.MaxProcesses = 1 })
	first, _ := invoke(t, f, `"pid"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.Invoke(ctx, []byte(`"slow"`)); !errors.Is(err, context.Canceled) {
		t.Fatalf("err %v, want context.Canceled", err)
	}
	if after, _ := invoke(t, f, `"pid"`); after != first {
		t.Errorf("process %s, want the same %s", after, first)
	}
}

func TestOutputByLine(t *testing.T) {
	var log writeRecorder
	f := newFunction(t, "serve", func(s *runtimeapi.Spec) { s.Log = &log })
	invoke(t, f, `"print"`)
	f.Close()
	for _, want := range []string{"to stdout, in two writes\n", "to stderr\n", "without a newline\n"} {
		if !slices.Contains(log.lines, want) {
			t.Errorf("no line %q in %q", want, log.lines)
		}
	}
}

// writeRecorder keeps each Write.
type writeRecorder struct{ lines []string }

func (r *writeRecorder) Write(line []byte) (int, error) {
	if bytes.Count(line, []byte("\n")) != 1 {
		return 0, errors.New("not one line")
	}
	r.lines = append(r.lines, string(line))
	return len(line), nil
}

func TestCloseStopsAllProcesses(t *testing.T) {
	f := newFunction(t, "serve", nil)
	child, _ := invoke(t, f, `"child"`) // a process that it started itself
	working := make(chan bool, 1)
	go func() {
		_, functionError, err := f.Invoke(context.Background(), []byte(`"hang"`))
		working <- functionError || errors.Is(err, runtimeapi.ErrClosed)
	}()
	f.Close()
	if !<-working {
		t.Error("an event in hand ended well")
	}
	for deadline := time.Now().Add(5 * time.Second); isAlive(child); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("a process that the function started is still there")
		}
	}
	if _, _, err := f.Invoke(t.Context(), nil); !errors.Is(err, runtimeapi.ErrClosed) {
		t.Errorf("err %v, want ErrClosed", err)
	}
}

func TestMissingBootstrap(t *testing.T) {
	f := newFunction(t, "serve", func(s *runtimeapi.Spec) { s.Bootstrap = "/nowhere/bootstrap" })
	if result, functionError := invoke(t, f, `{}`); !functionError || !strings.Contains(result, "/nowhere/bootstrap") {
		t.Errorf("got %s", result)
	}
}

// isAlive tells whether a process runs; a dead one may stay listed until its parent has asked for its status.
func isAlive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
