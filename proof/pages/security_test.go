package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityTestsExist checks that docs/security.md names only tests that the tree has, and at least one in each row
// of its tables of OWASP.
func TestSecurityTestsExist(t *testing.T) {
	text := readFile(t, securityPage)
	exists := testNames(t)
	for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(text, -1) {
		if !exists[name[1]] {
			t.Errorf("docs/security.md names %s, which no package has", name[1])
		}
	}
	rows := 0
	for _, title := range []string{"OWASP API Security Top 10", "OWASP ASVS, level 2"} {
		for _, cells := range tableRows(t, securityPage, title)[1:] {
			rows++
			if proof := cells[len(cells)-1]; !strings.Contains(proof, "`") && !strings.Contains(proof, "simulator") {
				t.Errorf("the row names nothing that shows it: %s", cells)
			}
		}
	}
	if rows < 20 {
		t.Errorf("docs/security.md has %d rows of OWASP, want at least 20", rows)
	}
}

// TestSecurityLinksLeakRunbooks checks that docs/security.md links each runbook for something that leaked.
func TestSecurityLinksLeakRunbooks(t *testing.T) {
	text := readFile(t, securityPage)
	count := 0
	for _, title := range runbooks {
		if !strings.HasSuffix(title, " leaked") {
			continue
		}
		count++
		anchor := strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(title), "'", ""), " ", "-")
		if link := "(operations.md#" + anchor + ")"; !strings.Contains(text, link) {
			t.Errorf("docs/security.md has no link %s", link)
		}
	}
	if count < 5 {
		t.Errorf("%d runbooks for leaks, want at least 5", count)
	}
}

// testNames returns the names of all tests of the tree.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, folder := range pathRoots {
		err := filepath.WalkDir("../../"+folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, name := range declared.FindAllSubmatch(text, -1) {
				found[string(name[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
