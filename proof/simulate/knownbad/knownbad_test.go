package knownbad

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

var (
	seedCount = flag.Int("seeds", 0, "most seeds for each variant; 0 only compiles the overlay")
	record    = flag.Bool("record", false, "write the found seeds to "+seedsFile)
	only      = flag.String("only", "", "hunt only for the variants whose names match this regular expression")
)

// seedsFile has the seed that found each variant last. The test tries it first, because a search can take minutes. It
// searches again if the code or the simulator has changed so much that the seed is not enough.
const seedsFile = "testdata/seeds.txt"

// finding is the result of a hunt for one variant. Seed is 0 if it was not found.
type finding struct {
	Seed      uint64
	Histories int
	Invariant int
	Violation string
	Other     string // the last violation of an invariant that the variant does not name
	Shipped   string // the last violation by the code as it ships, on the way
	Seconds   float64
	Story     []string // of the simplest history, without what is not about the violation
	AllLines  int      // of its whole story
}

// TestKnownBad compiles all variants, and lets the simulator find each of them within -seeds seeds.
func TestKnownBad(t *testing.T) {
	program := buildVariants(t)
	if *seedCount == 0 {
		return
	}
	names := regexp.MustCompile(*only)
	known := readSeeds(t)
	findings := huntAll(t, program, known, names)
	for name, found := range findings {
		if old := known[name]; found.Seed != old && old != 0 {
			t.Logf("%s: the recorded seed %d did not find it", name, old)
		}
		known[name] = found.Seed
	}
	t.Logf("found:\n%s", renderFindings(findings))
	checkStories(t, findings)
	if *record {
		writeSeeds(t, known)
	}
}

// huntAll hunts for all variants whose names match, as many at a time as the machine has processors.
func huntAll(t *testing.T, program string, known map[string]uint64, names *regexp.Regexp) map[string]finding {
	t.Helper()
	findings := map[string]finding{}
	var mutex sync.Mutex
	var group sync.WaitGroup
	waiting := make(chan variant)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for v := range waiting {
				found, err := hunt(t, program, v, known[v.name])
				if err != nil {
					t.Errorf("%s: %s", v.name, err)
					continue
				}
				report(t, v, found)
				mutex.Lock()
				findings[v.name] = found
				mutex.Unlock()
			}
		})
	}
	for _, v := range slices.SortedStableFunc(slices.Values(variants), longestFirst) {
		if v.excluded == "" && names.MatchString(v.name) {
			waiting <- v
		}
	}
	close(waiting)
	group.Wait()
	return findings
}

// checkStories checks that a newcomer can read the stories: half of them have at most 40 lines, nine of ten at most 80.
func checkStories(t *testing.T, findings map[string]finding) {
	t.Helper()
	var printed, whole []int
	for _, found := range findings {
		if len(found.Story) > 0 {
			printed, whole = append(printed, len(found.Story)), append(whole, found.AllLines)
		}
	}
	if len(printed) == 0 {
		return
	}
	slices.Sort(printed)
	slices.Sort(whole)
	median, ninth := len(printed)/2, (len(printed)*9-1)/10
	t.Logf("lines of %d stories: median %d, nine of ten %d, most %d; of whole stories %d, %d and %d", len(printed),
		printed[median], printed[ninth], slices.Max(printed), whole[median], whole[ninth], slices.Max(whole))
	const mostAtMedian, mostAtNinth, fewest = 40, 80, 50 // few variants are no sample of all
	if len(printed) >= fewest && (printed[median] > mostAtMedian || printed[ninth] > mostAtNinth) {
		t.Errorf("the stories are too long: want at most %d and %d lines", mostAtMedian, mostAtNinth)
	}
}

// longestFirst puts the variants first whose histories do not end: these run for a hundred times as long.
func longestFirst(a, b variant) int {
	rank := func(v variant) int {
		if slices.Contains(v.invariants, 0) {
			return 0
		}
		return 1
	}
	return rank(a) - rank(b)
}

// report fails the test if a variant was not found. It logs violations by the code as it ships.
func report(t *testing.T, v variant, found finding) {
	t.Helper()
	if found.Shipped != "" {
		t.Logf("the code as it ships violates an invariant in the world of %s: %s", v.name, found.Shipped)
	}
	if found.Seed == 0 {
		t.Errorf("%s (%s) was not found in %d histories, %.0f s; the last other violation: %q", v.name, v.breaks,
			found.Histories, found.Seconds, found.Other)
	}
}

// renderFindings returns the table of what was found, in the order of the variants.
func renderFindings(findings map[string]finding) string {
	table := &strings.Builder{}
	rows := tabwriter.NewWriter(table, 0, 0, 2, ' ', 0)
	for _, v := range variants {
		found, hunted := findings[v.name]
		switch {
		case v.excluded != "":
			_, _ = fmt.Fprintf(rows, "%s\texcluded: %s\n", v.name, v.excluded)
		case hunted && found.Seed == 0:
			_, _ = fmt.Fprintf(rows, "%s\tNOT FOUND\t%d histories\t%.1f s\n", v.name, found.Histories, found.Seconds)
		case hunted:
			_, _ = fmt.Fprintf(rows, "%s\tseed %d\t%d histories\t%.1f s\tinvariant %d\t%d lines\t%.100s\n", v.name,
				found.Seed, found.Histories, found.Seconds, found.Invariant, len(found.Story), found.Violation)
		}
	}
	_ = rows.Flush()
	return table.String()
}

// buildVariants builds the program that has all variants.
func buildVariants(t *testing.T) string {
	t.Helper()
	texts, err := buildOverlay(variants)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	overlay, err := writeOverlay(folder, texts)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "knownbad.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "knownbad", "-overlay", overlay,
		"-o", program, ".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the overlay does not compile: %v\n%s", err, output)
	}
	return program
}

// hunt runs the program for one variant. It tries the known seed first, unless that is 0. The error reports a history
// that crashed the program.
func hunt(t *testing.T, program string, v variant, known uint64) (finding, error) {
	t.Helper()
	var found finding
	result := filepath.Join(t.TempDir(), v.name+".json")
	command := exec.CommandContext(t.Context(), program, "-test.run", "^TestHunt$", "-test.timeout", "0",
		"-variant", v.name, "-known", strconv.FormatUint(known, 10), "-seeds", strconv.Itoa(*seedCount),
		"-result", result)
	command.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=2000") // histories are short, and leave nothing behind
	if output, err := command.CombinedOutput(); err != nil {
		return found, fmt.Errorf("the histories did not end: %w\n%s", err, output)
	}
	encoded, err := os.ReadFile(result)
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal(encoded, &found)
}

// readSeeds returns the recorded seeds by variant.
func readSeeds(t *testing.T) map[string]uint64 {
	t.Helper()
	seeds := map[string]uint64{}
	text, err := os.ReadFile(seedsFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, seed, _ := strings.Cut(strings.TrimSpace(line), " ")
		if seeds[name], err = strconv.ParseUint(seed, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedsFile, err)
		}
	}
	return seeds
}

// writeSeeds records the seeds of the variants of the table. A variant without a seed has no line.
func writeSeeds(t *testing.T, seeds map[string]uint64) {
	t.Helper()
	text := &strings.Builder{}
	for _, v := range variants {
		if seed := seeds[v.name]; seed != 0 && v.excluded == "" {
			_, _ = fmt.Fprintf(text, "%s %d\n", v.name, seed)
		}
	}
	if err := os.WriteFile(seedsFile, []byte(text.String()), 0o600); err != nil {
		t.Error(err)
	}
}
