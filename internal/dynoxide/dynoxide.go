// Package dynoxide starts the embedded DynamoDB-compatible server as a child process, for tests and for the local run.
//
// The server is a binary from a package registry, pinned by npm/package-lock.json, and installed on first use into the
// checkout's .local/tools. It never ships. The invariant: a child does not outlive Stop, nor (on Linux) its parent.
package dynoxide

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// startTimeout bounds how long a child may take to answer; it takes some 25 ms.
	startTimeout = 10 * time.Second
	// stopTimeout is what a child gets to close its data file before it is killed.
	stopTimeout = 3 * time.Second
	// probeEvery is how often a starting child is asked whether it answers.
	probeEvery = 5 * time.Millisecond
	// portTries is how many free ports are tried, as another process may take one between finding and using it.
	portTries = 5
)

// Server is one running child.
type Server struct {
	port    int
	command *exec.Cmd
	exited  chan struct{} // closed once the child has ended
	output  *beginning
	stop    sync.Once
}

// Start runs a server on 127.0.0.1 with its data in the file dbPath ("": in memory), on a port (0: a free one), and
// returns when it answers. ctx bounds the start alone, the installation included; the server runs until Stop. Errors are
// one line that says what to do: npm is missing, the package is not to be had, the port is in use.
func Start(ctx context.Context, dbPath string, port int) (*Server, error) {
	binary, err := install(ctx)
	if err != nil {
		return nil, err
	}
	if port != 0 {
		return launch(ctx, binary, dbPath, port)
	}
	for range portTries {
		var free int
		free, err = freePort(ctx)
		if err != nil {
			return nil, err
		}
		var server *Server
		server, err = launch(ctx, binary, dbPath, free)
		if err == nil {
			return server, nil
		}
		if !errors.Is(err, errPortInUse) {
			return nil, err
		}
	}
	return nil, err
}

// Endpoint is the server's address as AWS_ENDPOINT_URL_DYNAMODB takes it.
func (s *Server) Endpoint() string { return "http://" + s.address() }

// PID is the child's process id.
func (s *Server) PID() int { return s.command.Process.Pid }

// Exited is closed once the child has ended, by Stop or by itself.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Stop ends the child and waits for its end. It may be called more than once.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.command.Process.Signal(os.Interrupt) != nil {
			_ = s.command.Process.Kill()
		}
		select {
		case <-s.exited:
		case <-time.After(stopTimeout):
			_ = s.command.Process.Kill()
		}
	})
	<-s.exited
}

func (s *Server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

var errPortInUse = errors.New("dynoxide: the port is in use: choose another, or 0 for a free one")

// launch runs the binary and waits until it answers.
func launch(ctx context.Context, binary, dbPath string, port int) (*Server, error) {
	arguments := []string{"--host", "127.0.0.1", "--port", strconv.Itoa(port)}
	if dbPath != "" {
		arguments = append(arguments, "--db-path", dbPath)
	}
	s := &Server{port: port, exited: make(chan struct{}), output: &beginning{}}
	s.command = exec.CommandContext(context.WithoutCancel(ctx), binary, arguments...)
	s.command.Stdout, s.command.Stderr = s.output, s.output
	tieToParent(s.command)
	if err := s.run(); err != nil {
		return nil, fmt.Errorf("dynoxide: starting %s: %w", binary, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.await(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// run starts the child from a thread that lives as long as the child: the kernel's "parent died" signal follows the
// thread, not the process.
func (s *Server) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.command.Start()
		started <- err
		if err == nil {
			_ = s.command.Wait() // how it ended shows in its output
			close(s.exited)
		}
	}()
	return <-started
}

// await returns when the child answers. It believes the answer only after the child's own line that it listens, so that
// another server on the port is not taken for it.
func (s *Server) await(ctx context.Context) error {
	for {
		if s.output.contains("listening on") && s.answers(ctx) {
			return nil
		}
		select {
		case <-s.exited:
			if s.output.contains("in use") {
				return fmt.Errorf("%w (%d)", errPortInUse, s.port)
			}
			return fmt.Errorf("dynoxide: the server ended at its start: %s", s.output.last())
		case <-ctx.Done():
			return fmt.Errorf("dynoxide: the server did not answer on port %d: %w", s.port, ctx.Err())
		case <-time.After(probeEvery):
		}
	}
}

func (s *Server) answers(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint(), http.NoBody)
	if err != nil {
		return false
	}
	client := http.Client{Timeout: startTimeout}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxOutput))
	return response.StatusCode == http.StatusOK
}

// freePort finds a port that nobody listens on.
func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("dynoxide: looking for a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// maxOutput bounds what is kept of a child's output, in bytes.
const maxOutput = 4096

// beginning keeps the beginning of what a child prints: it prints a line at its start, and why it could not start.
type beginning struct {
	mutex sync.Mutex
	text  strings.Builder
}

// Write is io.Writer's.
func (t *beginning) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if room := maxOutput - t.text.Len(); room > 0 {
		t.text.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (t *beginning) contains(text string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return strings.Contains(t.text.String(), text)
}

// last is the last line that says something.
func (t *beginning) last() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	line := "it said nothing"
	scanner := bufio.NewScanner(strings.NewReader(t.text.String()))
	for scanner.Scan() {
		if text := strings.TrimSpace(scanner.Text()); text != "" {
			line = text
		}
	}
	return line
}
