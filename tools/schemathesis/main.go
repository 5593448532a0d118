// Command schemathesis holds a running gateway against its published contract: `make contract`.
//
// It starts a local run of its own, generates clients from the contract with three generators and runs them, gives schemathesis the contract of
// the run's first merchant, and ends everything, whatever came of it. Its invariant: it fails where schemathesis does, and where fewer cases ran than were asked for.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"mobilegateway/internal/contract"
	"mobilegateway/internal/local"
)

// leastCases is how many cases a run must have had to say anything.
const leastCases = 3000

// stopTimeout is how long schemathesis may take to end when it is asked to.
const stopTimeout = 5 * time.Second

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
}

// run does everything once. arguments go to schemathesis.
func run(ctx context.Context, arguments []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, tool := range []string{"schemathesis", "openapi-python-client", "openapi-generator"} {
		install := exec.CommandContext(ctx, filepath.Join(root, "e2e", "tools", "install"), tool)
		install.Stdout, install.Stderr = os.Stderr, os.Stderr
		if err := install.Run(); err != nil {
			return fmt.Errorf("install %s: %w", tool, err)
		}
	}
	dir := filepath.Join(root, ".local", "contract")
	gateway, err := local.Start(ctx, local.Config{Root: root, Dir: dir, Reset: true})
	if err != nil {
		return err
	}
	defer gateway.Close()
	info := gateway.Info()
	document, err := write(root, dir, info)
	if err != nil {
		return err
	}
	told, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if err := clients(ctx, root, string(told)); err != nil {
		return fmt.Errorf("a generated client: %w", err)
	}
	began := time.Now()
	output, err := schemathesis(ctx, root, dir, info, string(told), append([]string{"run", document, "--url", info.BaseURL}, arguments...))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("schemathesis: %w", err)
	}
	cases, err := generated(output)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(os.Stdout, "contract: %d cases in %.0f s, no failure\n", cases, time.Since(began).Seconds())
	if cases < leastCases && len(arguments) == 0 {
		return fmt.Errorf("%d cases, fewer than %d", cases, leastCases)
	}
	return nil
}

// write puts the contract of the run's first merchant beside the run.
func write(root, dir string, info local.Info) (path string, err error) {
	document, err := contract.Load(filepath.Join(root, "docs", "openapi.yaml"))
	if err != nil {
		return "", err
	}
	bound, err := document.ForMerchant(info.BaseURL, map[string][]string{
		"service_id": {info.ServiceID}, "application_id": {info.ApplicationID}, "contact_id": {info.ContactID},
		"on_behalf_of": {info.OnBehalfOf}, "order_prefix": {info.Merchant + "_"}, "notif_url": {info.InboxURL + "/hook"},
	})
	if err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(bound, "", " ")
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "contract.json")
	return path, os.WriteFile(path, text, 0o600)
}

// schemathesis runs it in the run's own folder, where it leaves its caches, to its end or until ctx ends, and gives what it
// printed.
func schemathesis(ctx context.Context, root, dir string, info local.Info, told string, arguments []string) ([]byte, error) {
	name := filepath.Join(root, ".local", "tools", "schemathesis", "bin", "schemathesis")
	config := []string{"--config-file", filepath.Join(root, "tools", "schemathesis", "schemathesis.toml")}
	command := exec.CommandContext(ctx, name, append(config, arguments...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CONTRACT_TOKEN="+info.AccessToken, "CONTRACT_CLIENT="+info.ClientID, "CONTRACT_SECRET="+info.ClientSecret,
		"CONTRACT_RUN="+told, "CONTRACT_HOOKS="+filepath.Join(root, "tools", "schemathesis", "hooks.py"), "PYTHONHASHSEED=0", "NO_COLOR=1")
	screen := &screen{}
	command.Stdout, command.Stderr = screen, screen
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = stopTimeout
	err := command.Run()
	return screen.text, err
}

// screen shows what it keeps.
type screen struct{ text []byte }

// Write is io.Writer's.
func (s *screen) Write(p []byte) (int, error) {
	s.text = append(s.text, p...)
	return os.Stdout.Write(p)
}

// summary is schemathesis' own count of its cases.
var summary = regexp.MustCompile(`(?m)^\s*(?:Test cases:\s*)?(\d+) generated`)

func generated(output []byte) (int, error) {
	found := summary.FindSubmatch(output)
	if found == nil {
		return 0, errors.New("schemathesis did not say how many cases it ran")
	}
	return strconv.Atoi(string(found[1]))
}
