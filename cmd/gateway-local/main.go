// Command gateway-local runs the whole gateway on this machine until it is interrupted. make run builds and starts it.
//
// Its settings are environment variables: PORT (3000; 0 for free ports), SPEED, RESET=1, LOCAL_DIR, and STANDINS=1 for
// a stub of each operator's platform. The variable AWS_ENDPOINT_URL_DYNAMODB selects another database. SANDBOX_SEED
// turns on fault injection (world/operators/sandbox/README.md). Every duration of template.yaml can be set by its name.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"syscall"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/internal/repository"
	"mobilegateway/local"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancelOrphanWatch := cancelWhenOrphaned(ctx)
	defer cancelOrphanWatch()
	if err := run(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "gateway-local:", err)
		os.Exit(1)
	}
}

// newConsole returns the console of the run.
func newConsole(at local.ConsolePlace) (local.Console, error) {
	name := "unknown"
	if found, err := user.Current(); err == nil {
		name = found.Username
	}
	host, _ := os.Hostname()
	return gatewayctl.LocalConsole{
		System: deployment.System{
			Getenv: os.Getenv, User: name + "@" + host, Now: time.Now, Rand: rand.Reader, Connect: deployment.Connect,
		},
		Dir: at.Dir, Port: at.Port, SandboxURL: at.SandboxURL,
	}.New()
}

// run starts the gateway and waits for its end.
func run(ctx context.Context) error {
	root, err := repository.Root()
	if err != nil {
		return err
	}
	config, err := local.FromEnvironment(os.LookupEnv, root)
	if err != nil {
		return err
	}
	config.Out, config.Console = os.Stdout, newConsole
	gateway, err := local.Start(ctx, config)
	if ctx.Err() != nil {
		return nil // interrupted during the start: Start has stopped everything
	}
	if err != nil {
		return err
	}
	defer gateway.Close()
	gateway.WriteBanner(os.Stdout)
	select {
	case <-ctx.Done():
		return nil
	case err := <-gateway.Failed():
		return err
	}
}
