package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const reliabilityPage = "docs/reliability.md"

// TestVariantsAreDocumented compares the numbers of known-bad variants, and the variants that the page names, with the
// tables of the variants.
func TestVariantsAreDocumented(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(rootDir, "proof", "simulate", "knownbad", "table_*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var tables strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tables.Write(text)
	}
	names := regexp.MustCompile(`\bname: +"([^"]+)"`).FindAllStringSubmatch(tables.String(), -1)
	excluded := len(regexp.MustCompile(`\bexcluded: +"`).FindAllString(tables.String(), -1))
	page := strings.Join(strings.Fields(readFile(t, reliabilityPage)), " ")
	want := fmt.Sprintf("All %d required variants are found", len(names)-excluded)
	for _, phrase := range []string{want, fmt.Sprintf("each that is excluded, which is %d.", excluded)} {
		if !strings.Contains(page, phrase) {
			t.Errorf("%s does not say %q", reliabilityPage, phrase)
		}
	}
	for _, row := range tableRows(t, reliabilityPage, "Does the simulator find bugs?")[1:] {
		for _, variant := range code.FindAllStringSubmatch(row[3], -1) {
			if !slices.ContainsFunc(names, func(name []string) bool { return name[1] == variant[1] }) {
				t.Errorf("%s names the variant %s, which no table has", reliabilityPage, variant[1])
			}
		}
	}
}

// TestSimulatorPackagesAreDocumented compares the packages of the simulator on the page with its folders.
func TestSimulatorPackagesAreDocumented(t *testing.T) {
	want, got := []string{"knownbad"}, []string{"knownbad"} // the page has a section of its own about that folder
	folders, err := os.ReadDir(filepath.Join(rootDir, "proof", "simulate"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if folder.IsDir() && folder.Name() != "testdata" {
			want = append(want, folder.Name())
		}
	}
	for _, row := range tableRows(t, reliabilityPage, "The simulator")[1:] {
		for _, name := range code.FindAllStringSubmatch(row[0], -1) {
			got = append(got, name[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("packages of the simulator (-folders +page):\n%s", diff)
	}
}
