//go:build !linux

package childprocess

import (
	"os"
	"syscall"
)

// attributes returns nil: this kernel cannot tie a child to its parent, so the parent must stop its children.
func attributes() *syscall.SysProcAttr { return nil }

// KillGroup kills a child.
func KillGroup(child *os.Process) { _ = child.Kill() }

// FreezeGroup and ThawGroup do nothing on this kernel.
func FreezeGroup(*os.Process) {}

// ThawGroup does nothing on this kernel.
func ThawGroup(*os.Process) {}

func terminateGroup(child *os.Process) error { return child.Signal(syscall.SIGTERM) }
