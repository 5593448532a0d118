package imports

import (
	"path/filepath"
	"testing"
)

// maxFolderFiles is how many files outside tests a folder may have. More is a sign of a missing folder.
const maxFolderFiles = 15

// TestFolderSizes checks the number of files in each folder.
func TestFolderSizes(t *testing.T) {
	for _, s := range loadTree(t).Packages {
		seen := map[string]bool{}
		for _, f := range s.Files {
			seen[filepath.Base(f.Name)] = true
		}
		if len(seen) > maxFolderFiles {
			t.Errorf("%s has %d files, want at most %d: find the folder that is missing", s.Path, len(seen),
				maxFolderFiles)
		}
	}
}
