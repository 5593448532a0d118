//go:build !unix

package file

// Lock does nothing on this system, where only package dynoxide uses it. Parallel installations are harmless there,
// because each one renames a whole folder.
func Lock(string) (unlock func(), err error) { return func() {}, nil }
