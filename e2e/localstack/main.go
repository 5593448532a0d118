//go:build linux

// Command localstack deploys the template to LocalStack with `sam deploy`, as it would be deployed to AWS, and plays the
// stories against it: `make e2e-localstack`.
//
// LocalStack brings API Gateway, DynamoDB with its streams, Secrets Manager, EventBridge and CloudFormation; nobody here
// wrote those. The functions are the programs of `sam build`, run by internal/runtimeapi because LocalStack's own way
// needs containers. Sandbox and inbox call the deployed API back.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/local"
)

func main() {
	keepRunning := flag.Bool("hold", false, "deploy, tell where run.json is, and wait for an interrupt")
	flag.Parse()
	os.Exit(harness.Isolation{
		Name: "e2e-localstack", Prepare: installTools,
		NeedsOwnNetwork: func(context.Context, string) bool { return !*keepRunning },
		RunIsolated:     func(ctx context.Context, site harness.Workspace) error { return runSuite(ctx, site, *keepRunning) },
	}.Main())
}

// installTools installs and fetches what is missing.
func installTools(ctx context.Context, site harness.Workspace) error {
	if err := harness.InstallTools(ctx, site.Root, "sam", "localstack", "dynamodb"); err != nil {
		return err
	}
	return harness.FetchDependencies(ctx, site)
}

// runSuite does everything once.
func runSuite(ctx context.Context, site harness.Workspace, keepRunning bool) error {
	s := &localStackRun{Workspace: site, began: time.Now()}
	if err := s.startServices(ctx); err != nil {
		return err
	}
	if err := s.deployAndSeed(ctx); err != nil {
		return err
	}
	if keepRunning {
		s.logf("deployed; E2E_RUN_JSON=%s", s.runJSONPath())
		select {}
	}
	return s.runStories(ctx)
}

// localStackRun is all that runs.
type localStackRun struct {
	harness.Workspace
	began        time.Time
	environments *environmentPool
	stubs        *harness.Stubs
	server       *localStackServer
	stack        *deployedStack
	deployment   local.Deployment
	listener     net.Listener
}

func (s *localStackRun) logf(format string, values ...any) {
	fmt.Fprintf(os.Stdout, "[%4.0fs] %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, values...))
}

// startServices starts what the deployment needs, and builds it meanwhile.
func (s *localStackRun) startServices(ctx context.Context) (err error) {
	logs := filepath.Join(s.Dir, "functions")
	if err := os.Mkdir(logs, 0o700); err != nil {
		return err
	}
	// A function refuses ALLOW_LOOPBACK where AWS_EXECUTION_ENV is set, as LocalStack sets it. Here the machine takes the one
	// away and gives the other; no parameter of the template can do that.
	s.environments = newEnvironments(logs, map[string]string{
		"AWS_EXECUTION_ENV": "", "ALLOW_LOOPBACK": "true", "SPEED": strconv.Itoa(harness.ScheduleSpeed),
	})
	executor, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	harness.Serve(executor, s.environments.handler())
	if s.stubs, err = harness.NewStubs(s.Dir, "127.0.0.1"); err != nil {
		return err
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	if s.server, err = startServer(s.Workspace, "http://"+executor.Addr().String()); err != nil {
		return err
	}
	s.stack = newStack(s.Workspace, s.server, "http://"+s.listener.Addr().String())
	if err := s.stack.build(ctx, s.bundleDir(), ""); err != nil {
		return err
	}
	s.logf("built")
	if err := s.server.waitReady(ctx); err != nil {
		return err
	}
	s.logf("LocalStack answers")
	return nil
}

// bundleDir is what is deployed first.
func (s *localStackRun) bundleDir() string { return filepath.Join(s.Dir, "bundle") }

// runJSONPath is where the stories find what they play against.
func (s *localStackRun) runJSONPath() string { return filepath.Join(s.Dir, "run.json") }

// deployAndSeed deploys and furnishes the stack, and opens its front.
func (s *localStackRun) deployAndSeed(ctx context.Context) (err error) {
	if err := s.stack.deploy(ctx, s.bundleDir()); err != nil {
		return err
	}
	s.logf("deployed: outputs %v", s.stack.sortedOutputs())
	s.deployment, err = s.stack.deployment(s.stubs)
	if err != nil {
		return err
	}
	info, err := s.deployment.Seed(ctx)
	if err != nil {
		return err
	}
	s.stubs.SetWebhookSecrets(info)
	handler, err := s.stack.limitedProxy()
	if err != nil {
		return err
	}
	harness.Serve(s.listener, handler)
	if err := s.startFastSchedule(ctx); err != nil {
		return err
	}
	s.logf("secrets put, merchants onboarded")
	return harness.WriteRunJSON(s.runJSONPath(), info)
}

// parallelStories is how many stories wait side by side; LocalStack works on fewer requests at once than the local run.
const parallelStories = "16"

// slowStories are those in which the operator takes a minute.
const slowStories = "^TestGateway$/^stories$/-slow"

// runStories tells the stories, and then changes the deployment under payments in flight; the slow stories go on beside all that.
func (s *localStackRun) runStories(ctx context.Context) error {
	address, err := s.serveDeployControl()
	if err != nil {
		return err
	}
	stories := harness.StorySuite{Target: "localstack", RunJSON: s.runJSONPath(), DeployURL: address}
	err = harness.RunParallel(ctx,
		func(ctx context.Context) error {
			if err := stories.Run(ctx, s.Workspace, slowStories, ""); err != nil {
				return err
			}
			s.logf("the slow stories are told")
			return nil
		},
		func(ctx context.Context) error {
			if err := stories.Run(ctx, s.Workspace, "^TestGateway$", slowStories, "-test.parallel="+parallelStories); err != nil {
				return err
			}
			s.logf("the other stories are told")
			return stories.Run(ctx, s.Workspace, "^TestChangeInFlight$", "")
		},
	)
	if err != nil {
		return err
	}
	for _, name := range []string{"relay", "sweep"} {
		all, scheduled := s.environments.eventCounts(name)
		s.logf("%s: %d events, %d of them by LocalStack's own schedule", name, all, scheduled)
		if all == 0 || (name == "sweep" && scheduled == 0) {
			return fmt.Errorf("LocalStack never invoked %s by itself", name)
		}
	}
	return nil
}
