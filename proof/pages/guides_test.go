package pages

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGuides follows the guides for a country and an operator, each in a copy of the tree. It applies their diffs,
// writes their files and runs their commands, which must pass.
func TestGuides(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and tests a copy of the tree")
	}
	requireTool(t, "bash", "git", "go")
	t.Parallel() // beside TestLocalSamples, which waits
	for _, name := range []string{"docs/adding-a-country.md", "docs/adding-an-operator.md"} {
		t.Run(name, func(t *testing.T) {
			folder, started, commands := copyCheckout(t), time.Now(), 0
			for _, b := range findPage(t, name).blocks {
				file, isFile := strings.CutPrefix(b.comment, "file: ")
				switch {
				case isFile:
					if formatted, err := format.Source([]byte(b.text)); err != nil || string(formatted) != b.text {
						t.Errorf("%s:%d is not formatted by gofmt: %v", name, b.line, err)
					}
					writeFile(t, filepath.Join(folder, filepath.FromSlash(file)), b.text)
				case b.language == "diff":
					applyDiff(t, folder, name, b)
				case b.language == "sh" && b.comment == "run":
					runGuideCommands(t, folder, name, b)
					commands++
				}
			}
			if commands == 0 {
				t.Errorf("%s has no command to run", name)
			}
			t.Logf("followed in %s", time.Since(started).Round(time.Second))
		})
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// applyDiff applies a diff. Its line numbers may be out of date, its context lines may not.
func applyDiff(t *testing.T, folder, name string, b block) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", "apply", "--whitespace=nowarn", "-")
	command.Dir, command.Stdin = folder, strings.NewReader(b.text)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s:%d does not apply: %v\n%s", name, b.line, err, output)
	}
}

// runGuideCommands runs the commands of a block. They share the build cache of this tree, because with -trimpath a
// build does not depend on the folder's name.
func runGuideCommands(t *testing.T, folder, name string, b block) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", b.text)
	command.Dir, command.Env = folder, slices.Concat(environment(), []string{"GOFLAGS=-trimpath"})
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s:%d: %v\n%s", name, b.line, err, output)
	}
}
