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

	"mobilegateway/e2e/stage"
)

func main() {
	os.Exit(stage.Enclosure{
		Name: "e2e-sam", Prepare: prepare, OwnNetwork: noEngine, Work: work, Sweep: sweep,
	}.Main())
}

// prepare installs and fetches what is missing.
func prepare(ctx context.Context, site stage.Site) error {
	if err := stage.Install(ctx, site.Root, "sam", "dynamodb", "engine"); err != nil {
		return err
	}
	return stage.FetchModules(ctx, site)
}

// noEngine tells whether we must start a container engine of our own.
func noEngine(ctx context.Context, root string) bool {
	return !runs(ctx, root, os.Getenv("DOCKER_HOST"))
}

// runner goes through the steps.
type runner struct {
	stage.Site
	began time.Time
}

func (r *runner) say(format string, values ...any) {
	fmt.Fprintf(os.Stdout, "[%4.0fs] %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, values...))
}

// bundle is where the checked artifacts are.
func (r *runner) bundle() string { return filepath.Join(r.Dir, "bundle") }

// work does everything once. What only waits goes on beside what works.
func work(ctx context.Context, site stage.Site) error {
	r := &runner{Site: site, began: time.Now()}
	first, err := r.checkBundle(ctx)
	if err != nil {
		return err
	}
	if err := emulate(site); err != nil {
		return err
	}
	host := os.Getenv("DOCKER_HOST")
	if site.OwnNetwork {
		if host, err = startEngine(ctx, site); err != nil {
			return err
		}
		r.say("a container engine of our own runs")
	} else {
		r.say("a container engine runs here already")
	}
	p, err := r.setUp(ctx, host)
	if err != nil {
		return err
	}
	return stage.Together(ctx,
		func(ctx context.Context) error { return p.tellStories(ctx) },
		func(ctx context.Context) error {
			if err := p.invokeAll(ctx); err != nil {
				return err
			}
			return r.buildAgain(ctx, first)
		},
	)
}
