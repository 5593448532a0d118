package imports

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoMachineSpecificText forbids text that is true on one machine only in each file, lock files included: paths
// outside the checkout, and the hosts of package registries. Each machine configures its registries itself.
func TestNoMachineSpecificText(t *testing.T) {
	for _, f := range trackedFiles(t) {
		for _, forbidden := range forbiddenTexts() {
			if line := lineNumber(f.Text, forbidden); line > 0 {
				t.Errorf("%s:%d names %q", f.Name, line, forbidden)
			}
		}
	}
}

// forbiddenTexts returns these words. They are concatenated, so that this file does not contain them.
func forbiddenTexts() []string {
	forbiddenWords := []string{"../" + "shared/spec", "../" + "shared/design", "/" + "work/", "/" + "home/"}
	for _, host := range []string{
		"proxy.golang", "sum.golang", "registry.npmjs", "registry.yarnpkg", "pypi", "files.pythonhosted", "test.pypi",
		"repo.maven.apache", "deb.debian", "static.crates",
	} {
		forbiddenWords = append(forbiddenWords, host+"."+"org")
	}
	return append(forbiddenWords, "repo1.maven."+"org", "index."+"crates.io", "registry."+"npmmirror")
}

// lineNumber returns the number of the first line that contains a word, 0 if there is none.
func lineNumber(text []byte, forbidden string) int {
	at := bytes.Index(text, []byte(forbidden))
	if at < 0 {
		return 0
	}
	return bytes.Count(text[:at], []byte("\n")) + 1
}

// trackedFiles reads all files of the tree but binary files and those that .gitignore names. It does not run git, so
// that an archive of the tree can be checked too.
func trackedFiles(t *testing.T) []*parsedFile {
	t.Helper()
	top := loadTree(t).Root
	ignored := readGitignore(t)
	var files []*parsedFile
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if ignored(relative, entry.IsDir()) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		files = append(files, &parsedFile{Name: relative, Text: text})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readGitignore reads .gitignore and returns whether it matches a path. It understands names, patterns of names, "**/"
// before a path, and the slash after a folder.
func readGitignore(t *testing.T) func(string, bool) bool {
	t.Helper()
	folders, names := []string{".git"}, []string{".git"} // in a linked work tree, .git is a file
	for line := range strings.Lines(readTreeFile(t, ".gitignore")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, everywhere := strings.CutPrefix(strings.TrimSuffix(line, "/"), "**/")
		anchored := strings.Contains(pattern, "/") && !everywhere
		if anchored || strings.Contains(pattern, "**") || strings.Contains(pattern, "!") {
			t.Fatalf(".gitignore: this test does not understand %q", line)
		}
		if strings.HasSuffix(line, "/") {
			folders = append(folders, pattern)
		} else {
			names = append(names, pattern)
		}
	}
	return func(name string, folder bool) bool {
		patterns := names
		if folder {
			patterns = folders
		}
		return slices.ContainsFunc(patterns, func(pattern string) bool { return pathEndsIn(name, pattern) })
	}
}

// pathEndsIn reports whether the last elements of a path match a pattern of as many elements.
func pathEndsIn(name, pattern string) bool {
	elements, wanted := strings.Split(name, "/"), strings.Split(pattern, "/")
	if len(elements) < len(wanted) {
		return false
	}
	matched, err := path.Match(pattern, strings.Join(elements[len(elements)-len(wanted):], "/"))
	return err == nil && matched
}
