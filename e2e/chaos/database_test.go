//go:build linux

package chaos

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/dynoxide"
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
		server, err = dynoxide.StartAgain(ctx, d.path, strings.TrimPrefix(d.address, "http://"))
	}
	if err != nil {
		return fmt.Errorf("start the database: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.server = server
	return nil
}

// restart starts the process after kill. It repeats that, because for a moment another connection may have the port.
// If it fails, the error shows the sockets of the port.
func (d *database) restart() error {
	err := harness.Poll(context.Background(), portTimeout, d.start)
	if err != nil {
		return fmt.Errorf("%w; sockets of its port: %s", err, socketsOf(d.address))
	}
	return nil
}

// socketsOf returns the lines of /proc/net/tcp and tcp6 whose local port is that of an address.
func socketsOf(address string) string {
	local := netip.MustParseAddrPort(strings.TrimPrefix(address, "http://"))
	suffix := fmt.Sprintf(":%04X", local.Port())
	var sockets []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); strings.HasSuffix(fields[1], suffix) {
				sockets = append(sockets, strings.Join(fields, " "))
			}
		}
	}
	return strings.Join(sockets, "; ")
}

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
