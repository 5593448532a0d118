package lambda_test

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

	"github.com/google/go-cmp/cmp"

	"mobilegateway/world/lambda"
)

// TestMain lets the test program be its own bootstrap.
func TestMain(m *testing.M) {
	if mode := os.Getenv("TEST_BOOTSTRAP"); mode != "" {
		os.Exit(bootstrap(mode))
	}
	os.Exit(m.Run())
}

// newFunction returns a function that runs this test program in a mode of bootstrap_test.go.
func newFunction(t *testing.T, mode string, change func(*lambda.Spec)) *lambda.Function {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec := lambda.Spec{
		Name: "test", Bootstrap: program, Timeout: 20 * time.Second,
		Env: map[string]string{"TEST_BOOTSTRAP": mode, "GREETING": "hello"},
	}
	if change != nil {
		change(&spec)
	}
	f := lambda.NewFunction(spec)
	t.Cleanup(f.Close)
	return f
}

func invoke(t *testing.T, f *lambda.Function, payload string) (string, bool) {
	t.Helper()
	result, err := f.Invoke(t.Context(), lambda.Event{Payload: []byte(payload)})
	if err != nil {
		t.Fatalf("Invoke: %v", err)
	}
	return string(result.Payload), result.FunctionError
}

// parseErrorDocument decodes Lambda's error document.
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
		t.Errorf("the PIDs are %v, want [%s]", pids, first)
	}
}

// A process is stopped between two events, also before its first one, and continues with the next.
func TestFreezes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux")
	}
	f := newFunction(t, "serve", func(s *lambda.Spec) { s.Freezes = true })
	first, _ := invoke(t, f, `"pid"`)
	for range 3 {
		for !isStopped(t, first) {
			runtime.Gosched()
		}
		if again, functionError := invoke(t, f, `"pid"`); functionError || again != first {
			t.Fatalf("got %s (function error %v), want the first process %s", again, functionError, first)
		}
	}
}

// isStopped reports whether a signal has stopped a process.
func isStopped(t *testing.T, pid string) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(status, []byte("\nState:\tT"))
}

func TestMaxProcesses(t *testing.T) {
	f := newFunction(t, "serve", func(s *lambda.Spec) { s.MaxProcesses = 3 })
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for range 12 {
		wait.Go(func() {
			result, err := f.Invoke(t.Context(), lambda.Event{Payload: []byte(`"slow"`)})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || result.FunctionError {
				t.Errorf("Invoke: %s %v", result.Payload, err)
			}
			seen[string(result.Payload)]++
		})
	}
	wait.Wait()
	if len(seen) != 3 || len(f.PIDs()) != 3 {
		t.Errorf("12 events at once went to the processes %v, running are %v; want 3", seen, f.PIDs())
	}
}

func TestProcessEnvironmentAndHeaders(t *testing.T) {
	f := newFunction(t, "serve", nil)
	before := time.Now()
	event := lambda.Event{ID: "id-1", Trace: "Root=1-2-3", ARN: "arn:x", Payload: []byte(`"echo"`)}
	r, err := f.Invoke(t.Context(), event)
	if err != nil || r.FunctionError {
		t.Fatalf("%s %v", r.Payload, err)
	}
	type echo struct {
		ID, Trace, ARN, Name, Memory, Greeting, Execution, Home string
		DeadlineMS                                              int64
	}
	var got echo
	if err := json.Unmarshal(r.Payload, &got); err != nil {
		t.Fatal(err)
	}
	want := echo{ // Execution and Home are not the function's own variables
		ID: "id-1", Trace: "Root=1-2-3", ARN: "arn:x", Name: "test", Memory: "128", Greeting: "hello",
		DeadlineMS: got.DeadlineMS,
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("headers and environment differ (-want +got):\n%s", difference)
	}
	deadline := time.UnixMilli(got.DeadlineMS)
	if deadline.Before(before.Add(19*time.Second)) || deadline.After(time.Now().Add(20*time.Second)) {
		t.Errorf("the deadline is %s after the start, want 20 s", deadline.Sub(before))
	}
	if r.ColdStart <= 0 || r.Duration <= 0 {
		t.Errorf("a first event has cold start %s and duration %s, want both positive", r.ColdStart, r.Duration)
	}
}

func TestDefaultIDs(t *testing.T) {
	f := newFunction(t, "serve", nil)
	var ids []string
	for range 2 {
		result, _ := invoke(t, f, `"echo"`)
		var echoed struct{ ID, Trace string }
		if err := json.Unmarshal([]byte(result), &echoed); err != nil {
			t.Fatal(err)
		}
		if len(echoed.ID) != 36 || !strings.HasPrefix(echoed.Trace, "Root=1-") {
			t.Errorf("the generated id is %q and the trace %q", echoed.ID, echoed.Trace)
		}
		ids = append(ids, echoed.ID)
	}
	if ids[0] == ids[1] {
		t.Error("two events have the same id")
	}
}

func TestFunctionErrors(t *testing.T) {
	cases := map[string]struct{ mode, payload, kind, message string }{
		"it reports an error":        {"serve", `"error"`, "Test.Error", "requested"},
		"it dies with the event":     {"serve", `"die"`, "Runtime.ExitError", "exit status 7"},
		"it exceeds its time":        {"serve", `"hang"`, "Sandbox.Timedout", "timed out after 0.50 seconds"},
		"its start ends at once":     {"exit", `{}`, "Runtime.ExitError", "exit status 3"},
		"its start reports an error": {"initerror", `{}`, "Init.Error", "no settings"},
		"its start takes too long":   {"sleep", `{}`, "Sandbox.Timedout", "no request for an event"},
		"its response is too large":  {"serve", `"huge"`, "Function.ResponseSizeTooLarge", "exceeded"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFunction(t, c.mode, func(s *lambda.Spec) {
				if strings.Contains(name, "time") {
					s.Timeout = 500 * time.Millisecond
				}
				if c.mode == "sleep" {
					s.InitTimeout = 200 * time.Millisecond
				}
			})
			result, functionError := invoke(t, f, c.payload)
			kind, message := parseErrorDocument(t, result)
			if !functionError {
				t.Error("the result is not a function error")
			}
			if kind != c.kind || !strings.Contains(message, c.message) {
				t.Errorf("the error is %s: %s, want %s: %s", kind, message, c.kind, c.message)
			}
		})
	}
}

func TestDeadProcessIsReplaced(t *testing.T) {
	for _, payload := range []string{`"die"`, `"hang"`} {
		t.Run(payload, func(t *testing.T) {
			f := newFunction(t, "serve", func(s *lambda.Spec) {
				s.Timeout, s.MaxProcesses = 500*time.Millisecond, 1
			})
			first, _ := invoke(t, f, `"pid"`)
			if _, functionError := invoke(t, f, payload); !functionError {
				t.Fatal("no function error")
			}
			second, functionError := invoke(t, f, `"pid"`)
			if functionError || second == first {
				t.Errorf("after %s the event went to process %s, want another than %s", payload, second, first)
			}
			if n := len(f.PIDs()); n != 1 {
				t.Errorf("%d processes run, want 1", n)
			}
		})
	}
}

func TestDeadIdleProcessIsSkipped(t *testing.T) {
	changes := make(chan struct{}, 8)
	f := newFunction(t, "serve", func(s *lambda.Spec) { s.OnProcessChange = func() { changes <- struct{}{} } })
	invoke(t, f, `"pid"`)
	<-changes // its start
	if err := syscall.Kill(f.PIDs()[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-changes // its end
	if _, functionError := invoke(t, f, `"pid"`); functionError {
		t.Error("function error after an idle process was killed")
	}
}

func TestCallerDisconnectDoesNotStopFunction(t *testing.T) {
	f := newFunction(t, "serve", func(s *lambda.Spec) { s.MaxProcesses = 1 })
	first, _ := invoke(t, f, `"pid"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Invoke(ctx, lambda.Event{Payload: []byte(`"slow"`)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v, want context.Canceled", err)
	}
	if after, _ := invoke(t, f, `"pid"`); after != first {
		t.Errorf("the next event went to process %s, want %s again", after, first)
	}
}

func TestOutputByLine(t *testing.T) {
	var log writeRecorder
	f := newFunction(t, "serve", func(s *lambda.Spec) { s.Log = &log })
	invoke(t, f, `"print"`)
	f.Close()
	for _, want := range []string{"to stdout, in two writes\n", "to stderr\n", "without a newline\n"} {
		if !slices.Contains(log.lines, want) {
			t.Errorf("the log has no line %q: %q", want, log.lines)
		}
	}
}

// writeRecorder stores each Write.
type writeRecorder struct{ lines []string }

func (r *writeRecorder) Write(line []byte) (int, error) {
	if bytes.Count(line, []byte("\n")) != 1 {
		return 0, errors.New("a Write must be one line")
	}
	r.lines = append(r.lines, string(line))
	return len(line), nil
}

func TestCloseStopsAllProcesses(t *testing.T) {
	f := newFunction(t, "serve", nil)
	child, _ := invoke(t, f, `"child"`) // a child process of the function
	working := make(chan bool, 1)
	go func() {
		result, err := f.Invoke(context.Background(), lambda.Event{Payload: []byte(`"hang"`)})
		working <- result.FunctionError || errors.Is(err, lambda.ErrClosed)
	}()
	f.Close()
	if !<-working {
		t.Error("Close did not fail the current event")
	}
	for deadline := time.Now().Add(5 * time.Second); isAlive(child); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("a child process of the function still runs after Close")
		}
	}
	if _, err := f.Invoke(t.Context(), lambda.Event{}); !errors.Is(err, lambda.ErrClosed) {
		t.Errorf("the error after Close is %v, want ErrClosed", err)
	}
}

func TestMissingBootstrap(t *testing.T) {
	f := newFunction(t, "serve", func(s *lambda.Spec) { s.Bootstrap = "/nowhere/bootstrap" })
	if result, functionError := invoke(t, f, `{}`); !functionError || !strings.Contains(result, "/nowhere/bootstrap") {
		t.Errorf("the result is %s, want a function error that names the program", result)
	}
}

// isAlive reports whether a process runs. A zombie does not.
func isAlive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
