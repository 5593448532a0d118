//go:build linux

package chaos

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mobilegateway/world/dynoxide"
)

// database is the gateway's database. It outlives its process: a killed one starts again on the same port and file.
type database struct {
	path, address string

	mu     sync.Mutex
	server *dynoxide.Server
}

// startDatabase starts the database and stops it when the test ends. A full disk must not end it by a signal, so it
// inherits that SIGXFSZ is ignored.
func startDatabase(t *testing.T, path string) *database {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	d := &database{path: path}
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	d.address = d.server.Endpoint()
	t.Cleanup(func() { d.current().Stop() })
	return d
}

// start starts the process, at the address of the one before if there was one.
func (d *database) start() error {
	ctx := context.Background()
	var server *dynoxide.Server
	var err error
	if d.address == "" {
		server, err = dynoxide.Start(ctx, d.path)
	} else {
		server, err = dynoxide.StartAgain(ctx, d.path, d.host())
	}
	if err != nil {
		return fmt.Errorf("start the database: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.server = server
	return nil
}

// restart starts the process after kill.
func (d *database) restart() error { return listenAgain(d.host(), d.start) }

// host returns the address without its scheme.
func (d *database) host() string { return strings.TrimPrefix(d.address, "http://") }

// current returns the last started process.
func (d *database) current() *dynoxide.Server {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.server
}

// kill kills the process with SIGKILL and waits for its end.
func (d *database) kill() error {
	server := d.current()
	err := syscall.Kill(server.PID(), syscall.SIGKILL)
	<-server.Exited()
	return err
}

// limitFileSize lets writes behind a position in a file fail, as they do on a full disk. No privilege is needed.
func (d *database) limitFileSize(bytes uint64) error {
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	return unix.Prlimit(d.current().PID(), unix.RLIMIT_FSIZE, &limit, nil)
}

// freeDisk ends limitFileSize.
func (d *database) freeDisk() error { return d.limitFileSize(unix.RLIM_INFINITY) }
