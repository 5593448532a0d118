package repository_test

import (
	"os"
	"path/filepath"
	"testing"

	"mobilegateway/internal/repository"
)

func TestRoot(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(folder, "a", "go.mod") // a folder of that name is not the root
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	if found, err := repository.Root(); err == nil {
		t.Errorf("without a go.mod the root is %s, want an error", found)
	}
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := repository.Root(); err != nil || found != folder {
		t.Errorf("the root is %q, %v, want %q", found, err, folder)
	}
}
