package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
)

// speed divides the lifetimes and schedules of the run that the stories share.
const speed = 60

// parallelStories is how many tests run in parallel, because stories wait most of the time.
const parallelStories = "48"

func TestMain(m *testing.M) {
	flag.Parse()
	explicit := false
	flag.Visit(func(f *flag.Flag) { explicit = explicit || f.Name == "test.parallel" })
	if !explicit {
		if err := flag.Set("test.parallel", parallelStories); err != nil {
			panic(err)
		}
	}
	os.Exit(runAndCheckPermissions(m.Run))
}

// TestGateway runs the stories, and floods of equal requests beside them, against one run. At the end of all of them
// the sandbox's journal reconciles with the ledger.
func TestGateway(t *testing.T) {
	t.Parallel()
	target := openTarget(t)
	if os.Getenv("E2E_RUN_JSON") == "" {
		program, began := buildCommand(t, "gatewayctl"), time.Now()
		t.Cleanup(func() { target.reconcileSandbox(t, program, began) })
	}
	t.Run("stories", func(t *testing.T) {
		t.Parallel()
		testscript.Run(t, testscript.Params{
			Dir:                filepath.FromSlash("stories"),
			Setup:              func(env *testscript.Env) error { return newStory(target, env) },
			Cmds:               testscriptCommands(),
			Condition:          target.condition,
			RequireUniqueNames: true,
		})
	})
	t.Run("flood", func(t *testing.T) {
		t.Parallel()
		runFloods(t, target)
	})
}

// target is a running gateway, described by its run.json.
type target struct {
	local.Info

	path string
	// idPrefix begins every id of this test process. It has only digits, as order_id requires.
	idPrefix   string
	storyCount atomic.Int64
	// differences are what the stories make differ between the sandbox's journal and the ledger.
	differences expectedDifferences
}

// openTarget opens the run that E2E_RUN_JSON names, or starts a local run.
func openTarget(t *testing.T) *target {
	t.Helper()
	path := os.Getenv("E2E_RUN_JSON")
	if path != "" {
		return mustReadTarget(t, path)
	}
	printed := &outputRecorder{}
	run := localtest.Start(t, localtest.Options{Speed: speed, Out: printed})
	found := mustReadTarget(t, filepath.Join(run.Dir, "run.json"))
	t.Cleanup(func() { checkNoSecretsPrinted(t, found, printed, filepath.Join(run.Dir, "log")) })
	return found
}

// readTarget reads a run.json.
func readTarget(path string) (*target, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := &target{path: path, idPrefix: idPrefix(time.Now(), os.Getpid())}
	if err := json.Unmarshal(text, found); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

// functionPIDs returns a function's processes from the current run.json.
func (g *target) functionPIDs(t testing.TB) map[string][]int {
	t.Helper()
	now, err := readTarget(g.path)
	if err != nil {
		t.Fatal(err)
	}
	return now.PIDs.Functions
}

// idPrefix returns 13 digits that no other test process has. Two processes that start in the same millisecond have
// different process ids.
func idPrefix(now time.Time, process int) string {
	return fmt.Sprintf("%011d%02d", now.UnixMilli()%1e11, process%100)
}

// newID returns an id that no other story and no earlier run has: digits only, at most 16.
func (g *target) newID() string { return fmt.Sprintf("%s%03d", g.idPrefix, g.storyCount.Add(1)) }

// condition evaluates a condition of a script: a target capability, [local] for a local run, or [node] for an
// installed Node.js.
func (g *target) condition(name string) (bool, error) {
	if can, known := targetCapability(name); known {
		return can, nil
	}
	switch name {
	case "local":
		return os.Getenv("E2E_RUN_JSON") == "", nil
	case "node":
		_, err := exec.LookPath("node")
		return err == nil, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// requireLocalRun skips a test that kills processes or starts its own runs if the target is not a local run.
func requireLocalRun(t *testing.T) {
	t.Helper()
	if os.Getenv("E2E_RUN_JSON") != "" {
		t.Skip("E2E_RUN_JSON names the run to test: this test starts its own")
	}
}
