//go:build !unix

package file

import "io/fs"

// Lock does nothing on this system, where only package dynoxide uses it. Parallel installations are harmless there,
// because each one renames a whole folder.
func Lock(string) (unlock func(), err error) { return func() {}, nil }

// TryLock does nothing on this system, where only gatewayctl uses it: two commands must not share a work folder there.
func TryLock(string) (unlock func(), err error) { return func() {}, nil }

const noFollow = 0

// isOwn accepts every file: this system has no owners in the form of Unix.
func isOwn(fs.FileInfo) bool { return true }
