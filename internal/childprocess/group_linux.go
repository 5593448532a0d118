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

// FreezeGroup stops a child and its process group, until ThawGroup.
func FreezeGroup(child *os.Process) { _ = syscall.Kill(-child.Pid, syscall.SIGSTOP) }

// ThawGroup lets a child and its process group continue.
func ThawGroup(child *os.Process) { _ = syscall.Kill(-child.Pid, syscall.SIGCONT) }

func terminateGroup(child *os.Process) error { return syscall.Kill(-child.Pid, syscall.SIGTERM) }
