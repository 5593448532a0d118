package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"mobilegateway/internal/local/awscalls"
	"mobilegateway/internal/local/dynamo"
	"mobilegateway/internal/local/file"
	"mobilegateway/internal/local/inbox"
	"mobilegateway/internal/local/secrets"
	"mobilegateway/internal/runtimeapi"
	"mobilegateway/internal/sandbox"
	"mobilegateway/internal/template"
)

// drainTimeout is how long requests under way get at the end.
const drainTimeout = 2 * time.Second

// Gateway is a running gateway.
type Gateway struct {
	config   Config
	template *template.Template
	console  *console

	listeners      listeners
	recorder       *awscalls.Recorder
	dynamoURL      string // of the engine itself
	dynamoProxyURL string // of what stands in front of it and records
	dynamoPID      int    // 0 where the engine is another's
	dynamoClient   *dynamo.Client
	secretsURL     string
	secrets        *secrets.Store
	sandbox        *sandbox.Sandbox
	inbox          *inbox.Inbox
	functions      map[string]*runtimeapi.Function // by logical id
	failed         chan error

	info             Info
	sandboxToken     string
	processesChanged chan struct{} // something started or ended: run.json is to be written anew

	closeOnce sync.Once
	closers   []func()
}

// listeners are the open ports.
type listeners struct{ api, sandbox, inbox, secrets, dynamoProxy net.Listener }

// Start starts everything and returns when everything answers. ctx bounds the start; what runs then runs until Close.
// Its errors are one line that says what to do, but for a program that does not compile.
func Start(ctx context.Context, config Config) (*Gateway, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Gateway{
		config: config, functions: map[string]*runtimeapi.Function{},
		failed: make(chan error, 8), processesChanged: make(chan struct{}, 1),
	}
	r.console = &console{out: r.config.Out, now: r.config.Now}
	steps := []func(context.Context) error{
		r.lockDataDir, r.listen, r.readTemplate, r.build, r.startCallRecorder, r.startSecrets, r.startDynamoDB,
		r.startInbox, r.seed, r.startSandbox, r.startFunctions, r.startAPI, r.startEventSources, r.publishRunFiles,
	}
	for _, step := range steps {
		err := step(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// Close stops everything, in the reverse order of its start, and returns when all children are gone.
func (r *Gateway) Close() {
	r.closeOnce.Do(func() {
		for i := len(r.closers) - 1; i >= 0; i-- {
			r.closers[i]()
		}
	})
}

// Failed gives an error when a part that must live has ended: the run is then of no use and should be closed.
func (r *Gateway) Failed() <-chan error { return r.failed }

// Info is what run.json holds.
func (r *Gateway) Info() Info { return r.info }

// RecordedCalls are the AWS calls that the functions made so far, in order, each kind once. aws-calls.json in the run's folder
// holds the same, and stays there when the run has ended.
func (r *Gateway) RecordedCalls() []awscalls.Call { return r.recorder.Calls() }

// DynamoDBURL is the address of DynamoDB itself. The tools and functions have another, behind which their calls are recorded:
// this one is for a test of so many calls that the record would cost more than they do.
func (r *Gateway) DynamoDBURL() string { return r.dynamoURL }

// Environment gives a tool what it needs to reach the run's tables and secrets, as the functions have it.
func (r *Gateway) Environment() map[string]string {
	environment := r.awsEnvironment()
	for _, f := range r.template.Functions {
		for name, value := range f.Environment {
			if isTableOrSecretVariable(name) {
				environment[name] = value
			}
		}
	}
	return environment
}

func (r *Gateway) onClose(f func()) { r.closers = append(r.closers, f) }

// dataPath is the path of a file that RESET removes.
func (r *Gateway) dataPath(name string) string { return filepath.Join(r.config.Dir, "data", name) }

// lockDataDir makes the folder this run's own, and empties its data where that is wished.
func (r *Gateway) lockDataDir(context.Context) error {
	if err := os.MkdirAll(r.config.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of the data (%w): set LOCAL_DIR to one that this user may write", err)
	}
	unlock, err := file.TryLock(filepath.Join(r.config.Dir, "lock"))
	if errors.Is(err, file.ErrLocked) {
		return fmt.Errorf("another run uses %s: stop it, or set LOCAL_DIR to another folder", r.config.Dir)
	}
	if err != nil {
		return fmt.Errorf("cannot use the folder of the data (%w): set LOCAL_DIR to one that this user may write", err)
	}
	r.onClose(unlock)
	_ = os.Remove(filepath.Join(r.config.Dir, "run.json")) // of a run that was killed
	if r.config.Reset {
		if err := os.RemoveAll(filepath.Join(r.config.Dir, "data")); err != nil {
			return fmt.Errorf("cannot empty %s: %w", r.config.Dir, err)
		}
	}
	for _, folder := range []string{"data", "log"} {
		if err := os.MkdirAll(filepath.Join(r.config.Dir, folder), 0o700); err != nil {
			return fmt.Errorf("cannot make a folder in %s: %w", r.config.Dir, err)
		}
	}
	return nil
}

// listen opens the ports, so that a port in use is found before anything is started.
func (r *Gateway) listen(ctx context.Context) error {
	ports := []struct {
		to   *net.Listener
		port int
	}{{&r.listeners.api, 0}, {&r.listeners.sandbox, 1}, {&r.listeners.inbox, 2}, {&r.listeners.secrets, 0}, {&r.listeners.dynamoProxy, 0}}
	for i, p := range ports {
		port := 0
		if r.config.Port != 0 && i < 3 {
			port = r.config.Port + p.port
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("port %d is in use: stop what listens there, or choose another (make run PORT=4000, or PORT=0 for free ones)", port)
		}
		if err != nil {
			return fmt.Errorf("cannot listen: %w", err)
		}
		r.onClose(func() { _ = listener.Close() })
		*p.to = listener
	}
	return nil
}

// serve serves a handler until Close, which waits a little for requests under way.
func (r *Gateway) serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			r.reportFailure(err)
		}
	}()
	r.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
}

// reportFailure reports that a part ended which must live.
func (r *Gateway) reportFailure(err error) {
	select {
	case r.failed <- err:
	default: // one is enough
	}
}

// listenerURL is a listener's base address.
func listenerURL(listener net.Listener) string { return "http://" + listener.Addr().String() }
