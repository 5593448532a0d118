package gatewayctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"mobilegateway/gatewayctl/console"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// runner runs commands for a console. A tool runs one command at a time, so it keeps as many as ran at once.
type runner struct {
	system deployment.System

	mu   sync.Mutex
	idle []*worker
}

// worker is a tool with the stores to which it is connected: another connection of AWS costs a handshake.
type worker struct {
	*Tool
	connected connection
	stores    *deployment.Stores
}

// connection identifies what a tool connects to, and its credentials.
type connection struct {
	names     deployment.Names
	variables string
}

// connectionVariables are the variables that change a connection.
var connectionVariables = []string{
	"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SECRETS_MANAGER",
	"AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "AUDIT_LOG_FILE",
}

// connect returns the stores of the last command, if this one connects to the same.
func (w *worker) connect(
	open func(deployment.System, deployment.Names) (*deployment.Stores, error), system deployment.System,
	names deployment.Names,
) (*deployment.Stores, error) {
	to := connection{names: names}
	for _, name := range connectionVariables {
		to.variables += system.Getenv(name) + "\x00"
	}
	if w.stores == nil || w.connected != to {
		stores, err := open(system, names)
		if err != nil {
			return nil, err
		}
		w.stores, w.connected = stores, to
	}
	copied := *w.stores
	return &copied, nil
}

// NewRunner returns a function that runs command lines of the tool, also several at once. The system's writers are not
// used, and its standard input is empty: no command of the console reads it.
func NewRunner(system deployment.System) console.Run {
	system.Stdin = strings.NewReader("")
	return (&runner{system: system}).run
}

func (r *runner) run(ctx context.Context, arguments []string, stdout, stderr io.Writer) (code int) {
	w, err := r.take()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return ExitFailed
	}
	defer func() { // a defect of one command must not end the console, and its tool runs no other one
		if recovered := recover(); recovered != nil {
			fmt.Fprintln(stderr, "the command has a defect:", recovered)
			code = ExitFailed
			return
		}
		r.put(w)
	}()
	system := r.system
	system.Stdout, system.Stderr = stdout, stderr
	system.Connect = func(system deployment.System, names deployment.Names) (*deployment.Stores, error) {
		return w.connect(r.system.Connect, system, names)
	}
	return w.Run(ctx, arguments, system)
}

// take returns a worker that runs no command.
func (r *runner) take() (*worker, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.idle) - 1; last >= 0 {
		w := r.idle[last]
		r.idle = r.idle[:last]
		return w, nil
	}
	tool, err := NewTool()
	return &worker{Tool: tool}, err
}

func (r *runner) put(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = append(r.idle, w)
}

// LocalConsole is where a local run serves its console. The system needs no writers.
type LocalConsole struct {
	System     deployment.System
	Dir        string // of the run
	Port       string // of the console
	SandboxURL string
}

// New returns the console, with acts. Each of its commands works on the run by --local.
func (l LocalConsole) New() (*console.Console, error) {
	system, getenv := l.System, l.System.Getenv
	system.Getenv = func(name string) string {
		if name == session.LocalVariable {
			return l.Dir
		}
		return getenv(name)
	}
	return console.New(console.Config{
		Run: NewRunner(system), Global: []string{"--" + session.LocalFlag}, Now: system.Now, Rand: system.Rand,
		Port: l.Port, AllowChanges: true, Local: true, SandboxURL: l.SandboxURL,
	})
}

// consoleRun returns what the command console runs its commands with. They work on the deployment of its own flags.
func consoleRun(s *session.Session) console.Run {
	system, flags := s.System, map[string]string{}
	if !s.Local {
		names, values := output.Cells(s.Names, "variable")
		for i, name := range names {
			flags[name] = values[i]
		}
	}
	getenv := system.Getenv
	system.Getenv = func(name string) string { return cmp.Or(flags[name], getenv(name)) }
	return NewRunner(system)
}
