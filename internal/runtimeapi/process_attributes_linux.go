package runtimeapi

import (
	"os"
	"syscall"
)

// processAttributes puts a process into a group of its own, so that an interrupt from the keyboard reaches only the
// parent, which then ends its children; and has the kernel end it should the parent die without doing so.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup ends a process and its group.
func killGroup(process *os.Process) { _ = syscall.Kill(-process.Pid, syscall.SIGKILL) }
