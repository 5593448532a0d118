package gatewayctl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// environment are the variables and the clock that the command line is read with. With --local the variables of the
// local run come before the process's own. With --stack those of the stack come after them.
type environment struct {
	now             func() time.Time
	processVariable func(string) string
	readStack       func(name string) (*deployment.Stack, error)
	localRun        map[string]string
	stack           *deployment.Stack
	readError       error // why the variables of the local run or of the stack cannot be read
}

func (e *environment) get(name string) string {
	value := cmp.Or(e.localRun[name], e.processVariable(name))
	if value == "" && e.stack != nil {
		value = e.stack.Variables[name]
	}
	return value
}

// load reads the variables of the local run or of the stack once, if the command line names one.
func (e *environment) load(parsed *kong.Context) {
	e.loadLocalRun(parsed)
	e.loadStack(parsed)
}

// loadStack is loadLocalRun for --stack.
func (e *environment) loadStack(parsed *kong.Context) {
	if e.stack != nil || e.readError != nil {
		return
	}
	for _, element := range parsed.Path {
		if element.Flag == nil || element.Flag.Name != session.StackFlag {
			continue
		}
		name, _ := parsed.FlagValue(element.Flag).(string)
		switch {
		case e.localRun != nil:
			e.readError = errors.New("--local and --stack name two deployments: use one of them")
		case name == "":
			e.readError = errors.New("--stack has no name: name the stack, such as mobile-gateway-prod")
		default:
			e.stack, e.readError = e.readStack(name)
		}
		return
	}
}

// overridden lists the variables of the process that replace those of the stack by other values.
func (e *environment) overridden() (names []string) {
	if e.stack == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(e.stack.Variables)) {
		own := e.processVariable(name)
		if own != "" && e.stack.Variables[name] != "" && own != e.stack.Variables[name] {
			names = append(names, name)
		}
	}
	return names
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
