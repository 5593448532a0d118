package simulate

import (
	"encoding/gob"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"mobilegateway/proof/simulate/tape"
)

var workerPlace = flag.Int("worker", -1, "be a worker of TestSeeds: run each n-th seed from this place; -workers is n")

// processors is GOMAXPROCS before TestMain has set it to 1.
var processors int

// seedRange is the seeds of a test, and the number of workers; 0 for one on each processor.
type seedRange struct {
	first          uint64
	count, workers int
}

// seedResult is the result of a seed's history. Between processes the violation is a text.
type seedResult struct {
	Violation string
	Result    Result
}

// startWorkers starts workers for consecutive seeds. Each call of the first function that it returns is for the next
// seed; the other one waits for their end. Workers are processes with one processor: in one process, two bubbles would
// need two, and then tasks that wake up at once could run in another order each time. One worker is this process.
func startWorkers(t *testing.T, seeds seedRange) (next func(seed uint64) Result, stop func()) {
	t.Helper()
	workers := seeds.workers
	if workers <= 0 {
		workers = processors
	}
	if workers == 1 || testing.CoverMode() != "" { // a process measures only its own coverage
		return func(seed uint64) Result { return runHistory(t, tape.FromSeed(seed), optionsOf(seed)) }, func() {}
	}
	all, stops := make([]*gob.Decoder, workers), make([]func(), workers)
	for place := range all {
		all[place], stops[place] = startProcess(t, "-worker", fmt.Sprint(place), "-workers", fmt.Sprint(workers),
			"-first", fmt.Sprint(seeds.first), "-seeds", fmt.Sprint(seeds.count),
			"-platforms", fmt.Sprint(*platformStep))
	}
	next = func(seed uint64) Result {
		var r seedResult
		if err := all[(seed-seeds.first)%uint64(workers)].Decode(&r); err != nil {
			t.Fatalf("seed %d: its worker ended: %s", seed, err)
		}
		if r.Violation != "" {
			r.Result.Violation = errors.New(r.Violation)
		}
		return r.Result
	}
	stop = func() {
		for _, stopOne := range stops {
			stopOne()
		}
	}
	return next, stop
}

// startProcess starts a process as a worker. It returns what decodes its results, and what waits for its end.
func startProcess(t *testing.T, flags ...string) (results *gob.Decoder, stop func()) {
	t.Helper()
	output, theirOutput, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), os.Args[0],
		append([]string{"-test.run", "^TestSeeds$", "-test.timeout", "0"}, flags...)...)
	process.Stderr, process.ExtraFiles = os.Stderr, []*os.File{theirOutput}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirOutput.Close() // the process has its own
	return gob.NewDecoder(output), func() {
		_ = output.Close()
		_ = process.Wait()
	}
}

// serveSeeds runs each n-th seed, and writes the results to the first extra file until its parent has ended.
func serveSeeds(t *testing.T) {
	t.Helper()
	results := gob.NewEncoder(os.NewFile(3, "results"))
	for place := *workerPlace; place < *seedCount; place += *workerCount {
		seed := *firstSeed + uint64(place)
		r := seedResult{Result: runHistory(t, tape.FromSeed(seed), optionsOf(seed))}
		if r.Result.Violation != nil {
			r.Violation, r.Result.Violation = r.Result.Violation.Error(), nil
		} else {
			r.Result.Choices = nil
		}
		if results.Encode(r) != nil {
			return
		}
	}
}
