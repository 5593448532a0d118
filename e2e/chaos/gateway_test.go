//go:build linux

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/childprocess"
	"mobilegateway/internal/file"
	"mobilegateway/internal/repository"
	"mobilegateway/local"
	"mobilegateway/shared/awsclient"
	"mobilegateway/world/operators/sandbox"
)

const (
	// settingsVariable makes the test binary the gateway. Its value is gatewaySettings in JSON.
	settingsVariable = "CHAOS_GATEWAY"
	// startTimeout bounds the start of the gateway, including the build of its programs.
	startTimeout = 5 * time.Minute
	// stopTimeout bounds the end of the gateway.
	stopTimeout = 30 * time.Second
)

// cacheTimes are the longest times that the functions accept, because speed divides them.
var cacheTimes = map[string]string{"PROFILE_CACHE_TTL": "1m", "SECRET_CACHE_TTL": "1h"}

// gatewaySettings configure the gateway's process.
type gatewaySettings struct {
	Dir, DynamoDB string
	Env           map[string]string
	Faults        sandbox.FaultSettings
}

// TestMain runs the tests, or the gateway if settingsVariable is set.
func TestMain(m *testing.M) {
	settings := os.Getenv(settingsVariable)
	if settings == "" {
		os.Exit(m.Run())
	}
	if err := runGateway([]byte(settings)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runGateway runs the local bundle as make run does, until an interrupt.
func runGateway(text []byte) error {
	var settings gatewaySettings
	if err := json.Unmarshal(text, &settings); err != nil {
		return err
	}
	root, err := repository.Root()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run, err := local.Start(ctx, local.Config{
		Root: root, Dir: settings.Dir, Speed: speed, Reset: true, DynamoDB: settings.DynamoDB,
		EnvOverrides: settings.Env, FaultPlan: settings.Faults, Out: os.Stdout,
	})
	if err != nil {
		return err
	}
	defer run.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-run.Failed():
		return err
	}
}

// gateway is the running gateway, its database, and the faulty links of its functions.
type gateway struct {
	local.Info

	dir         string
	environment map[string]string
	aws         *awsclient.Client
	database    *database
	exited      chan struct{}
	// toOperator and toDatabase are between the functions and these. toMerchants are in front of the inbox.
	toOperator, toDatabase *link
	toMerchants            map[string]*link
}

// startGateway starts the gateway in dir. It returns when the functions reach the operator and the database through
// the links.
func startGateway(t *testing.T, dir string, faults sandbox.FaultSettings) *gateway {
	t.Helper()
	prepareDir(t, dir)
	g := &gateway{
		dir: filepath.Join(dir, "run"), database: startDatabase(t, filepath.Join(dir, "ledger.db")),
		toOperator:  newLink(t, "operator", faultDurations),
		toDatabase:  newLink(t, "database", databaseFaultDurations),
		toMerchants: map[string]*link{},
	}
	overrides := map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": g.toDatabase.url()}
	maps.Copy(overrides, cacheTimes)
	g.startProcess(t, filepath.Join(dir, "run.log"), gatewaySettings{
		Dir: g.dir, DynamoDB: g.database.address, Faults: faults, Env: overrides,
	})
	info, err := readRunJSON(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	g.Info = info
	g.environment = mustReadEnvironment(t, filepath.Join(g.dir, "aws.env"))
	client, err := awsclient.New(func(name string) string { return g.environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	g.aws = client
	g.toDatabase.forwardTo(t, g.environment["AWS_ENDPOINT_URL_DYNAMODB"])
	g.toOperator.forwardTo(t, g.SandboxURL)
	for _, name := range []string{"unreliable merchants", "slow merchants"} {
		g.toMerchants[name] = newLink(t, name, faultDurations)
		g.toMerchants[name].forwardTo(t, g.InboxURL)
	}
	g.redirectOperator(t)
	return g
}

// prepareDir empties the folder. Another chaos run in the same folder fails the test.
func prepareDir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := file.TryLock(dir + ".lock")
	if err != nil {
		t.Fatalf("another chaos run uses %s: %v", dir, err)
	}
	t.Cleanup(unlock)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
}

// startProcess starts the gateway's process and stops it when the test ends.
func (g *gateway) startProcess(t *testing.T, log string, settings gatewaySettings) {
	t.Helper()
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), settingsVariable+"="+string(text))
	command.Stdout, command.Stderr = out, out
	g.exited = make(chan struct{})
	if err := childprocess.Start(command, func(error) { close(g.exited) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		select {
		case <-g.exited:
		case <-time.After(stopTimeout):
			t.Errorf("the gateway has not ended %s after the interrupt", stopTimeout)
			childprocess.KillGroup(command.Process)
		}
	})
	err = harness.Poll(t.Context(), startTimeout, func() error {
		_, err := readRunJSON(g.dir)
		select {
		case <-g.exited:
			t.Fatalf("the gateway did not start: see %s", log)
		default:
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// readRunJSON reads run.json.
func readRunJSON(dir string) (info local.Info, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return info, err
	}
	return info, json.Unmarshal(text, &info)
}

// mustReadEnvironment reads the variables of aws.env.
func mustReadEnvironment(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^export (\w+)='(.*)'$`).FindAllStringSubmatch(string(text), -1) {
		environment[found[1]] = found[2]
	}
	return environment
}

// redirectOperator replaces the operator's address in its credentials by that of the link.
func (g *gateway) redirectOperator(t *testing.T) {
	t.Helper()
	name := g.environment["OPERATOR_CREDENTIALS_SECRET"]
	secrets := local.Deployment{Client: g.aws}
	stored, err := secrets.SecretValue(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	moved := bytes.ReplaceAll(stored, []byte(g.SandboxURL), []byte(g.toOperator.url()))
	if bytes.Equal(moved, stored) {
		t.Fatal("the operators' credentials do not contain the sandbox's address")
	}
	if err := secrets.UpdateSecret(t.Context(), name, stored, moved); err != nil {
		t.Fatal(err)
	}
}
