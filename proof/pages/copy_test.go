package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// copyCheckout copies the tree without the output of builds and runs, as a fresh clone, and returns the folder.
func copyCheckout(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "mobilegateway")
	err := filepath.WalkDir(rootDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(ignored, entry.Name()) {
			return fs.SkipDir
		}
		relative, err := filepath.Rel(rootDir, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, relative), 0o755)
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, relative), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}
