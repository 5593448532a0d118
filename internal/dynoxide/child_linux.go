package dynoxide

import (
	"os/exec"
	"syscall"
)

// tieToParent makes the kernel kill the child when its parent dies. It also shields the child from a terminal's Ctrl-C,
// because the parent stops it.
func tieToParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
