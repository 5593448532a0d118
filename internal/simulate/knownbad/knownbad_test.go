package knownbad

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
)

var (
	seedCount = flag.Int("seeds", 0, "most seeds for each variant; 0 only compiles the overlay")
	record    = flag.Bool("record", false, "search from seed 1, and write the found seeds to "+seedsFile)
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
}

// TestKnownBad compiles all variants, and lets the simulator find each of them within -seeds seeds.
func TestKnownBad(t *testing.T) {
	program := buildVariants(t)
	if *seedCount == 0 {
		return
	}
	known := readSeeds(t)
	table, recorded := &strings.Builder{}, &strings.Builder{}
	rows := tabwriter.NewWriter(table, 0, 0, 2, ' ', 0)
	for _, v := range variants {
		if v.excluded != "" {
			_, _ = fmt.Fprintf(rows, "%s\texcluded: %s\n", v.name, v.excluded)
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			found := hunt(t, program, v, known[v.name])
			if found.Shipped != "" {
				t.Logf("the code as it ships violates an invariant in the world of %s: %s", v.name, found.Shipped)
			}
			if found.Seed == 0 {
				t.Errorf("%s (%s) was not found in %d histories; the last other violation: %q", v.name, v.breaks,
					found.Histories, found.Other)
				return
			}
			_, _ = fmt.Fprintf(rows, "%s\tseed %d\t%d histories\t%.1f s\tinvariant %d\t%.100s\n", v.name, found.Seed,
				found.Histories, found.Seconds, found.Invariant, found.Violation)
			_, _ = fmt.Fprintf(recorded, "%s %d\n", v.name, found.Seed)
		})
	}
	_ = rows.Flush()
	t.Logf("found:\n%s", table)
	if *record {
		if err := os.WriteFile(seedsFile, []byte(recorded.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
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
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "knownbad", "-overlay", overlay, "-o", program,
		".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the overlay does not compile: %v\n%s", err, output)
	}
	return program
}

// hunt runs the program for one variant. It tries the known seed first, unless that is 0.
func hunt(t *testing.T, program string, v variant, known uint64) finding {
	t.Helper()
	result := filepath.Join(t.TempDir(), "finding.json")
	command := exec.CommandContext(t.Context(), program, "-test.run", "^TestHunt$", "-test.timeout", "0",
		"-variant", v.name, "-known", strconv.FormatUint(known, 10), "-seeds", strconv.Itoa(*seedCount), "-result", result)
	command.Env = append(os.Environ(), "GOMAXPROCS=1")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: the histories did not end: %v\n%s", v.name, err, output)
	}
	encoded, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var found finding
	if err := json.Unmarshal(encoded, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// readSeeds returns the recorded seeds by variant.
func readSeeds(t *testing.T) map[string]uint64 {
	t.Helper()
	seeds := map[string]uint64{}
	if *record {
		return seeds
	}
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
