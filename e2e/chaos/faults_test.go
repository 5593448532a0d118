//go:build linux

package chaos

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// maxPause is the longest time between two faults of one lane.
const maxPause = 4 * time.Second

// injector injects faults in several lanes at once. A lane has one fault at a time. The seed decides each lane's kinds,
// durations and order.
type injector struct {
	seed uint64
	log  io.Writer

	mu     sync.Mutex
	counts map[string]int
	active map[string]string // by lane
}

// newInjector returns an injector that writes a line for each fault.
func newInjector(seed uint64, log io.Writer) *injector {
	return &injector{seed: seed, log: log, counts: map[string]int{}, active: map[string]string{}}
}

// newRandom returns the random numbers of one purpose.
func newRandom(seed uint64, purpose string) *rand.Rand {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, purpose)
	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}

// run injects faults into the gateway until ctx ends. It returns when the last fault has ended.
func (i *injector) run(ctx context.Context, t *testing.T, g *gateway) {
	lanes := map[string]func(*rand.Rand) fault{
		"operator": g.toOperator.draw, "database": g.toDatabase.draw, "processes": g.drawProcessFault,
	}
	for name, merchants := range g.toMerchants {
		lanes[name] = merchants.draw
	}
	var group sync.WaitGroup
	for name, draw := range lanes {
		group.Go(func() {
			random := newRandom(i.seed, name)
			for wait(ctx, time.Duration(random.Int64N(int64(maxPause)))) {
				if err := i.inject(ctx, name, draw(random)); err != nil {
					t.Errorf("inject a fault into the %s: %v", name, err)
					return
				}
			}
		})
	}
	group.Wait()
}

// wait waits. It returns false if ctx ends first.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// inject begins one fault, waits and ends it.
func (i *injector) inject(ctx context.Context, lane string, f fault) error {
	i.record(lane, f)
	end, err := f.begin()
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	wait(ctx, f.duration)
	if err := end(); err != nil {
		return fmt.Errorf("end %s: %w", f.name, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.active, lane)
	return nil
}

func (i *injector) record(lane string, f fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.counts[f.name]++
	i.active[lane] = f.name
	fmt.Fprintf(i.log, "%s %s for %s\n", time.Now().UTC().Format(time.RFC3339Nano), f.name, f.duration)
}

// total returns the number of faults so far, and the active ones.
func (i *injector) total() (count int, active []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range i.counts {
		count += n
	}
	return count, slices.Sorted(maps.Values(i.active))
}

// drawProcessFault returns the next fault of the processes: a killed function or database, or a full disk.
func (g *gateway) drawProcessFault(random *rand.Rand) fault {
	duration := time.Duration(random.IntN(3000)) * time.Millisecond
	nothing := func() error { return nil }
	switch kind, choice := random.IntN(12), random.Uint64(); {
	case kind < 7:
		kill := func() (func() error, error) { return nothing, g.killFunction(choice, false) }
		return fault{"kill -9 of a function's process", kill, 0}
	case kind < 8:
		kill := func() (func() error, error) { return nothing, g.killFunction(choice, true) }
		return fault{"kill -9 of all processes of a function", kill, 0}
	case kind < 10:
		return fault{"kill -9 of the database", func() (func() error, error) {
			return g.database.restart, g.database.kill()
		}, duration}
	default:
		return fault{"disk full", func() (func() error, error) {
			return g.database.freeDisk, g.database.limitFileSize(choice % (128 << 10))
		}, duration}
	}
}

// killFunction kills one process or all processes of a function.
func (g *gateway) killFunction(choice uint64, all bool) error {
	info, err := readRunJSON(g.dir)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(info.PIDs.Functions))
	pids := info.PIDs.Functions[names[choice%uint64(len(names))]]
	if !all && len(pids) > 0 {
		pids = pids[choice%uint64(len(pids)):][:1]
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return err
		}
	}
	return nil
}

// String is the number of faults of each kind.
func (i *injector) String() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(i.counts)) {
		fmt.Fprintf(&text, "  %6d %s\n", i.counts[name], name)
	}
	return text.String()
}
