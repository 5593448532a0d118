//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Columns returns the width of a terminal in characters, 0 for a file that is none. A user may change it at any time.
func Columns(file *os.File) int {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
