package imports

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// suppressionDirectives are the words that suppress a finding of a linter or scanner, and the place for the exception
// instead. The words are concatenated, so that this file does not contain them.
func suppressionDirectives() map[string]string {
	return map[string]string{
		"#" + "nosec":             "an exception of gosec is a //nolint with its reason",
		"//lint:" + "ignore":      "an exception of staticcheck is a //nolint with its reason",
		"//lint:" + "file-":       "an exception of staticcheck is a //nolint with its reason, at its line",
		"gitleaks:" + "allow":     "an exception of the secret scan belongs to .gitleaks.toml with its reason",
		"checkov:" + "skip":       "an exception of checkov belongs to the resource's Metadata with its reason",
		"shellcheck " + "disable": "",
	}
}

// TestSuppressionsHaveReasons forbids these words. The word of shellcheck is allowed with a reason behind it.
func TestSuppressionsHaveReasons(t *testing.T) {
	for _, f := range trackedFiles(t) {
		for forbidden, instead := range suppressionDirectives() {
			for at, line := range bytes.Split(f.Text, []byte("\n")) {
				_, rest, found := strings.Cut(string(line), forbidden)
				if found && (instead != "" || !reasoned.MatchString(rest)) && !mayNameSuppressions(f.Name) {
					t.Errorf("%s:%d has %q: %s", f.Name, at+1, forbidden, instead)
				}
			}
		}
	}
}

// reasoned matches what follows the word of shellcheck: its codes and a reason of three words or more.
var reasoned = regexp.MustCompile(`^=SC\d+(,SC\d+)* # \S+ \S+ \S+`)

// mayNameSuppressions reports whether a file configures a linter, or is a check that names these words.
func mayNameSuppressions(name string) bool {
	return slices.Contains([]string{".golangci.yml", ".gitleaks.toml", ".shellcheckrc", "tools/scripts/check"}, name)
}

// TestLintCoversEveryFile finds Go files that neither Linux nor Windows builds: `make lint` checks only what these
// build.
func TestLintCoversEveryFile(t *testing.T) {
	seen := map[string]bool{}
	var left []string
	for _, system := range []string{"linux", "windows"} {
		environment := []string{"CGO_ENABLED=0", "GOOS=" + system}
		rows, err := listPackages(loadTree(t).Root, environment, "-e", "-tags=knownbad", "./...")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			for _, name := range slices.Concat(row.GoFiles, row.TestGoFiles, row.XTestGoFiles) {
				seen[filepath.Join(row.Dir, name)] = true
			}
			for _, name := range row.IgnoredGoFiles {
				left = append(left, filepath.Join(row.Dir, name))
			}
		}
	}
	slices.Sort(left)
	for _, name := range slices.Compact(left) {
		if !seen[name] {
			t.Errorf("%s: make lint does not check it, because neither Linux nor Windows builds it", name)
		}
	}
}

// TestMakefile compares the targets of the Makefile with its help, its .PHONY, and the targets that pages name.
func TestMakefile(t *testing.T) {
	text := readTreeFile(t, "Makefile")
	var targets []string
	for _, row := range regexp.MustCompile(`(?m)^([a-z0-9-]+):(.*)$`).FindAllStringSubmatch(text, -1) {
		targets = append(targets, row[1])
		if !regexp.MustCompile(` ## [A-Za-z].{10,}$`).MatchString(row[2]) {
			t.Errorf("Makefile: %s has no help: ## and a sentence", row[1])
		}
	}
	phony := regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindStringSubmatch(text)
	if phony == nil {
		t.Fatal("Makefile has no .PHONY")
	}
	declared := strings.Fields(phony[1])
	slices.Sort(targets)
	slices.Sort(declared)
	if !slices.Equal(targets, declared) {
		t.Errorf("Makefile: .PHONY has %q, the targets are %q", declared, targets)
	}
	mentioned := regexp.MustCompile("(?:`|^\\s*|^\\$ )make ([a-z][a-z0-9-]*)")
	for _, f := range trackedFiles(t) {
		if filepath.Ext(f.Name) != ".md" && f.Name != ".ci/run" {
			continue
		}
		for at, line := range bytes.Split(f.Text, []byte("\n")) {
			for _, match := range mentioned.FindAllStringSubmatch(string(line), -1) {
				if !slices.Contains(targets, match[1]) {
					t.Errorf("%s:%d names make %s, which is not a target", f.Name, at+1, match[1])
				}
			}
		}
	}
}

// TestSlowTests checks that make test and make test-slow divide all tests by one expression, over all packages. Each
// name of the expression must be a test.
func TestSlowTests(t *testing.T) {
	makefile := readTreeFile(t, "Makefile")
	for _, part := range []string{
		`-skip '^$(slow)$$' ./...`, `-run '^$(slow)$$' \`, `$$(git grep -lE '^func $(slow)\(t ' -- '*_test.go' |`,
	} {
		if strings.Count(makefile, part) != 1 {
			t.Errorf("Makefile: want %s once, or a test is in neither of the two targets", part)
		}
	}
	list := regexp.MustCompile(`(?s)\nSLOW = \\\n(.*?)\n\n`).FindStringSubmatch(makefile)
	if list == nil {
		t.Fatal("Makefile has no SLOW")
	}
	var tests bytes.Buffer
	for _, f := range trackedFiles(t) {
		if strings.HasSuffix(f.Name, "_test.go") {
			tests.Write(f.Text)
		}
	}
	for _, name := range strings.Fields(strings.ReplaceAll(list[1], `\`, "")) {
		if !bytes.Contains(tests.Bytes(), []byte("\nfunc "+name+"(t *testing.T) {")) {
			t.Errorf("Makefile: SLOW has %s, which is not a test", name)
		}
	}
}
