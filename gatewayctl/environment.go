package gatewayctl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// environment are the variables and the clock that the command line is read with. With --local the variables of the
// local run come before the process's own.
type environment struct {
	now             func() time.Time
	processVariable func(string) string
	localRun        map[string]string
	readError       error // why the local run's variables cannot be read
}

func (e *environment) get(name string) string {
	return cmp.Or(e.localRun[name], e.processVariable(name))
}

// loadLocalRun reads the local run's variables once if the command line has --local. It stores its error in readError:
// the parser would report it as an error of an unrelated flag.
func (e *environment) loadLocalRun(parsed *kong.Context) {
	if e.localRun != nil || e.readError != nil {
		return
	}
	for _, element := range parsed.Path {
		if element.Flag == nil || element.Flag.Name != session.LocalFlag || parsed.FlagValue(element.Flag) != true {
			continue
		}
		folder := cmp.Or(e.processVariable(session.LocalVariable), session.LocalFolder)
		e.localRun, e.readError = readLocal(folder)
		if errors.Is(e.readError, fs.ErrNotExist) {
			e.readError = fmt.Errorf("no local run uses %s: make run, or set LOCAL_DIR to its folder", folder)
		}
		return
	}
}

// readLocal reads the variables of a local run: aws.env, and the addresses and constants in run.json.
func readLocal(folder string) (map[string]string, error) {
	found := map[string]string{"ALLOW_LOOPBACK": "true"}
	text, err := os.ReadFile(filepath.Join(folder, "aws.env"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, set := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if set {
			value = strings.TrimSuffix(strings.TrimPrefix(value, "'"), "'")
			found[name] = strings.ReplaceAll(value, `'\''`, "'")
		}
	}
	text, err = os.ReadFile(filepath.Join(folder, "run.json"))
	if err != nil {
		return nil, err
	}
	var run struct {
		merchants.Platform
		SandboxURL string `json:"sandbox_url" variable:"SANDBOX_URL"`
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return nil, err
	}
	names, values := output.Cells(run, "variable")
	for i, name := range names {
		found[name] = values[i]
	}
	return found, nil
}
