//go:build !linux

package runtimeapi

import (
	"os"
	"syscall"
)

// processAttributes returns nil: this kernel cannot tie a child to its parent, so the parent must stop its children.
func processAttributes() *syscall.SysProcAttr { return nil }

// killGroup kills a process.
func killGroup(process *os.Process) { _ = process.Kill() }
