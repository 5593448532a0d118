//go:build linux

// Command sam builds the bundle with the SAM CLI, looks at what it built, and runs it as SAM does on a developer's
// machine: `make e2e-sam`.
//
// The artifacts are those that would be deployed, for arm64 whatever this machine is. Where a container engine runs
// already it is used. Else all runs in a network of its own, an engine among it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"mobilegateway/e2e/harness"
)

func main() {
	os.Exit(harness.Isolation{
		Name: "e2e-sam", Prepare: installTools, NeedsOwnNetwork: needsOwnEngine, RunIsolated: runSuite, Cleanup: removeLeftovers,
	}.Main())
}

// installTools installs and fetches what is missing.
func installTools(ctx context.Context, site harness.Workspace) error {
	if err := harness.InstallTools(ctx, site.Root, "sam", "dynamodb", "engine"); err != nil {
		return err
	}
	return harness.FetchDependencies(ctx, site)
}

// needsOwnEngine tells whether we must start a container engine of our own.
func needsOwnEngine(ctx context.Context, root string) bool {
	return !engineRunning(ctx, root, os.Getenv("DOCKER_HOST"))
}

// suiteRunner goes through the steps.
type suiteRunner struct {
	harness.Workspace
	began time.Time
}

func (r *suiteRunner) logf(format string, values ...any) {
	fmt.Fprintf(os.Stdout, "[%4.0fs] %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, values...))
}

// bundleDir is where the checked artifacts are.
func (r *suiteRunner) bundleDir() string { return filepath.Join(r.Dir, "bundle") }

// runSuite does everything once. What only waits goes on beside what works.
func runSuite(ctx context.Context, site harness.Workspace) error {
	r := &suiteRunner{Workspace: site, began: time.Now()}
	first, err := r.checkBundle(ctx)
	if err != nil {
		return err
	}
	if err := registerEmulator(site); err != nil {
		return err
	}
	host := os.Getenv("DOCKER_HOST")
	if site.HasOwnNetwork {
		if host, err = startEngine(ctx, site); err != nil {
			return err
		}
		r.logf("a container engine of our own runs")
	} else {
		r.logf("a container engine runs here already")
	}
	p, err := r.newSuite(ctx, host)
	if err != nil {
		return err
	}
	return harness.RunParallel(ctx,
		func(ctx context.Context) error { return p.runStories(ctx) },
		func(ctx context.Context) error {
			if err := p.invokeGoldenEvents(ctx); err != nil {
				return err
			}
			return r.checkReproducible(ctx, first)
		},
	)
}
