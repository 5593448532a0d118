package dynoxide

import (
	"os/exec"
	"syscall"
)

// tieToParent makes the kernel kill the child when its parent dies, and keeps a terminal's Ctrl-C from reaching it: the
// parent stops it.
func tieToParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
