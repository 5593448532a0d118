// Command target runs the stories against a deployed gateway: `make e2e TARGET=...`.
//
// The target is a run.json or the name of a stack. It seeds a stack once with secrets, the sandbox as every operator,
// and demo merchants, and stores their credentials in .local/e2e-target. It refuses a stage whose name begins with prod
// or live, and a stack whose operators' secret contains another platform than the sandbox.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"mobilegateway/deploy/samcli"
	"mobilegateway/e2e/harness"
	"mobilegateway/local"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	stubs := flag.Bool("stubs", false, "serve a sandbox and an inbox on this host, and print their variables")
	flag.Parse()
	root, err := os.Getwd()
	switch {
	case err != nil:
	case *stubs:
		err = serveStubs(ctx, filepath.Join(root, ".local", "e2e-target", "stubs"))
	default:
		err = runStories(ctx, root, os.Getenv, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// serveStubs serves a sandbox operator and an inbox on this host until an interrupt, for a stack on LocalStack. It
// prints the variables with which to seed that stack.
func serveStubs(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	stubs, err := harness.NewStubs(dir, "127.0.0.1")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "export SANDBOX_URL=%s SANDBOX_TOKEN=%s INBOX_URL=%s\n",
		stubs.SandboxURL, stubs.SandboxToken, stubs.InboxURL)
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, stubs.Close())
}

// parallelStories is how many stories run in parallel, because a small stack handles few requests at once.
const parallelStories = "16"

// runStories runs the stories against the target in arguments[0]. The other arguments go to the tests.
func runStories(ctx context.Context, root string, variable func(string) string, arguments []string) error {
	if len(arguments) == 0 || arguments[0] == "" {
		return errors.New("no target: give a run.json or the name of a stack")
	}
	path := arguments[0]
	kind := "stack" // a target of e2e/target_limitations_test.go; "" is a local run
	if variable("AWS_ENDPOINT_URL") != "" {
		kind = "localstack"
	}
	if strings.HasSuffix(path, ".json") {
		isLocal, err := isLocalRun(path)
		if err != nil {
			return err
		}
		if isLocal {
			kind = ""
		}
	} else {
		sam, err := samcli.Find(root)
		if err != nil {
			return err
		}
		outputs, err := samcli.StackOutputs(ctx, root, sam, path)
		if err != nil {
			return fmt.Errorf("read the outputs of the stack %s: %w", path, err)
		}
		if path, err = seededRunJSON(ctx, root, variable, path, outputs); err != nil {
			return err
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", append([]string{
		"test", "-count=1", "-timeout=30m", "./e2e", "-parallel=" + parallelStories, "-run=^TestGateway$",
	}, arguments[1:]...)...)
	command.Dir, command.Env = root, append(os.Environ(), "E2E_RUN_JSON="+path, "E2E_TARGET="+kind)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}

// isLocalRun reports whether a run.json belongs to `make run`: only that one has the process id of a run.
func isLocalRun(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	var info local.Info
	err = json.Unmarshal(text, &info)
	return info.PIDs.Run != 0, err
}

// baseURL returns the address of the stack's API: BASE_URL, else the stage's, which LocalStack serves under a path.
func baseURL(outputs map[string]string, variable func(string) string) (string, error) {
	if own := variable("BASE_URL"); own != "" {
		return strings.TrimRight(own, "/"), nil
	}
	endpoint := variable("AWS_ENDPOINT_URL")
	if endpoint == "" {
		return outputs["BaseUrl"], nil
	}
	address, err := url.Parse(outputs["BaseUrl"])
	if err != nil {
		return "", err
	}
	id, _, _ := strings.Cut(address.Host, ".")
	return strings.TrimRight(endpoint, "/") + "/_aws/execute-api/" + id + address.Path, nil
}
