package runtimeapi

import (
	"os"
	"syscall"
)

// processAttributes puts a process into its own group, so that an interrupt from the keyboard reaches only the parent,
// which then stops its children. The kernel kills the process if the parent dies first.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills a process and its group.
func killGroup(process *os.Process) { _ = syscall.Kill(-process.Pid, syscall.SIGKILL) }
