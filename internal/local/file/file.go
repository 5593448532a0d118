// Package file replaces small files atomically and locks files. A reader sees the old content or the new one, never a
// part, and only the file's owner can read it.
package file

import (
	"fmt"
	"os"
	"path/filepath"
)

// Replace writes a new file of mode 0600 and renames it to path.
func Replace(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = temporary.Write(content)
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
