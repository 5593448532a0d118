// Package dynoxide starts Dynoxide, a DynamoDB-compatible server, as a child process for tests and the local run.
//
// The server is a binary from npm, pinned by npm/package-lock.json and installed on first use into the checkout's
// .local/tools. It never ships. The invariant: a child does not outlive Stop, nor (on Linux) its parent.
//
// Dynoxide 1.2.1 keeps its data in SQLite and slows down as its stream grows. For each write and each read of the
// stream it reads all stream records, and it never deletes one. npm/storage.sql adds what is missing to the data file.
// A SQLite in WebAssembly from npm runs it: the engine accepts no SQL, and a SQLite library for Go brings ten modules
// and half a minute of compiling. `go run ./bench -local` measures the effect. A server in memory gets no index, so a
// table with a stream slows it down.
package dynoxide

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"mobilegateway/internal/childprocess"
)

const (
	// startTimeout bounds how long a child may take until it responds; it takes some 25 ms.
	startTimeout = 10 * time.Second
	// stopTimeout bounds how long a child may take to close its data file before it is killed.
	stopTimeout = 3 * time.Second
	// probeInterval is the pause between two probes of a starting child.
	probeInterval = 5 * time.Millisecond
	// portAttempts bounds how many free ports are tried: another process may take one before the child does.
	portAttempts = 5
)

// Server is one running child.
type Server struct {
	address string // host and port
	command *exec.Cmd
	exited  chan struct{} // closed once the child has ended
	output  *outputHead
	stop    sync.Once
}

// Start runs a server on a free port of this machine (see privateHost), with its data in the file dbPath ("": in
// memory). It returns when the server responds. No other process may have the file open. ctx bounds the start only,
// including the installation; the server runs until Stop. An error is one line that says what to do.
func Start(ctx context.Context, dbPath string) (server *Server, err error) {
	tool, err := install(ctx)
	if err == nil && dbPath != "" {
		err = prepareStorage(ctx, tool, dbPath)
	}
	if err == nil {
		server, err = launchOnFreePort(ctx, engine(tool), dbPath)
	}
	if err != nil {
		return nil, fmt.Errorf("dynoxide: %w", err)
	}
	return server, nil
}

// StartAgain runs a server at the address of one that has ended, host and port, with the same file.
func StartAgain(ctx context.Context, dbPath, address string) (*Server, error) {
	tool, err := install(ctx)
	if err != nil {
		return nil, fmt.Errorf("dynoxide: %w", err)
	}
	return launch(ctx, engine(tool), dbPath, address)
}

// launchOnFreePort runs the binary on a free port and waits until it responds.
func launchOnFreePort(ctx context.Context, binary, dbPath string) (server *Server, err error) {
	for range portAttempts {
		address, err := freeAddress(ctx)
		if err != nil {
			return nil, err
		}
		server, err = launch(ctx, binary, dbPath, address)
		if !errors.Is(err, errPortInUse) {
			return server, err
		}
	}
	return nil, errPortInUse
}

// Endpoint is the server's address as AWS_ENDPOINT_URL_DYNAMODB takes it.
func (s *Server) Endpoint() string { return "http://" + s.address }

// PID is the process ID of the child.
func (s *Server) PID() int { return s.command.Process.Pid }

// Exited returns a channel that is closed when the child has ended, by Stop or by itself.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Stop ends the child and waits for its end. Later calls do nothing.
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

var errPortInUse = errors.New("the port is in use: start again")

// launch runs the binary and waits until it responds.
func launch(ctx context.Context, binary, dbPath, address string) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	arguments := []string{"--host", host, "--port", port}
	if dbPath != "" {
		arguments = append(arguments, "--db-path", dbPath)
	}
	s := &Server{address: address, exited: make(chan struct{}), output: &outputHead{}}
	s.command = exec.CommandContext(context.WithoutCancel(ctx), binary, arguments...)
	s.command.Stdout, s.command.Stderr = s.output, s.output
	// Its output shows how the child ended.
	if err := childprocess.Start(s.command, func(error) { close(s.exited) }); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.waitUntilReady(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// waitUntilReady returns when the child responds. It trusts a response only after the child has printed that it
// listens: another server may be on the port.
func (s *Server) waitUntilReady(ctx context.Context) error {
	for {
		if strings.Contains(s.output.String(), "listening on") && s.responds(ctx) {
			return nil
		}
		select {
		case <-s.exited:
			if strings.Contains(s.output.String(), "in use") {
				return fmt.Errorf("%w (%s)", errPortInUse, s.address)
			}
			return fmt.Errorf("the server ended at its start: %s", lastLine(s.output.String()))
		case <-ctx.Done():
			return fmt.Errorf("the server did not respond at %s: %w", s.address, ctx.Err())
		case <-time.After(probeInterval):
		}
	}
}

func (s *Server) responds(ctx context.Context) bool {
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

// privateHost returns a loopback address that no program guesses. Dynoxide verifies no signature, ignores the Host
// header and allows every origin. So a web page that finds its port can read and change all tables. Linux has
// 127.0.0.0/8; other systems have only 127.0.0.1. Other users of the machine can still list the addresses.
func privateHost() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	random := make([]byte, 3)
	_, _ = rand.Read(random) // it never fails
	for i := range random {
		random[i] = 1 + random[i]%254
	}
	return netip.AddrFrom4([4]byte{127, random[0], random[1], random[2]}).String()
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(privateHost(), "0"))
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// maxOutput bounds how much of a child's output is kept, in bytes.
const maxOutput = 4096

// outputHead keeps the first maxOutput bytes of a child's output. It is safe for concurrent use.
type outputHead struct {
	mutex sync.Mutex
	text  strings.Builder
}

// Write implements io.Writer. It never fails.
func (h *outputHead) Write(p []byte) (int, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if room := maxOutput - h.text.Len(); room > 0 {
		h.text.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// String returns what is kept so far.
func (h *outputHead) String() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.text.String()
}

// lastLine returns the last line of an output that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return cmp.Or(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]), "it printed nothing")
}
