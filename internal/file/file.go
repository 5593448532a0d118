// Package file replaces small files atomically and locks files. A reader sees the old content or the new one, never a
// part, and only the file's owner can read it.
package file

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ownerOnly is the mode of a file that only its owner can read.
const ownerOnly fs.FileMode = 0o600

// ReadJSON decodes a file into a value. A missing file leaves the value as it is.
func ReadJSON(path string, value any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	return nil
}

// ReplaceJSON is Replace with the JSON of a value, indented, and a newline.
func ReplaceJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return Replace(path, append(text, '\n'))
}

// Create makes an empty file of mode 0600, or empties the file that is there.
func Create(path string) (*os.File, error) {
	created, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, ownerOnly)
	if err == nil {
		err = created.Chmod(ownerOnly) // of a file that was there
	}
	return created, err
}

// OpenPrivate opens a file, or makes it with mode 0600 if flags has os.O_CREATE. It refuses a link, and a file that is
// not regular, not the user's own, or open to others: another user may have planted it, or may read it.
func OpenPrivate(path string, flags int) (*os.File, error) {
	opened, err := os.OpenFile(path, flags|noFollow, ownerOnly)
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Mode()&0o077 != 0 || !isOwn(info)) {
		err = fmt.Errorf("%s is not a regular file of yours that only you can read (mode 0600)", path)
	}
	if err != nil {
		_ = opened.Close() // the first error is the cause
		return nil, err
	}
	return opened, nil
}

// Replace writes a new file of mode 0600 and renames it to path.
func Replace(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = temporary.Write(content)
	if err = cmp.Or(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
