//go:build unix

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrLocked is TryLock's error if another process has the lock.
var ErrLocked = errors.New("another process has the lock")

// TryLock locks a file for this process, or fails at once with ErrLocked. The lock ends with unlock or with the
// process, also if that is killed.
func TryLock(path string) (unlock func(), err error) {
	return lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
}

// Lock locks a file and waits until it is free.
func Lock(path string) (unlock func(), err error) { return lock(path, syscall.LOCK_EX) }

func lock(path string, flags int) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), flags)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil // closing ends the lock
}

// noFollow refuses a symbolic link, and does not wait for the other end of a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// isOwn reports whether the user of this process owns a file.
func isOwn(info fs.FileInfo) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}
