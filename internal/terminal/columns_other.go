//go:build !unix

package terminal

import "os"

// Columns returns 0: this system's terminals are not queried, and are written to as pipes are.
func Columns(*os.File) int { return 0 }
