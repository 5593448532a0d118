//go:build !unix

package dynoxide

// lock does nothing on this system. Parallel installations are harmless, because each one renames a whole folder.
func lock(string) (unlock func(), err error) { return func() {}, nil }
