//go:build linux

// Command sam builds the bundle with the SAM CLI, checks it, and runs it on SAM local: `make e2e-sam`.
//
// It checks the programs that a deployment would contain, for arm64 on every machine. It uses the machine's container
// engine if one runs, else its own engine in its own network. It never uses an AWS account.
package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/file"
	"mobilegateway/local"
	"mobilegateway/world/template"
)

func main() {
	os.Exit(harness.Isolation{
		Name: "e2e-sam", Tools: []string{"sam", "dynamodb", "engine"},
		NeedsOwnNetwork: needsOwnEngine, RunIsolated: runSuite, Cleanup: removeLeftovers,
	}.Main())
}

// needsOwnEngine reports whether the machine has no running container engine.
func needsOwnEngine(ctx context.Context, root string) bool {
	return engine{root, os.Getenv("DOCKER_HOST")}.ping(ctx) != nil
}

// region is the region that SAM gives the functions.
const region = "us-east-1"

// suite is one run. Its functions have a database, secrets, an operator, merchants, and an image with the addresses.
type suite struct {
	harness.Workspace
	engine       engine
	hostAddress  string // this host, as the containers reach it
	dynamoURL    string // DynamoDB Local's address
	template     *template.Template
	stubs        *harness.Stubs
	listener     net.Listener // the API's public address
	info         local.Info
	relay, sweep lambdaClient // the functions that no HTTP request invokes
}

func (s *suite) bundleDir() string { return filepath.Join(s.Dir, "bundle") }

// runSuite runs all checks. The stories wait most of the time, so the other builds run beside them.
func runSuite(ctx context.Context, site harness.Workspace) error {
	s := &suite{Workspace: site, engine: engine{site.Root, os.Getenv("DOCKER_HOST")}}
	first, err := s.checkBundle(ctx)
	if err != nil {
		return err
	}
	if err := registerEmulator(site); err != nil {
		return err
	}
	if site.HasOwnNetwork {
		if s.engine, err = startEngine(ctx, site); err != nil {
			return err
		}
	}
	s.Logf("a container engine runs (own engine: %v)", site.HasOwnNetwork)
	if err := s.createFixture(ctx); err != nil {
		return err
	}
	return harness.RunParallel(ctx, s.runStories, func(ctx context.Context) error {
		return s.checkReproducible(ctx, first)
	})
}

// runStories runs the stories, and checks that the relay and the sweep took part in them.
func (s *suite) runStories(ctx context.Context) error {
	eventSources, stop := context.WithCancel(ctx) // they outlive their start
	defer stop()
	err := harness.RunParallel(ctx, s.startAPI, func(context.Context) error {
		return s.startEventSources(eventSources)
	})
	if err != nil {
		return err
	}
	s.Logf("sam local start-api and start-lambda respond")
	stories := harness.StorySuite{Target: "sam", RunJSON: filepath.Join(s.Dir, "run.json")}
	if err := file.ReplaceJSON(stories.RunJSON, s.info); err != nil {
		return err
	}
	if err := stories.Run(ctx, s.Workspace, "^TestGateway$/^stories$", "", "-test.parallel=16"); err != nil {
		return err
	}
	relayed, swept := s.relay.succeeded.Load(), s.sweep.succeeded.Load()
	s.Logf("%d successful invocations of the relay, %d of the sweep", relayed, swept)
	if relayed == 0 || swept == 0 {
		return errors.New("the relay or the sweep never succeeded: the stories passed without it")
	}
	return nil
}
