package simulate

import (
	"encoding/gob"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"mobilegateway/proof/simulate/tape"
)

var isWorker = flag.Bool("worker", false, "be a worker of TestSeeds: read seeds, and write the results")

// processors is GOMAXPROCS before TestMain has set it to 1.
var processors int

// seedRange has the seeds that no worker has taken yet.
type seedRange struct {
	first, count uint64
	taken        atomic.Uint64
}

// next takes the next seed. It returns false if none is left.
func (r *seedRange) next() (seed uint64, found bool) {
	number := r.taken.Add(1) - 1
	return r.first + number, number < r.count
}

// seedResult is the result of a seed's history. Between processes the violation is a text.
type seedResult struct {
	Seed      uint64
	Violation string
	Result    Result
}

// startWorkers starts the workers. Each takes the next seed, until none is left or stopped is true. Then the results
// are closed. Workers are processes with one processor: in one process, two bubbles would need two, and then tasks that
// wake up at once could run in another order each time.
func startWorkers(t *testing.T, seeds *seedRange, workers int, stopped *atomic.Bool) <-chan seedResult {
	t.Helper()
	if workers <= 0 {
		workers = processors
	}
	if testing.CoverMode() != "" {
		workers = 1 // a process measures only its own coverage
	}
	results := make(chan seedResult, workers)
	var group sync.WaitGroup
	for range workers {
		w := worker{run: runHere(t), stop: func() {}}
		if workers > 1 {
			w = startProcess(t)
		}
		group.Go(func() {
			defer w.stop()
			for isAlive := true; isAlive && !stopped.Load(); {
				seed, found := seeds.next()
				if !found {
					return
				}
				var r seedResult
				r, isAlive = w.run(seed)
				results <- r
			}
		})
	}
	go func() {
		group.Wait()
		close(results)
	}()
	return results
}

// worker runs the histories of seeds. run reports whether the worker can run further ones. stop waits for its end.
type worker struct {
	run  func(seed uint64) (r seedResult, isAlive bool)
	stop func()
}

// runHere returns a function that runs histories in this process.
func runHere(t *testing.T) func(seed uint64) (seedResult, bool) {
	t.Helper()
	return func(seed uint64) (seedResult, bool) {
		return seedResult{Seed: seed, Result: runHistory(t, tape.FromSeed(seed), optionsOf(seed))}, true
	}
}

// startProcess starts a process as a worker.
func startProcess(t *testing.T) worker {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output, theirOutput, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), program, "-test.run", "^TestSeeds$", "-test.timeout", "0", "-worker",
		"-platforms", fmt.Sprint(*platformStep))
	process.Stderr, process.ExtraFiles = os.Stderr, []*os.File{theirOutput}
	input, err := process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = theirOutput.Close() // the process has its own
	requests, responses := gob.NewEncoder(input), gob.NewDecoder(output)
	run := func(seed uint64) (r seedResult, isAlive bool) {
		err := errors.Join(requests.Encode(seed), responses.Decode(&r))
		if err != nil {
			r = seedResult{Seed: seed, Violation: fmt.Sprintf("the worker ended: %s", err)}
		}
		if r.Violation != "" {
			r.Result.Violation = errors.New(r.Violation)
		}
		return r, err == nil
	}
	stop := func() {
		_ = input.Close() // the process then ends
		_ = process.Wait()
		_ = output.Close()
	}
	return worker{run, stop}
}

// serveSeeds runs the histories of the seeds on the standard input, and writes the results to the first extra file.
func serveSeeds(t *testing.T) {
	t.Helper()
	output := os.NewFile(3, "results")
	requests, responses := gob.NewDecoder(os.Stdin), gob.NewEncoder(output)
	for {
		var seed uint64
		if requests.Decode(&seed) != nil {
			return // no more seeds
		}
		r := seedResult{Seed: seed, Result: runHistory(t, tape.FromSeed(seed), optionsOf(seed))}
		if r.Result.Violation != nil {
			r.Violation, r.Result.Violation = r.Result.Violation.Error(), nil
		} else {
			r.Result.Choices = nil
		}
		if err := responses.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
}
