//go:build !linux

package dynoxide

import "os/exec"

// tieToParent does nothing on this system: the parent must call Stop.
func tieToParent(*exec.Cmd) {}
