package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// published is the hash of a function in a built template.
var published = regexp.MustCompile(`(?m)^      ` + codeHash + `: ([0-9a-f]{64})$`)

// deployedHashes deploys a program with the arguments, and returns the functions' hashes in the order of the template.
func deployedHashes(t *testing.T, program string, change func(root string), arguments ...string) []string {
	t.Helper()
	s := newTestCheckout(t, program)
	change(s.root)
	if err := run(t.Context(), s.root, arguments, s.system()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.root, ".aws-sam", "build", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var hashes []string
	for _, match := range published.FindAllSubmatch(text, -1) {
		hashes = append(hashes, string(match[1]))
	}
	return hashes
}

// TestPublishVersions checks that a changed program, setting or parameter publishes new versions, and that an equal
// deployment publishes none.
func TestPublishVersions(t *testing.T) {
	none := func(string) {}
	replace := func(old, changed string) func(root string) {
		return func(root string) {
			path := filepath.Join(root, "template.yaml")
			text := regexp.MustCompile(old).ReplaceAll(read(t, "template.yaml"), []byte(changed))
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	good := buildProgram(t, deployFlags("arm64")...)
	other := filepath.Join(t.TempDir(), "bootstrap")
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, append(text, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	functions := len(mustReadTemplate(t).functions())
	before := deployedHashes(t, good, none)
	if unique := slices.Compact(slices.Sorted(slices.Values(before))); len(before) != functions ||
		len(unique) != functions {
		t.Fatalf("%d hashes, %d different ones, want %d", len(before), len(unique), functions)
	}
	for name, c := range map[string]struct {
		program   string
		change    func(string)
		arguments []string
		changed   int // functions with a new version
	}{
		"nothing":               {good, none, nil, 0},
		"a comment":             {good, replace(`\nGlobals:`, "\n# new\nGlobals:"), nil, 0},
		"the program":           {other, none, nil, functions},
		"a parameter":           {good, none, []string{"LogRetentionDays=14"}, functions},
		"one function's text":   {good, replace(`Charges an end user once`, "Charges"), nil, functions},
		"a property of all":     {good, replace(`Timeout: 20\n`, "Timeout: 19\n"), nil, functions},
		"another kind of thing": {good, replace(`Description: Table of merchants`, "Description: Merchants"), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			after := deployedHashes(t, c.program, c.change, c.arguments...)
			changed := 0
			for i := range after {
				if after[i] != before[i] {
					changed++
				}
			}
			if len(after) != functions || changed != c.changed {
				t.Errorf("%d of %d functions have a new version, want %d", changed, len(after), c.changed)
			}
		})
	}
}

// TestBuiltTemplateKeepsItsContent checks that the built template has what template.yaml has, and the hashes.
func TestBuiltTemplateKeepsItsContent(t *testing.T) {
	s := newTestCheckout(t, buildProgram(t, deployFlags("arm64")...))
	if err := run(t.Context(), s.root, nil, s.system()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.root, ".aws-sam", "build", "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	built, err := readTemplate(published.ReplaceAll(text, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := mustReadTemplate(t)
	if difference := cmp.Diff(want.Parameters, built.Parameters); difference != "" {
		t.Errorf("the parameters differ (-want +got):\n%s", difference)
	}
	names, builtNames := slices.Sorted(maps.Keys(want.Resources)), slices.Sorted(maps.Keys(built.Resources))
	if difference := cmp.Diff(names, builtNames); difference != "" {
		t.Errorf("the resources differ (-want +got):\n%s", difference)
	}
	if difference := cmp.Diff(want.dataResources(), built.dataResources()); difference != "" {
		t.Errorf("the conditions differ (-want +got):\n%s", difference)
	}
}
