// Command target plays the stories against a gateway that is deployed already: `make e2e TARGET=...`.
//
// The target is a run.json, or the name of a stack. A stack is furnished first, once: secrets, the sandbox as every
// operator, and two demo merchants; what they hold is kept in .local/e2e-target. It is never a stack of a stage whose
// name begins with prod or live, nor one whose operators' secret knows another platform than the sandbox.
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

	"mobilegateway/internal/samcli"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	stubs := flag.Bool("partners", false, "hold a sandbox operator and an inbox on this host, until an interrupt, and tell their variables")
	flag.Parse()
	err := func() error {
		root, err := os.Getwd()
		switch {
		case err != nil:
			return err
		case *stubs:
			return serveStubs(ctx, filepath.Join(root, ".local", "e2e-target", "partners"), os.Stdout)
		}
		return runStories(ctx, root, os.Getenv, flag.Args())
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// parallelStories is how many stories wait side by side: a small stack works on few requests at once.
const parallelStories = "16"

// Targets, as e2e/exceptions_test.go names them; "" is a local run.
const (
	targetStack      = "stack"
	targetLocalStack = "localstack"
)

// runStories plays the stories against a target. arguments after it go to the tests.
func runStories(ctx context.Context, root string, variable func(string) string, arguments []string) error {
	if len(arguments) == 0 || arguments[0] == "" {
		return errors.New("which target? A run.json, or the name of a stack")
	}
	kind := targetStack
	if variable("AWS_ENDPOINT_URL") != "" {
		kind = targetLocalStack
	}
	path := arguments[0]
	if strings.HasSuffix(path, ".json") {
		own, err := isLocalRun(path)
		if err != nil {
			return err
		}
		if own {
			kind = ""
		}
	} else {
		sam, err := samcli.Find(root)
		if err != nil {
			return err
		}
		outputs, err := samcli.StackOutputs(ctx, root, sam, path)
		if err != nil {
			return fmt.Errorf("the outputs of the stack %s: %w", path, err)
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

// isLocalRun tells whether a run.json is one of `make run`: it knows its processes.
func isLocalRun(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	var info struct {
		PIDs struct {
			Run int `json:"run"`
		} `json:"pids"`
	}
	err = json.Unmarshal(text, &info)
	return info.PIDs.Run != 0, err
}

// baseURL is where the stack's API is reached: BASE_URL, else the stage's own address, which LocalStack serves under a path.
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
