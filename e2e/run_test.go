package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMakeRun checks the local run's contract: its output, run.json, refused settings, the end of all its processes,
// and data that survive a restart.
func TestMakeRun(t *testing.T) {
	requireLocalRun(t)
	t.Parallel()
	dir := t.TempDir()
	p := startMakeRun(t, dir, "PORT=0", "SPEED=60")
	g := p.waitReady(t)
	t.Run("run.json has the contract's fields and nothing else", func(t *testing.T) { checkRunJSON(t, g.path) })
	t.Run("the three printed curl lines work", func(t *testing.T) { checkCurl(t, p) })
	t.Run("the console's two addresses open a session each", func(t *testing.T) { checkConsole(t, p, g) })
	t.Run("a broken setting", func(t *testing.T) {
		checkStartRefused(t, t.TempDir(), "SPEED must be", "PORT=0", "SPEED=fast")
	})

	a := mustCharge(t, g, "survivor")
	before := processIDs(mustReadTarget(t, g.path).PIDs)
	p.signal(syscall.SIGINT)
	p.waitExit(t, 10*time.Second)
	t.Run("Ctrl-C leaves no process and no file of the run", func(t *testing.T) { checkNothingLeft(t, p, before) })

	p = startMakeRun(t, dir, "PORT=0", "SPEED=60")
	g = p.waitReady(t)
	t.Run("data survive a restart", func(t *testing.T) {
		again := mustCharge(t, g, "survivor")
		// The response was stored with the address of the first run.
		if again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(a.body) {
			t.Error(again.errorf("not the stored response\n%s", a.body))
		}
	})
	before = processIDs(mustReadTarget(t, g.path).PIDs)
	if err := syscall.Kill(g.PIDs.Run, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.waitExit(t, 10*time.Second)
	t.Run("kill -9 of the run leaves no process", func(t *testing.T) { waitGone(t, before) })

	p = startMakeRun(t, dir, "PORT=0", "SPEED=60", "RESET=1")
	g = p.waitReady(t)
	t.Run("RESET=1 begins with empty data", func(t *testing.T) {
		if again := mustCharge(t, g, "survivor"); again.header.Get("Idempotent-Replayed") != "" || again.status != 201 {
			t.Error(again.errorf("data of the earlier run are left"))
		}
	})
}

// TestExitStopsAllProcesses ends make instead of the run: the run ends with it.
func TestExitStopsAllProcesses(t *testing.T) {
	requireLocalRun(t)
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{
		"make is terminated": syscall.SIGTERM, "make is killed": syscall.SIGKILL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startMakeRun(t, t.TempDir(), "PORT=0")
			before := processIDs(p.waitReady(t).PIDs)
			if err := syscall.Kill(p.Process.Pid, signal); err != nil {
				t.Fatal(err)
			}
			p.waitExit(t, 30*time.Second)
			checkNothingLeft(t, p, before)
		})
	}
}

// TestRunEndsWithParent: if make is killed while it builds, the run does not start.
func TestRunEndsWithParent(t *testing.T) {
	requireLocalRun(t)
	t.Parallel()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(buildCommand(t, "gateway-local"))
	command.Env = append(os.Environ(), "PORT=0", "LOCAL_DIR="+t.TempDir(),
		fmt.Sprintf("PARENT_PID=%d", ended.ProcessState.Pid()))
	if output, err := command.CombinedOutput(); err != nil || strings.Contains(string(output), "curl") {
		t.Errorf("the run started without its parent: %v\n%s", err, output)
	}
}

// mustCharge sends a charge.
func mustCharge(t *testing.T, g *target, key string) observation {
	t.Helper()
	return g.mustSend(t, newCharge(g.MerchantCredentials, key, g.GWAlias))
}

// checkNothingLeft checks that the run left no process and none of its files.
func checkNothingLeft(t *testing.T, p *makeProcess, processes []int) {
	waitGone(t, processes)
	if err := syscall.Kill(-p.Process.Pid, 0); err == nil {
		t.Error("the process group still has members")
	}
	for _, name := range []string{"run.json", "env"} {
		if _, err := os.Stat(filepath.Join(p.dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s was not removed: %v", name, err)
		}
	}
}

// shopFields are a merchant's fields in the contract.
var shopFields = []string{
	"access_token", "client_id", "client_secret", "merchant", "on_behalf_of", "service_id", "application_id",
	"contact_id",
	"gw_token", "gw_alias", "webhook_secret",
}

// checkRunJSON compares run.json with the contract.
func checkRunJSON(t *testing.T, path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("run.json: %v, mode %s, want 0600", err, info.Mode())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	compareFields(t, "run.json", whole, append([]string{"base_url", "second_merchant", "limited_merchant", "inbox_url",
		"sandbox_url", "console_url", "pids"}, shopFields...))
	var second, processes map[string]json.RawMessage
	if err := json.Unmarshal(whole["second_merchant"], &second); err != nil {
		t.Error(err)
	}
	compareFields(t, "second_merchant", second, shopFields)
	if err := json.Unmarshal(whole["pids"], &processes); err != nil {
		t.Error(err)
	}
	compareFields(t, "pids", processes, []string{"run", "functions", "dynamodb"})
	for _, name := range shopFields {
		if string(whole[name]) == `""` || string(second[name]) == `""` {
			t.Errorf("%s is empty", name)
		}
	}
	if !strings.HasPrefix(string(whole["webhook_secret"]), `"whsec_`) {
		t.Error("webhook_secret does not begin with whsec_")
	}
}

func compareFields(t *testing.T, what string, got map[string]json.RawMessage, want []string) {
	t.Helper()
	for name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s has the field %s", what, name)
		}
	}
	for _, name := range want {
		if _, found := got[name]; !found {
			t.Errorf("%s has no field %s", what, name)
		}
	}
}

var consoleLine = regexp.MustCompile(`(?m)^Console .* (http://127\.0\.0\.1:\d+/open/[a-z2-7]{32})$`)

// checkConsole opens the address that is printed behind the curl lines, and the one of run.json. A second client is
// refused.
func checkConsole(t *testing.T, p *makeProcess, g *target) {
	printed := eventually(t, 5*time.Second, func() (string, error) {
		_, behind, _ := strings.Cut(p.outputText(), "\nSMS:\ncurl ")
		found := consoleLine.FindStringSubmatch(behind)
		if found == nil {
			return "", fmt.Errorf("no address of the console behind the curl lines in\n%s", p.outputText())
		}
		return found[1], nil
	})
	if printed == g.ConsoleURL {
		t.Error("both addresses open one session")
	}
	for _, address := range []string{printed, g.ConsoleURL} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		overview := address[:strings.Index(address, "/open/")+1]
		first, second := &http.Client{Jar: jar}, &http.Client{}
		for _, step := range []struct {
			what, address string
			client        *http.Client
			want          int
		}{
			{"the address", address, first, http.StatusOK}, {"the overview", overview, first, http.StatusOK},
			{"the address again", address, first, http.StatusOK},
			{"a second client", address, second, http.StatusForbidden},
			{"its overview", overview, second, http.StatusForbidden},
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, step.address, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := step.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != step.want {
				t.Errorf("%s: %d, want %d", step.what, response.StatusCode, step.want)
			}
		}
	}
}

// checkCurl runs the printed curl lines.
func checkCurl(t *testing.T, p *makeProcess) {
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("curl is not on the PATH, but CI must run this check")
		}
		t.Skip("curl is not on the PATH")
	}
	lines := eventually(t, 5*time.Second, func() ([]string, error) {
		found := regexp.MustCompile(`(?m)^curl -i .*$`).FindAllString(p.outputText(), -1)
		if len(found) != 3 {
			return nil, fmt.Errorf("%d curl lines in\n%s", len(found), p.outputText())
		}
		return found, nil
	})
	for _, line := range lines {
		output, err := exec.Command("sh", "-c", line+" -sS").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(output), "HTTP/1.1 201 ") {
			t.Errorf("%v\n%s\nprinted\n%s", err, line, output)
		}
	}
}
