package dynoxide

import (
	"path/filepath"
	"regexp"
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

func TestPortInUseSaysWhatToDo(t *testing.T) {
	first := start(t, "")
	_, err := launch(t.Context(), engine(installed(t)), "", first.port)
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
