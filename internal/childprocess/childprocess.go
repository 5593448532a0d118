// Package childprocess starts child processes for the local run. The invariant: on Linux, a child does not outlive the
// process that started it.
package childprocess

import (
	"os/exec"
	"runtime"
)

// Start starts a command in its own process group, so that an interrupt from the keyboard reaches only the parent. The
// parent then stops its children. onExit gets the result of Wait. On Linux the kernel kills the child if the parent
// dies first.
//
// The child starts from a thread that lives as long as the child: the kernel sends the "parent died" signal when the
// thread ends, not the process.
func Start(command *exec.Cmd, onExit func(error)) error {
	command.SysProcAttr = attributes()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			onExit(command.Wait())
		}
	}()
	return <-started
}
