package simulate

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobilegateway/proof/simulate/tape"
)

var (
	seedCount    = flag.Int("seeds", 100, "number of histories of TestSeeds")
	firstSeed    = flag.Uint64("first", 1, "first seed of TestSeeds")
	oneSeed      = flag.Uint64("seed", 0, "run one seed with its story")
	storyCount   = flag.Int("shown", 1, "number of failing seeds that TestSeeds shrinks and shows")
	workerCount  = flag.Int("workers", 0, "processes of TestSeeds; 0 for GOMAXPROCS, 1 for its own process")
	platformStep = flag.Int("platforms", 10,
		"each n-th seed is a history of the operators' platforms; 1 for all, 0 for none")
	wholeStory  = flag.Bool("all", false, "show all lines of a story, not only those about what was violated")
	maxFailures = flag.Int("failures", 20, "number of failing seeds after which TestSeeds stops; 0 for no bound")
)

// maxShrinkRuns bounds the histories that are run to shrink a failing one.
const maxShrinkRuns = 300

// progressInterval is the time between two lines about the progress of TestSeeds.
const progressInterval = 10 * time.Second

// TestSeeds runs many histories of drawn faults. The table of docs/reliability.md is its output.
func TestSeeds(t *testing.T) {
	if *workerPlace >= 0 {
		serveSeeds(t)
		return
	}
	if *oneSeed != 0 {
		options := optionsOf(*oneSeed)
		options.Story = true
		result := runHistory(t, tape.FromSeed(*oneSeed), options)
		logStory(t, result)
		return
	}
	started, startedCPU := time.Now(), cpuTime(t)
	var report Report
	failed := map[uint64]Result{}
	var failures []string
	runSeeds(t, seedRange{*firstSeed, *seedCount, *workerCount}, &report, func(seed uint64, result Result) bool {
		if result.Violation == nil {
			return true
		}
		const again = "run it again: go test ./proof/simulate -run TestSeeds -seed %d -platforms %d -v"
		failure := fmt.Sprintf("seed %d: %s\n"+again, seed, result.Violation, seed, *platformStep)
		t.Error(failure)
		failures = append(failures, failure)
		if len(failed) < *storyCount {
			failed[seed] = result
		}
		return report.Violations != *maxFailures
	})
	elapsed, cpu := time.Since(started), cpuTime(t)-startedCPU
	if report.Histories < *seedCount {
		t.Errorf("stopped after %d failing seeds: %d of %d histories",
			report.Violations, report.Histories, *seedCount)
	}
	for _, seed := range slices.Sorted(maps.Keys(failed)) {
		showShrunk(t, seed, failed[seed], optionsOf(seed))
	}
	number := float64(report.Histories)
	t.Logf("%d histories of the seeds from %d in %s: %.0f a second, %.0f per CPU-second\n%s", report.Histories,
		*firstSeed, elapsed.Round(time.Millisecond), number/elapsed.Seconds(), number/cpu.Seconds(), &report)
	if len(failures) > 0 { // once more: CI shows only the end of a log
		t.Logf("the failing seeds:\n%s", strings.Join(failures, "\n"))
	}
}

// optionsOf selects the histories of the operators' platforms by their seeds.
func optionsOf(seed uint64) Options {
	return Options{Platforms: *platformStep > 0 && seed%uint64(*platformStep) == 0}
}

// cpuTime is the CPU time that the process and its ended workers have used.
func cpuTime(t *testing.T) (total time.Duration) {
	t.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			t.Fatal(err)
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total
}

// runSeeds runs the histories of consecutive seeds in parallel workers. It adds each result to the report and passes it
// to use, in the order of the seeds, until use returns false. So the outcome does not depend on the number of workers.
func runSeeds(t *testing.T, seeds seedRange, report *Report, use func(seed uint64, result Result) bool) {
	t.Helper()
	next, stop := startWorkers(t, seeds)
	defer stop()
	started := time.Now()
	for seed, printed := seeds.first, started; seed < seeds.first+uint64(max(seeds.count, 0)); seed++ {
		result := next(seed)
		report.Add(result)
		if !use(seed, result) {
			return
		}
		if time.Since(printed) >= progressInterval {
			printed = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d histories, %.0f a second, %d violations\n", report.Histories, seeds.count,
				float64(report.Histories)/time.Since(started).Seconds(), report.Violations)
		}
	}
}

// TestWorkersGiveSameReport runs seeds with different numbers of workers: the reports are equal.
func TestWorkersGiveSameReport(t *testing.T) {
	const count, last = 24, 20
	var reports []string
	for _, workers := range []int{1, 3} {
		var report Report
		var seeds []uint64
		runSeeds(t, seedRange{1, count, workers}, &report, func(seed uint64, _ Result) bool {
			seeds = append(seeds, seed)
			return seed != last
		})
		if len(seeds) != last || !slices.IsSorted(seeds) {
			t.Errorf("%d workers: the results of the seeds %v, want 1 to %d in order", workers, seeds, last)
		}
		reports = append(reports, report.String())
	}
	if reports[0] != reports[1] {
		t.Errorf("one worker reports %s, three report %s", reports[0], reports[1])
	}
}

// showShrunk logs the story of the simplest history whose violation has the same form.
func showShrunk(t *testing.T, seed uint64, failed Result, options Options) {
	t.Helper()
	reduced := Reduce(seed, failed, options, maxShrinkRuns, func(choices *tape.Tape, options Options) Result {
		return runHistory(t, choices, options)
	})
	t.Logf("shrunk from %d orders to %d, and from %d to %d choices that are not zero, in %d runs:", failed.Orders,
		reduced.Kept, nonZero(failed.Choices), nonZero(reduced.Choices), reduced.Runs)
	logStory(t, reduced.Result)
}

// TestFormOf compares the forms of violations.
func TestFormOf(t *testing.T) {
	const first = `invariant 8: pay#OpenShop_31: the notification of failed (webhook-id "a b") is dead after 2h3m`
	for _, c := range []struct {
		text   string
		isSame bool
	}{
		{`invariant 8: pay#LimitShop_2: the notification of failed (webhook-id "c") is dead after 40m`, true},
		{`invariant 8: pay#LimitShop_2: the notification of expired (webhook-id "c") is dead after 40m`, false},
		{`invariant 7: pay#LimitShop_2: the notification of failed (webhook-id "c") is dead after 40m`, false},
		{`invariant 8: pay#LimitShop_2 became failed without a notification`, false},
	} {
		if got := formOf(errors.New(c.text)) == formOf(errors.New(first)); got != c.isSame {
			t.Errorf("%q has the form of %q: %v, want %v", c.text, first, got, c.isSame)
		}
	}
}

func nonZero(choices []int) int {
	return len(slices.DeleteFunc(slices.Clone(choices), func(choice int) bool { return choice == 0 }))
}
