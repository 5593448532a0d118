package pages

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// printedMark is the begin or the end of a block that a test or a program prints into a page, or compares row by row.
// tools/prose/words.py counts the words of these blocks apart.
var printedMark = regexp.MustCompile(`^<!-- (?:(?:printed|compared): (.+)|end of (.+)|(.+): begin|(.+): end) -->\n$`)

// TestPrintedBlocks checks that each printed block has an end.
func TestPrintedBlocks(t *testing.T) {
	for _, p := range allPages(t) {
		inside := ""
		for line := range strings.Lines(readFile(t, p.name)) {
			mark := printedMark.FindStringSubmatch(line)
			if mark == nil {
				continue
			}
			if inside != mark[2]+mark[4] {
				t.Errorf("%s: %s in the block %q", p.name, strings.TrimSpace(line), inside)
			}
			inside = mark[1] + mark[3]
		}
		if inside != "" {
			t.Errorf("%s: the printed block %q has no end", p.name, inside)
		}
	}
}

// maxFirstScreen is the number of lines of README before its quickstart.
const maxFirstScreen = 50

// TestFirstScreen checks what README shows before its quickstart: the commands, the picture, and what was proven.
func TestFirstScreen(t *testing.T) {
	p := findPage(t, "README.md")
	var got []string
	for _, h := range p.headings {
		got = append(got, h.anchor)
		if h.anchor == anchorOf(quickstartHeading, map[string]int{}) {
			if h.line > maxFirstScreen {
				t.Errorf("the quickstart begins in line %d, want at most %d", h.line, maxFirstScreen)
			}
			break
		}
	}
	want := []string{"mobilegateway", "two-commands", "the-picture", "where-it-was-proven",
		"from-a-clone-to-a-verified-webhook"}
	if !slices.Equal(got, want) {
		t.Errorf("README begins with %v, want %v", got, want)
	}
}
