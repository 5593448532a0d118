package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// suppressionDirectives are the words by which linters and scanners can be told to look away without a reason, or out of sight of
// the one place where this project keeps its exceptions. They are put together here, so that this file has none.
func suppressionDirectives() map[string]string {
	return map[string]string{
		"#" + "nosec":             "an exception of gosec is a //nolint with its reason",
		"//lint:" + "ignore":      "an exception of staticcheck is a //nolint with its reason",
		"//lint:" + "file-":       "an exception of staticcheck is a //nolint with its reason, at its line",
		"gitleaks:" + "allow":     "an exception of the secret scan stands in .gitleaks.toml with its reason",
		"checkov:" + "skip":       "an exception of checkov stands in the resource's Metadata with its reason",
		"shellcheck " + "disable": "",
	}
}

// TestSuppressionsHaveReasons keeps these words out, but for shellcheck's, which has to be followed by a reason.
func TestSuppressionsHaveReasons(t *testing.T) {
	for _, f := range trackedFiles(t) {
		for forbidden, instead := range suppressionDirectives() {
			for at, line := range bytes.Split(f.Text, []byte("\n")) {
				_, rest, found := strings.Cut(string(line), forbidden)
				if found && (instead != "" || !regexp.MustCompile(`^=SC\d+(,SC\d+)* # \S+ \S+ \S+`).MatchString(rest)) && !mayNameSuppressions(f.Name) {
					t.Errorf("%s:%d has %q: %s", f.Name, at+1, forbidden, instead)
				}
			}
		}
	}
}

// mayNameSuppressions tells whether a file is a linter's own configuration, or a check that speaks of these words.
func mayNameSuppressions(name string) bool {
	return slices.Contains([]string{".golangci.yml", ".gitleaks.toml", ".shellcheckrc", "tools/scripts/check"}, name)
}

// TestLintCoversEveryFile finds Go files that neither Linux nor Windows builds: `make lint` looks at what these two build, so
// a file with another constraint would be looked at by nobody.
func TestLintCoversEveryFile(t *testing.T) {
	seen := map[string]bool{}
	var left []string
	for _, system := range []string{"linux", "windows"} {
		command := exec.Command("go", "list", "-e", "-json=Dir,GoFiles,TestGoFiles,XTestGoFiles,IgnoredGoFiles", "./...")
		command.Dir = loadTree(t).Root
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system)
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range decodeListings(t, out) {
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
			t.Errorf("%s: neither Linux nor Windows builds it, so that make lint does not look at it", name)
		}
	}
}

// decodeListings reads what `go list -json` printed.
func decodeListings(t *testing.T, out []byte) []packageListing {
	t.Helper()
	var rows []packageListing
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var row packageListing
		err := decoder.Decode(&row)
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
}

// TestMakefile compares the Makefile's targets with its help, its .PHONY, and what documents tell people to run.
func TestMakefile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(loadTree(t).Root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, row := range regexp.MustCompile(`(?m)^([a-z0-9-]+):(.*)$`).FindAllStringSubmatch(string(text), -1) {
		targets = append(targets, row[1])
		if !regexp.MustCompile(` ## [A-Za-z].{10,}$`).MatchString(row[2]) {
			t.Errorf("Makefile: %s has no help: ## and a sentence", row[1])
		}
	}
	phony := regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindStringSubmatch(string(text))
	if phony == nil {
		t.Fatal("Makefile has no .PHONY")
	}
	declared := strings.Fields(phony[1])
	slices.Sort(targets)
	slices.Sort(declared)
	if !slices.Equal(targets, declared) {
		t.Errorf("Makefile: .PHONY has %q, the targets are %q", declared, targets)
	}
	documented := regexp.MustCompile("(?:`|^\\s*|^\\$ )make ([a-z][a-z0-9-]*)")
	for _, f := range trackedFiles(t) {
		if filepath.Ext(f.Name) != ".md" && f.Name != ".ci/run" {
			continue
		}
		for at, line := range bytes.Split(f.Text, []byte("\n")) {
			for _, match := range documented.FindAllStringSubmatch(string(line), -1) {
				if !slices.Contains(targets, match[1]) {
					t.Errorf("%s:%d tells people to run make %s, which is no target", f.Name, at+1, match[1])
				}
			}
		}
	}
}
