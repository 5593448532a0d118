package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accounts.json")
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-credentials", path}, writer)
		_ = writer.Close()
	}()
	line := make([]byte, 200)
	count, err := reader.Read(line)
	_, address, found := strings.Cut(strings.TrimSpace(string(line[:count])), "gateway-stubs: ")
	if err != nil || !found {
		t.Fatalf("first line %q: %v", line[:count], err)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	response, err := http.Get(address + "/wave/stub/v1/effects")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v: %v", response, err)
	}
	_ = response.Body.Close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of accounts: %v, want mode 0600: %v", info, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRunListensOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{":3005", "0.0.0.0:3005", "3005"} {
		err := run(t.Context(), []string{"-listen", address}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "listen on 127.0.0.1") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
