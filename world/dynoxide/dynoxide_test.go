package dynoxide

import (
	"net"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// start starts a server that stops when the test ends.
func start(t *testing.T, dbPath string) *Server {
	t.Helper()
	server, err := Start(t.Context(), dbPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// wantOneLine checks that an error is one line that contains a text.
func wantOneLine(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v, want one line with %q", err, text)
	}
}

func TestStartRespondsAndStops(t *testing.T) {
	server := start(t, "")
	if server.PID() <= 0 {
		t.Fatalf("PID = %d", server.PID())
	}
	if !server.responds(t.Context()) {
		t.Fatal("it does not respond")
	}
	server.Stop()
	server.Stop()
	if server.responds(t.Context()) {
		t.Fatal("it responds after Stop")
	}
}

// TestLockWithoutHash: an installation never starts from such a lock.
func TestLockWithoutHash(t *testing.T) {
	lock, err := pins.ReadFile("npm/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkLock(lock); err != nil {
		t.Error(err)
	}
	without := regexp.MustCompile(`\s*"integrity": "[^"]*",`).ReplaceAll(lock, nil)
	wantOneLine(t, checkLock(without), "has no hash for @dynoxide/linux-x64, node-sqlite3-wasm")
}

func TestTwoServersAtOnce(t *testing.T) {
	first := start(t, "")
	second := start(t, filepath.Join(t.TempDir(), "data.db"))
	if first.Endpoint() == second.Endpoint() {
		t.Fatal("both have the same address")
	}
}

// TestAddressIsNotGuessed: the server obeys a web page of any origin, so a page must not find it by trying ports.
func TestAddressIsNotGuessed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has more than one loopback address")
	}
	host, port, err := net.SplitHostPort(start(t, "").address)
	if err != nil || !net.ParseIP(host).IsLoopback() || net.ParseIP(host).Equal(net.IPv4(127, 0, 0, 1)) {
		t.Fatalf("the server listens at %s, want another loopback address: %v", host, err)
	}
	for _, guess := range []string{"127.0.0.1", "::1"} {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort(guess, port))
		if err == nil {
			_ = connection.Close()
			t.Errorf("the server listens at %s too", guess)
		}
	}
}

func TestPortInUseSaysWhatToDo(t *testing.T) {
	first := start(t, "")
	_, err := launch(t.Context(), engine(installed(t)), "", first.address)
	wantOneLine(t, err, "the port is in use")
}

func TestNpmMissingSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := installInto(t.Context(), filepath.Join(t.TempDir(), "tool"))
	wantOneLine(t, err, "npm is not on the PATH")
}

func TestLockFileNamesNoRegistry(t *testing.T) {
	content, err := pins.ReadFile("npm/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), "resolved") || strings.Contains(string(content), "://") {
		t.Fatal("the lock file names a registry")
	}
}
