//go:build linux

// Command localstack deploys the template to LocalStack with `sam deploy`, as to AWS, and runs the stories against it:
// `make e2e-localstack`.
//
// LocalStack provides API Gateway, DynamoDB with streams, Secrets Manager, EventBridge and CloudFormation. The
// functions are the programs of `sam build`. world/lambda runs them, because LocalStack's own executor needs
// containers.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/file"
	"mobilegateway/local"
)

func main() {
	keepRunning := flag.Bool("keep-running", false, "deploy, print the path of run.json, and wait for an interrupt")
	only := flag.Bool("empty-account", false, "run only the story of an account without anything")
	flag.Parse()
	os.Exit(harness.Isolation{
		Name: "e2e-localstack", Tools: []string{"sam", "localstack", "dynamodb"},
		NeedsOwnNetwork: func(context.Context, string) bool { return !*keepRunning },
		RunIsolated: func(ctx context.Context, site harness.Workspace) error {
			return runSuite(ctx, site, *keepRunning, *only)
		},
	}.Main())
}

func runSuite(ctx context.Context, site harness.Workspace, keepRunning, onlyEmptyAccount bool) error {
	s := &suite{Workspace: site, stack: stackName}
	if err := s.startServices(ctx); err != nil {
		return err
	}
	if !keepRunning {
		if err := s.runEmptyAccountStory(ctx); err != nil || onlyEmptyAccount {
			return err
		}
	}
	if err := s.deployAndSeed(ctx); err != nil {
		return err
	}
	if keepRunning {
		s.Logf("deployed; E2E_RUN_JSON=%s", s.runJSONPath())
		select {}
	}
	return s.runStories(ctx)
}

type suite struct {
	harness.Workspace
	stack        string // the name of the gateway's stack
	environments *environmentPool
	stubs        *harness.Stubs
	server       *localStackServer
	listener     net.Listener // the API's public address
	parameters   map[string]string
	outputs      map[string]string // of the stack
	deployment   local.Deployment
	info         local.Info // the content of run.json
}

// startServices starts the services, and builds the bundle while LocalStack starts.
func (s *suite) startServices(ctx context.Context) (err error) {
	logs := filepath.Join(s.Dir, "functions")
	if err := os.Mkdir(logs, 0o700); err != nil {
		return err
	}
	// A function refuses ALLOW_LOOPBACK while AWS_EXECUTION_ENV is set, and LocalStack sets it. No template parameter
	// can change that, so the execution environment does.
	overrides := map[string]string{
		"AWS_EXECUTION_ENV": "", "ALLOW_LOOPBACK": "true", "SPEED": strconv.Itoa(harness.ScheduleSpeed),
	}
	s.environments = &environmentPool{
		logs: logs, variableOverrides: overrides, running: map[string]*executionEnvironment{},
		eventCount: map[string]int{}, scheduledCount: map[string]int{},
	}
	executorURL, err := harness.ListenAndServe("127.0.0.1", s.environments.handler())
	if err != nil {
		return err
	}
	if s.stubs, err = harness.NewStubs(s.Dir, "127.0.0.1"); err != nil {
		return err
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	if s.server, err = startServer(s.Workspace, executorURL); err != nil {
		return err
	}
	s.parameters = local.Parameters()
	s.parameters["BaseUrl"] = "http://" + s.listener.Addr().String()
	s.parameters["Architecture"] = map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]
	bundle := harness.Bundle{Checkout: s.Root, Dir: s.bundleDir(), Parameters: s.parameters}
	if err := bundle.Build(ctx, s.Workspace); err != nil {
		return err
	}
	s.Logf("built the bundle")
	if err := s.server.waitReady(ctx); err != nil {
		return err
	}
	s.Logf("LocalStack responds")
	return nil
}

// bundleDir is the folder of the bundle that is deployed first.
func (s *suite) bundleDir() string { return filepath.Join(s.Dir, "bundle") }

func (s *suite) runJSONPath() string { return filepath.Join(s.Dir, "run.json") }

func (s *suite) deployAndSeed(ctx context.Context) (err error) {
	if err := s.deploy(ctx, s.bundleDir()); err != nil {
		return err
	}
	s.Logf("deployed the stack")
	if err := s.seed(ctx); err != nil {
		return err
	}
	handler, err := s.limitedProxy()
	if err != nil {
		return err
	}
	harness.Serve(s.listener, handler)
	if err := s.startFastSchedule(ctx); err != nil {
		return err
	}
	s.Logf("wrote the secrets, onboarded the merchants")
	return file.ReplaceJSON(s.runJSONPath(), s.info)
}

// seed writes the secrets and onboards the merchants.
func (s *suite) seed(ctx context.Context) (err error) {
	environment := s.server.environment()
	variable := func(name string) string { return environment[name] }
	s.deployment, err = harness.StackDeployment(s.outputs, variable, s.stubs, s.parameters["BaseUrl"])
	if err != nil {
		return err
	}
	if s.info, err = s.deployment.Seed(ctx); err != nil {
		return err
	}
	s.stubs.SetWebhookSecrets(s.info)
	return nil
}

// parallelStories is how many stories run in parallel. LocalStack handles fewer parallel requests than the local run:
// with 16 on a busy machine, a request can wait for over 35 seconds until an environment starts.
const parallelStories = "8"

// slowStories match the stories in which the operator responds after a minute.
const slowStories = "^TestGateway$/^stories$/-slow"

// runStories runs the stories, then changes the deployment while payments are in flight. The slow stories run beside
// both.
func (s *suite) runStories(ctx context.Context) error {
	address, err := s.serveDeployControl()
	if err != nil {
		return err
	}
	stories := harness.StorySuite{Target: "localstack", RunJSON: s.runJSONPath(), DeployURL: address}
	err = harness.RunParallel(ctx,
		func(ctx context.Context) error {
			return stories.Run(ctx, s.Workspace, slowStories, "")
		},
		func(ctx context.Context) error {
			err := stories.Run(ctx, s.Workspace, "^TestGateway$", slowStories, "-test.parallel="+parallelStories)
			if err != nil {
				return err
			}
			return stories.Run(ctx, s.Workspace, "^TestDeployWithPaymentsInFlight$", "")
		},
	)
	if err != nil {
		return err
	}
	if err := s.runDataStackStory(ctx); err != nil {
		return err
	}
	if err := s.runStubStories(ctx, stories); err != nil {
		return err
	}
	for _, name := range []string{"relay", "sweep"} {
		all, scheduled := s.environments.eventCounts(name)
		s.Logf("%s: %d events, %d of them by LocalStack's own schedule", name, all, scheduled)
		if all == 0 || (name == "sweep" && scheduled == 0) {
			return fmt.Errorf("LocalStack never invoked %s by itself", name)
		}
	}
	return nil
}

// stubPaymentLifetime is the PAYMENT_LIFETIME of the payments at the stubs, as in TestStubs' own run.
const stubPaymentLifetime = "15m"

// secretDelay exceeds SECRET_CACHE_TTL and PROFILE_CACHE_TTL at the stories' speed.
const secretDelay = 10 * time.Second

// runStubStories leads the operators to the stubs of their platforms, and runs the payments and messages there.
func (s *suite) runStubStories(ctx context.Context, stories harness.StorySuite) error {
	config, err := s.stubs.ServePlatforms(s.parameters["BaseUrl"])
	if err != nil {
		return err
	}
	if s.info, err = s.deployment.RouteToStubs(ctx, s.info, config); err != nil {
		return err
	}
	if err := file.ReplaceJSON(s.runJSONPath(), s.info); err != nil {
		return err
	}
	s.environments.override("PAYMENT_LIFETIME", stubPaymentLifetime)
	time.Sleep(secretDelay)
	return stories.Run(ctx, s.Workspace, "^TestStubs$", "", "-test.parallel="+parallelStories)
}
