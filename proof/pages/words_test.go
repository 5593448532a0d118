package pages

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// printedMark is the begin or the end of a block that a test or a program prints into a page.
var printedMark = regexp.MustCompile(`^<!-- (?:printed: (.+)|end of (.+)|(.+): begin|(.+): end) -->\n$`)

// TestPrintedBlocks checks that each printed block has an end. With -v it counts the words of each page, those of
// printed blocks and of blocks of code apart.
func TestPrintedBlocks(t *testing.T) {
	var prose, printed, coded int
	for _, p := range allPages(t) {
		inside, isCode, words := "", false, [3]int{}
		for line := range strings.Lines(readFile(t, p.name)) {
			if mark := printedMark.FindStringSubmatch(line); mark != nil {
				begins, ends := mark[1]+mark[3], mark[2]+mark[4]
				if inside != ends {
					t.Errorf("%s: %s in the block %q", p.name, strings.TrimSpace(line), inside)
				}
				inside = begins
				continue
			}
			isFence := strings.HasPrefix(strings.TrimSpace(line), "```")
			switch {
			case inside != "":
				words[1] += len(strings.Fields(line))
			case isCode || isFence:
				words[2] += len(strings.Fields(line))
			default:
				words[0] += len(strings.Fields(line))
			}
			isCode = isCode != isFence
		}
		if inside != "" {
			t.Errorf("%s: the printed block %q has no end", p.name, inside)
		}
		t.Logf("%-40s %6d words of prose, %6d printed, %6d of code", p.name, words[0], words[1], words[2])
		prose, printed, coded = prose+words[0], printed+words[1], coded+words[2]
	}
	t.Logf("%-40s %6d words of prose, %6d printed, %6d of code", "all pages", prose, printed, coded)
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
