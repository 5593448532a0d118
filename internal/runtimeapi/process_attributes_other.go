//go:build !linux

package runtimeapi

import (
	"os"
	"syscall"
)

// processAttributes is nothing where the kernel cannot tie a child to its parent: the parent ends its children itself.
func processAttributes() *syscall.SysProcAttr { return nil }

// killGroup ends a process.
func killGroup(process *os.Process) { _ = process.Kill() }
