// Command capacity measures what a due entry costs the sweep and the relay: processor time, calls, dials, TLS
// handshakes and memory. It runs the programs as they ship, under a CPU quota that equals their memory's share of a
// processor, over a local database and stubs with TLS.
//
// From the costs it computes how long 100,000 due entries take, and writes both into the pages. It needs Linux and a
// writable control group. Lambda itself, its processors and its network are not measured.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"mobilegateway/internal/repository"
	"mobilegateway/world/lambda"
)

// controlGroups is where Linux has its control groups.
const controlGroups = "/sys/fs/cgroup"

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("capacity", flag.ContinueOnError)
	entries := flags.Int("entries", 10_000, "due entries of each kind")
	write := flags.Bool("write", true, "write the results into docs/scale.md and docs/reliability.md")
	only := flags.String("only", "", "measure only the kinds whose names contain this text, and write nothing")
	memory := flags.Int("memory", 0, "memory of the functions in MB, and write nothing; 0: as template.yaml says")
	if err := flags.Parse(args); err != nil {
		return err
	}
	probe, err := quotaOf(lambda.ProcessorMB)
	if err != nil {
		return err
	}
	probe.remove()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := repository.Root()
	if err != nil {
		return err
	}
	f, err := newFixture(ctx, root)
	if err != nil {
		return err
	}
	defer f.close()
	f.setMemory(*memory)
	m := &meter{fixture: f, entries: *entries, newQuota: quotaOf, progress: out}
	report, err := measureAll(ctx, m, *only)
	if err != nil {
		return err
	}
	if !*write || *only != "" || *memory > 0 {
		_, err := io.WriteString(out, "\n"+report.table())
		return err
	}
	return report.publish(out, filepath.Join(root, "docs"), f.deployment)
}

// quotaOf returns the quota of a function with this much memory, at most one processor: GOMAXPROCS is 1.
func quotaOf(memoryMB int) (*quota, error) { return newQuota(controlGroups, share(memoryMB)) }

// share is the part of a processor that a function of one thread gets with its memory.
func share(memoryMB int) float64 { return min(float64(memoryMB)/lambda.ProcessorMB, 1) }

// measureAll measures all kinds of work whose names contain a text.
func measureAll(ctx context.Context, m *meter, only string) (*report, error) {
	r := &report{loadBefore: load(), entries: m.entries}
	for _, w := range works() {
		if !strings.Contains(w.name, only) {
			continue
		}
		measured, err := m.measure(ctx, w)
		if err != nil {
			return nil, err
		}
		r.results = append(r.results, measured)
	}
	r.loadAfter = load()
	return r, nil
}

// load is the machine's load in the last minute, as Linux counts it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
