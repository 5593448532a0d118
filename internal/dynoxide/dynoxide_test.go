package dynoxide

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestStartRespondsAndStops(t *testing.T) {
	server, err := Start(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
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

func TestTwoServersAtOnce(t *testing.T) {
	first, err := Start(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Stop)
	second, err := Start(t.Context(), filepath.Join(t.TempDir(), "data.db"), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Stop)
	if first.Endpoint() == second.Endpoint() {
		t.Fatal("both have the same address")
	}
}

func TestPortInUseSaysWhatToDo(t *testing.T) {
	first, err := Start(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Stop)
	_, err = Start(t.Context(), "", first.port)
	if err == nil || !strings.Contains(err.Error(), "the port is in use") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error = %v", err)
	}
}

func TestNpmMissingSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := installInto(t.Context(), filepath.Join(t.TempDir(), "tool"))
	if err == nil || !strings.Contains(err.Error(), "npm is not on the PATH") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error = %v", err)
	}
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
