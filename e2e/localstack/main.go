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

	"mobilegateway/e2e/stage"
	"mobilegateway/internal/local"
)

func main() {
	hold := flag.Bool("hold", false, "deploy, tell where run.json is, and wait for an interrupt")
	flag.Parse()
	os.Exit(stage.Enclosure{
		Name: "e2e-localstack", Prepare: prepare,
		OwnNetwork: func(context.Context, string) bool { return !*hold },
		Work:       func(ctx context.Context, site stage.Site) error { return work(ctx, site, *hold) },
	}.Main())
}

// prepare installs and fetches what is missing.
func prepare(ctx context.Context, site stage.Site) error {
	if err := stage.Install(ctx, site.Root, "sam", "localstack", "dynamodb"); err != nil {
		return err
	}
	return stage.FetchModules(ctx, site)
}

// work does everything once.
func work(ctx context.Context, site stage.Site, hold bool) error {
	s := &stand{Site: site, began: time.Now()}
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.deploy(ctx); err != nil {
		return err
	}
	if hold {
		s.say("deployed; E2E_RUN_JSON=%s", s.runJSON())
		select {}
	}
	return s.play(ctx)
}

// stand is all that runs.
type stand struct {
	stage.Site
	began        time.Time
	environments *environments
	partners     *stage.Partners
	server       *server
	stack        *stack
	deployment   local.Deployment
	front        net.Listener
}

func (s *stand) say(format string, values ...any) {
	fmt.Fprintf(os.Stdout, "[%4.0fs] %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, values...))
}

// open starts what the deployment needs, and builds it meanwhile.
func (s *stand) open(ctx context.Context) (err error) {
	logs := filepath.Join(s.Dir, "functions")
	if err := os.Mkdir(logs, 0o700); err != nil {
		return err
	}
	// A function refuses ALLOW_LOOPBACK where AWS_EXECUTION_ENV is set, as LocalStack sets it. Here the machine takes the one
	// away and gives the other; no parameter of the template can do that.
	s.environments = newEnvironments(logs, map[string]string{
		"AWS_EXECUTION_ENV": "", "ALLOW_LOOPBACK": "true", "SPEED": strconv.Itoa(stage.Speed),
	})
	executor, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	stage.Serve(executor, s.environments.handler())
	if s.partners, err = stage.NewPartners(s.Dir, "127.0.0.1"); err != nil {
		return err
	}
	if s.front, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	if s.server, err = startServer(s.Site, "http://"+executor.Addr().String()); err != nil {
		return err
	}
	s.stack = newStack(s.Site, s.server, "http://"+s.front.Addr().String())
	if err := s.stack.build(ctx, s.bundle(), ""); err != nil {
		return err
	}
	s.say("built")
	if err := s.server.ready(ctx); err != nil {
		return err
	}
	s.say("LocalStack answers")
	return nil
}

// bundle is what is deployed first.
func (s *stand) bundle() string { return filepath.Join(s.Dir, "bundle") }

// runJSON is where the stories find what they play against.
func (s *stand) runJSON() string { return filepath.Join(s.Dir, "run.json") }

// deploy deploys and furnishes the stack, and opens its front.
func (s *stand) deploy(ctx context.Context) (err error) {
	if err := s.stack.deploy(ctx, s.bundle()); err != nil {
		return err
	}
	s.say("deployed: outputs %v", s.stack.sortedOutputs())
	s.deployment, err = s.stack.deployment(s.partners)
	if err != nil {
		return err
	}
	info, err := s.deployment.Furnish(ctx)
	if err != nil {
		return err
	}
	s.partners.Trust(info)
	handler, err := s.stack.front()
	if err != nil {
		return err
	}
	stage.Serve(s.front, handler)
	if err := s.quicken(ctx); err != nil {
		return err
	}
	s.say("secrets put, merchants onboarded")
	return stage.WriteRunJSON(s.runJSON(), info)
}

// storiesAtOnce is how many stories wait side by side; LocalStack works on fewer requests at once than the local run.
const storiesAtOnce = "16"

// slowStories are those in which the operator takes a minute.
const slowStories = "^TestGateway$/^stories$/-slow"

// play tells the stories, and then changes the deployment under payments in flight; the slow stories go on beside all that.
func (s *stand) play(ctx context.Context) error {
	address, err := s.control()
	if err != nil {
		return err
	}
	stories := stage.Stories{Target: "localstack", RunJSON: s.runJSON(), DeployURL: address}
	err = stage.Together(ctx,
		func(ctx context.Context) error {
			if err := stories.Play(ctx, s.Site, slowStories, ""); err != nil {
				return err
			}
			s.say("the slow stories are told")
			return nil
		},
		func(ctx context.Context) error {
			if err := stories.Play(ctx, s.Site, "^TestGateway$", slowStories, "-test.parallel="+storiesAtOnce); err != nil {
				return err
			}
			s.say("the other stories are told")
			return stories.Play(ctx, s.Site, "^TestChangeInFlight$", "")
		},
	)
	if err != nil {
		return err
	}
	for _, name := range []string{"relay", "sweep"} {
		all, scheduled := s.environments.counts(name)
		s.say("%s: %d events, %d of them by LocalStack's own schedule", name, all, scheduled)
		if all == 0 || (name == "sweep" && scheduled == 0) {
			return fmt.Errorf("LocalStack never invoked %s by itself", name)
		}
	}
	return nil
}
