package imports

import (
	"path/filepath"
	"testing"
)

// maxFolderFiles is how many files outside tests a folder may have. More is a sign of a missing folder.
const maxFolderFiles = 15

// largeFolder is a folder that may have more files, and why.
type largeFolder struct {
	files  int
	reason string
}

func largeFolders() map[string]largeFolder {
	return map[string]largeFolder{
		"world/operators/sandbox": {17, "it has a second kit of its own, beside the one that the stubs share"},
	}
}

// TestFolderSizes checks the number of files in each folder. An exception that is no longer needed fails too.
func TestFolderSizes(t *testing.T) {
	exceptions := largeFolders()
	for _, s := range loadTree(t).Packages {
		limit, exception := maxFolderFiles, exceptions[s.Path]
		if exception.reason != "" {
			limit = exception.files
			delete(exceptions, s.Path)
		}
		seen := map[string]bool{}
		for _, f := range s.Files {
			seen[filepath.Base(f.Name)] = true
		}
		switch {
		case len(seen) > limit:
			t.Errorf("%s has %d files, want at most %d: find the folder that is missing", s.Path, len(seen), limit)
		case exception.reason != "" && len(seen) < limit:
			t.Errorf("%s has %d files: lower its exception of %d, or remove it", s.Path, len(seen), limit)
		}
	}
	for folder := range exceptions {
		t.Errorf("%s has an exception, and no package", folder)
	}
}
