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

	"github.com/alecthomas/kong"
)

// The local run's folder, and what it tells of itself there.
const (
	localFlag     = "local"
	localVariable = "LOCAL_DIR"
	localFolder   = ".local"
)

// environment are the variables that the tool reads: those of the environment and, over them with --local, those of
// the local run.
type environment struct {
	processVariable func(string) string
	localRun        map[string]string
	readError       error // why the local run's cannot be read
}

// get reads one.
func (s *environment) get(name string) string {
	return cmp.Or(s.localRun[name], s.processVariable(name))
}

// loadLocalRun reads the local run's variables, once, where the command line asks for it. It gives no error, which the parser
// would report as one of whichever flag it asks about: fault has it.
func (s *environment) loadLocalRun(parsed *kong.Context) {
	if s.localRun != nil || s.readError != nil {
		return
	}
	for _, element := range parsed.Path {
		if element.Flag == nil || element.Flag.Name != localFlag || parsed.FlagValue(element.Flag) != true {
			continue
		}
		folder := cmp.Or(s.processVariable(localVariable), localFolder)
		found, err := readLocal(folder)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("no local run uses %s: make run, or set LOCAL_DIR to its folder", folder)
		}
		s.localRun, s.readError = found, err
		return
	}
}

// readLocal reads aws.env, which a run writes for shells, and where its sandbox is from run.json.
func readLocal(folder string) (map[string]string, error) {
	found := map[string]string{"ALLOW_LOOPBACK": "true"}
	text, err := os.ReadFile(filepath.Join(folder, "aws.env"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, set := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if set {
			found[name] = strings.Trim(value, "'")
		}
	}
	text, err = os.ReadFile(filepath.Join(folder, "run.json"))
	if err != nil {
		return nil, err
	}
	var run struct {
		SandboxURL string `json:"sandbox_url"`
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return nil, err
	}
	found["SANDBOX_URL"] = run.SandboxURL
	return found, nil
}
