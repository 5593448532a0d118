//go:build linux

// Command sam builds the bundle with the SAM CLI, checks it, and runs it on SAM local: `make e2e-sam`.
//
// It checks the programs that a deployment would contain, for arm64 on every machine. It uses the machine's container
// engine if one runs, else its own engine in its own network. It never uses an AWS account.
package main

import (
	"context"
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

// suite is one run: two fixtures on one engine, one for the stories and one for the golden events.
type suite struct {
	harness.Workspace
	engine      engine
	hostAddress string // this host, as the containers reach it
	dynamoURL   string // DynamoDB Local's address
	template    *template.Template
	stories     *fixture
	goldens     *fixture
}

func (s *suite) bundleDir() string { return filepath.Join(s.Dir, "bundle") }

// runSuite runs all checks. The stories wait most of the time, so the other checks run beside them.
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
	if err := s.createFixtures(ctx); err != nil {
		return err
	}
	return harness.RunParallel(ctx, s.runStories, func(ctx context.Context) error {
		if err := s.invokeGoldenEvents(ctx); err != nil {
			return err
		}
		return s.checkReproducible(ctx, first)
	})
}

func (s *suite) createFixtures(ctx context.Context) (err error) {
	if s.hostAddress, err = bridgeAddress(); err != nil {
		return err
	}
	s.template, err = loadTemplate(s.Root)
	if err != nil {
		return err
	}
	if s.dynamoURL, err = harness.StartDynamoDBLocal(ctx, s.Workspace, s.hostAddress); err != nil {
		return err
	}
	if s.stories, err = s.newFixture(ctx, "stories"); err != nil {
		return err
	}
	if s.goldens, err = s.newFixture(ctx, "goldens"); err != nil {
		return err
	}
	s.Logf("created tables, secrets, operators and merchants")
	return s.openInboxes()
}

// loadTemplate loads the template as SAM resolves it.
func loadTemplate(root string) (*template.Template, error) {
	return template.Load(filepath.Join(root, "template.yaml"), template.Options{Parameters: local.Parameters()})
}

func (s *suite) runStories(ctx context.Context) error {
	eventSources, stop := context.WithCancel(ctx) // they outlive their start
	defer stop()
	err := harness.RunParallel(ctx, s.stories.startAPI, func(context.Context) error {
		return s.stories.startEventSources(eventSources)
	})
	if err != nil {
		return err
	}
	s.Logf("sam local start-api and start-lambda respond")
	stories := harness.StorySuite{Target: "sam", RunJSON: filepath.Join(s.Dir, "run.json")}
	if err := file.ReplaceJSON(stories.RunJSON, s.stories.info); err != nil {
		return err
	}
	return stories.Run(ctx, s.Workspace, "^TestGateway$/^stories$", "", "-test.parallel=16")
}
