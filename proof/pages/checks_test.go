package pages

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChecksAreDocumented compares the targets of make ci on CONTRIBUTING.md with those that .ci/run runs, and the
// page's commands with the targets of the Makefile.
func TestChecksAreDocumented(t *testing.T) {
	var want, got []string
	for line := range strings.Lines(readFile(t, ".ci/run")) {
		line = strings.TrimSpace(line)
		if line == "make test-slow || status=$?" {
			want = append(want, "test-slow")
		}
		for _, command := range []string{"each ", "beside ", "check make -j2 --output-sync=target "} {
			if targets, isOne := strings.CutPrefix(line, command); isOne {
				want = append(want, strings.Fields(targets)...)
			}
		}
	}
	documented := "help" // it lists the others
	for _, row := range tableRows(t, "CONTRIBUTING.md", "Build and check") {
		documented += " " + row[0]
		if row[0] == "`make ci`" {
			_, targets, _ := strings.Cut(row[1], ": ")
			targets, _, _ = strings.Cut(targets, ". ")
			for _, target := range code.FindAllStringSubmatch(targets, -1) {
				got = append(got, target[1])
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("targets of make ci (-.ci/run +page):\n%s", diff)
	}
	for _, target := range makeTargetPattern.FindAllStringSubmatch(readFile(t, "Makefile"), -1) {
		if !regexp.MustCompile(`\bmake `+target[1]+`[ `+"`"+`]`).MatchString(documented) && target[1] != "help" {
			t.Errorf("CONTRIBUTING.md has no row of make %s", target[1])
		}
	}
}
