// Package childprocess starts child processes for the local run. The invariant: on Linux, a child does not outlive the
// process that started it.
package childprocess

import (
	"os/exec"
	"runtime"
	"time"
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

// Run runs a command of exec.CommandContext, as Start does, and returns the result of Wait. When the context ends, it
// terminates the process group, and kills the command if it has not ended after the grace time.
func Run(command *exec.Cmd, grace time.Duration) error {
	command.Cancel = func() error { return terminateGroup(command.Process) }
	command.WaitDelay = grace
	exited := make(chan error, 1)
	if err := Start(command, func(err error) { exited <- err }); err != nil {
		return err
	}
	return <-exited
}
