package childprocess

import (
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// KillGroup kills a child and its process group.
func KillGroup(child *os.Process) { _ = syscall.Kill(-child.Pid, syscall.SIGKILL) }

func terminateGroup(child *os.Process) error { return syscall.Kill(-child.Pid, syscall.SIGTERM) }
