// Command localstack deploys the template to LocalStack with `sam deploy`, as it would be deployed to AWS, and plays the
// stories against it: `make e2e-localstack`.
//
// LocalStack brings API Gateway, DynamoDB with its streams, Secrets Manager, EventBridge and CloudFormation; nobody here
// wrote those. The functions are the programs of `sam build`, run by internal/runtimeapi because LocalStack's own way
// needs containers. Sandbox and inbox are on this host, and call the deployed API back.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"mobilegateway/e2e/stage"
	"mobilegateway/internal/local"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	hold := flag.Bool("hold", false, "deploy, tell where run.json is, and wait for an interrupt")
	flag.Parse()
	if err := run(ctx, *hold, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "e2e-localstack:", err)
		os.Exit(1)
	}
}

// run does everything once; what it started is gone when it returns. arguments go to the tests.
func run(ctx context.Context, hold bool, arguments []string) error {
	began := time.Now()
	say := func(format string, values ...any) {
		fmt.Fprintf(os.Stdout, "[%4.0fs] %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, values...))
	}
	root, err := stage.Root()
	if err != nil {
		return err
	}
	if err := stage.Install(ctx, root, "sam", "localstack", "dynamodb"); err != nil {
		return err
	}
	dir := filepath.Join(root, ".local", "e2e-localstack")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "functions"), 0o700); err != nil {
		return err
	}
	say("tools are there")
	e, err := open(ctx, root, dir)
	if err != nil {
		return err
	}
	defer e.close()
	say("LocalStack answers")
	if err := e.deploy(ctx, say); err != nil {
		return err
	}
	if hold {
		say("deployed; E2E_RUN_JSON=%s", e.runJSON())
		<-ctx.Done()
		return nil
	}
	return e.play(ctx, say, arguments)
}

// stand is all that runs.
type stand struct {
	root, dir    string
	environments *environments
	partners     *stage.Partners
	server       *server
	stack        *stack
	deployment   local.Deployment
	front        net.Listener
	closers      []func()
}

// open starts what the deployment needs.
func open(ctx context.Context, root, dir string) (s *stand, err error) {
	s = &stand{root: root, dir: dir}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	// A function refuses ALLOW_LOOPBACK where AWS_EXECUTION_ENV is set, as LocalStack sets it. Here the machine takes the one
	// away and gives the other; no parameter of the template can do that.
	s.environments = newEnvironments(filepath.Join(dir, "functions"), map[string]string{
		"AWS_EXECUTION_ENV": "", "ALLOW_LOOPBACK": "true", "SPEED": strconv.Itoa(stage.Speed),
	})
	executor, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	serving := stage.Serve(executor, s.environments.handler())
	s.closers = append(s.closers, s.environments.close, func() { _ = serving.Close() })
	s.partners, err = stage.NewPartners(dir, "127.0.0.1")
	if err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.partners.Close)
	s.front, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	s.closers = append(s.closers, func() { _ = s.front.Close() })
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s.server, err = startServer(starting, root, dir, "http://"+executor.Addr().String())
	if err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.server.Stop)
	s.stack = newStack(root, dir, s.server, "http://"+s.front.Addr().String())
	return s, nil
}

// close ends everything in the reverse order.
func (s *stand) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

// runJSON is where the stories find what they play against.
func (s *stand) runJSON() string { return filepath.Join(s.dir, "run.json") }

// deploy builds, deploys and furnishes the stack, and opens its front.
func (s *stand) deploy(ctx context.Context, say func(string, ...any)) (err error) {
	bundle := filepath.Join(s.dir, "bundle")
	if err := s.stack.build(ctx, bundle, ""); err != nil {
		return err
	}
	say("built")
	if err := s.stack.deploy(ctx, bundle); err != nil {
		return err
	}
	say("deployed: outputs %v", s.stack.sortedOutputs())
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
	var serving *http.Server = stage.Serve(s.front, handler)
	s.closers = append(s.closers, func() { _ = serving.Close() })
	if err := s.quicken(ctx); err != nil {
		return err
	}
	say("secrets put, merchants onboarded")
	return stage.WriteRunJSON(s.runJSON(), info)
}

// storiesAtOnce is how many stories wait side by side; LocalStack works on fewer requests at once than the local run.
const storiesAtOnce = "16"

// play tells the stories, and then changes the deployment under payments in flight.
func (s *stand) play(ctx context.Context, say func(string, ...any), arguments []string) error {
	address, err := s.control(say)
	if err != nil {
		return err
	}
	arguments = append([]string{"-parallel=" + storiesAtOnce, "-v", "-run", "^(TestGateway|TestChangeInFlight)$"}, arguments...)
	if err := stage.Stories(ctx, s.root, "localstack", s.runJSON(), address, arguments...); err != nil {
		return err
	}
	for _, name := range []string{"relay", "sweep"} {
		all, scheduled := s.environments.counts(name)
		say("%s: %d events, %d of them by LocalStack's own schedule", name, all, scheduled)
		if all == 0 || (name == "sweep" && scheduled == 0) {
			return fmt.Errorf("LocalStack never invoked %s by itself", name)
		}
	}
	return nil
}
