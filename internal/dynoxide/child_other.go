//go:build !linux

package dynoxide

import "os/exec"

// tieToParent has no such means here: the parent must call Stop.
func tieToParent(*exec.Cmd) {}
