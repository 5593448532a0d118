package console

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// Run runs a command line of gatewayctl and returns its exit code. It is safe for concurrent use.
type Run func(ctx context.Context, arguments []string, stdout, stderr io.Writer) (code int)

// The exit codes of the tool at which its standard output is the result.
const (
	exitDone    = 0
	exitWaiting = 3
)

// Limits of reading.
const (
	readTimeout   = 10 * time.Second // of a command that a page waits for
	surveyTimeout = 5 * time.Minute  // of a command that runs in the background
	surveyWait    = 150 * time.Millisecond
	// surveyPause is how many durations of a background command pass before the next one.
	surveyPause = 10
	maxKept     = 64       // results
	maxOutput   = 16 << 20 // bytes of one command
	maxParallel = 4        // commands
)

// result is what a command line returned.
type result struct {
	Line  string // for a person to run
	Value any    // the decoded JSON; of an earlier run if Old is set
	At    time.Time
	Notes string // the standard error
	Error string // "" for a command that succeeded
	Old   bool   // the command failed or has not ended: Value is of an earlier run
	Runs  bool   // the command runs in the background, and there is no earlier result
	Took  time.Duration
}

// reader runs the commands of pages. It keeps the last good result of each, for the time in which the stores fail.
type reader struct {
	run    Run
	global []string // the flags before each command
	now    func() time.Time
	slots  chan struct{}

	mu      sync.Mutex
	kept    map[string]result
	surveys map[string]chan struct{} // closed when the command has ended
	failed  map[string]result
	wait    sync.WaitGroup
}

func newReader(run Run, global []string, now func() time.Time) *reader {
	return &reader{
		run: run, global: global, now: now, slots: make(chan struct{}, maxParallel),
		kept: map[string]result{}, surveys: map[string]chan struct{}{}, failed: map[string]result{},
	}
}

// line is a command line for a person. It has no character that a terminal would not show.
func (r *reader) line(arguments ...string) string {
	words := []string{"gatewayctl"}
	for _, word := range slices.Concat(r.global, arguments) {
		words = append(words, session.ShellWord(word))
	}
	return output.EscapeUnprintable(strings.Join(words, " "))
}

// execute runs a command with --json, and decodes its output.
func (r *reader) execute(ctx context.Context, arguments []string) result {
	out, stdout, code := r.output(ctx, arguments)
	if out.Error != "" {
		return out
	}
	if stdout.left < 0 {
		out.Error = "the result has more than 16 MiB: choose less, or run the command line"
		return out
	}
	decoder := json.NewDecoder(stdout)
	decoder.UseNumber()
	err := decoder.Decode(&out.Value)
	if code == exitDone || code == exitWaiting {
		if err != nil {
			out.Error = notJSON(err)
		}
		return out
	}
	return out.failed(ctx)
}

// output runs a command with --json. The result has no value, and an error only if the command did not begin.
func (r *reader) output(ctx context.Context, arguments []string) (out result, stdout *boundedBuffer, code int) {
	out, stdout = result{Line: r.line(arguments...)}, &boundedBuffer{left: maxOutput}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		out.Error, out.At = ctx.Err().Error(), r.now()
		return out, stdout, 0
	}
	stderr, began := boundedBuffer{left: maxOutput}, r.now()
	code = r.run(ctx, withFlags(arguments, append([]string{"--json"}, r.global...)...), stdout, &stderr)
	out.At, out.Took, out.Notes = r.now(), r.now().Sub(began), strings.TrimSpace(stderr.String())
	return out, stdout, code
}

func notJSON(err error) string { return "the command's output is not JSON: " + err.Error() }

// failed completes the result of a command that has failed by its error.
func (out result) failed(ctx context.Context) result {
	out.Error = strings.TrimPrefix(out.Notes, "gatewayctl: ")
	if document, isObject := out.Value.(map[string]any); isObject && document["error"] != nil {
		out.Error, out.Value = text(document["error"]), nil
	}
	if ctx.Err() != nil {
		out.Error = "no response in time: " + out.Error
	}
	return out
}

// boundedBuffer keeps the first bytes that are written. left is negative if there were more.
type boundedBuffer struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(text []byte) (int, error) {
	if b.left -= len(text); b.left >= 0 {
		return b.Buffer.Write(text)
	}
	return len(text), nil
}

// withFlags puts flags behind the words of a command, before its first flag or separator: what follows may be a value.
func withFlags(arguments []string, flags ...string) []string {
	at := slices.IndexFunc(arguments, func(word string) bool { return strings.HasPrefix(word, "-") })
	if at < 0 {
		at = len(arguments)
	}
	return slices.Concat(arguments[:at], flags, arguments[at:])
}

// read runs a command and waits for it. If it fails, the result has the value of the last run that succeeded.
func (r *reader) read(ctx context.Context, arguments ...string) result {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return r.keep(r.execute(ctx, arguments))
}

// store keeps a result, and drops another one if there are too many.
func store(kept map[string]result, out result) {
	for line := range kept {
		if len(kept) < maxKept {
			break
		}
		delete(kept, line)
	}
	kept[out.Line] = out
}

// keep stores a good result, and completes a failed one by the stored one. A usage error has no earlier result.
func (r *reader) keep(out result) result {
	r.mu.Lock()
	defer r.mu.Unlock()
	if out.Error == "" {
		store(r.kept, out)
		return out
	}
	if last, found := r.kept[out.Line]; found && out.Value == nil {
		out.Value, out.At, out.Old = last.Value, last.At, true
	}
	return out
}

// survey is read for a command that may read very many transactions. It runs in the background, one run of a line at a
// time, and not more often than its own duration permits. The page shows the last result with its time.
func (r *reader) survey(arguments ...string) result {
	line := r.line(arguments...)
	r.mu.Lock()
	last, found := r.kept[line]
	ended, running := r.surveys[line]
	if !running && (!found || r.now().Sub(last.At) >= surveyPause*last.Took) {
		ended, running = make(chan struct{}), true
		r.surveys[line] = ended
		r.wait.Go(func() { r.runSurvey(line, arguments, ended) })
	}
	r.mu.Unlock()
	if running {
		timer := time.NewTimer(surveyWait)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, running = r.surveys[line]
	last, found = r.kept[line]
	failed, hasFailed := r.failed[line]
	switch {
	case hasFailed && !running:
		return failed
	case found:
		last.Old = running && r.now().Sub(last.At) > readTimeout
		return last
	}
	return result{Line: line, Runs: true, At: r.now()}
}

func (r *reader) runSurvey(line string, arguments []string, ended chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), surveyTimeout)
	defer cancel()
	out := r.keep(r.execute(ctx, arguments))
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.surveys, line)
	delete(r.failed, line)
	if out.Error != "" {
		store(r.failed, out)
	}
	close(ended)
}
