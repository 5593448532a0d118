package dynoxide

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestStartAnswersAndStops(t *testing.T) {
	server, err := Start(context.Background(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if server.PID() <= 0 {
		t.Fatalf("PID = %d", server.PID())
	}
	response, err := http.Get(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	server.Stop()
	if _, err := http.Get(server.Endpoint()); err == nil {
		t.Fatal("it answers after Stop")
	}
}

func TestTwoServersAtOnce(t *testing.T) {
	first, err := Start(context.Background(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Stop)
	second, err := Start(context.Background(), filepath.Join(t.TempDir(), "data.db"), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Stop)
	if first.Endpoint() == second.Endpoint() {
		t.Fatal("both have one address")
	}
}

func TestPortInUseSaysWhatToDo(t *testing.T) {
	first, err := Start(context.Background(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Stop)
	_, err = Start(context.Background(), "", first.port)
	if err == nil || !strings.Contains(err.Error(), "the port is in use") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error = %v", err)
	}
}

func TestNpmMissingSaysWhatToDo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := installInto(context.Background(), filepath.Join(t.TempDir(), "tool"))
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
