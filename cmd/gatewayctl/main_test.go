package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// buildTool returns a folder for the PATH, with the program.
func buildTool(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the program")
	}
	folder := t.TempDir()
	output, err := exec.Command("go", "build", "-o", filepath.Join(folder, "gatewayctl"), ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return folder
}

// TestCompletion loads the completion code in each installed shell, and completes lines as the shell does on Tab.
func TestCompletion(t *testing.T) {
	folder := buildTool(t)
	shells := map[string]struct {
		complete string // completes the line $LINE and prints what is offered, a word per line
		flags    []string
	}{
		"bash": {`source <(gatewayctl completion -c bash)
export COMP_LINE=$LINE COMP_POINT=${#LINE}
eval "$(complete -p gatewayctl | sed 's/.*-C \([^ ]*\).*/\1/')"`, []string{"--norc", "--noprofile"}},
		"zsh": {`autoload -U compinit; compinit -D
source <(gatewayctl completion -c zsh)
COMP_LINE=$LINE COMP_POINT=${#LINE} ${${_comps[gatewayctl]##*-C }%% *}`, []string{"-f"}},
		"fish": {`gatewayctl completion -c fish | source
complete -C "$LINE"`, []string{"--no-config"}},
	}
	cases := []struct {
		line string
		want []string
	}{
		{"gatewayctl mer", []string{"merchant"}},
		{"gatewayctl --json keys ", []string{"add", "list", "retire", "revoke"}},
		{"gatewayctl keys retire w", []string{"webhooks"}},
		{"gatewayctl export --format ", []string{"csv", "json", "ndjson"}},
	}
	for shell, how := range shells {
		t.Run(shell, func(t *testing.T) {
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(shell + " is not on the PATH")
			}
			for _, c := range cases {
				command := exec.Command(program, append(slices.Clone(how.flags), "-c", how.complete)...)
				command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "LINE="+c.line, "HOME="+folder)
				output, err := command.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", c.line, err, output)
				}
				offered := slices.Sorted(slices.Values(strings.Fields(string(output))))
				if !slices.Equal(offered, c.want) {
					t.Errorf("%q: %q is offered, want %q", c.line, offered, c.want)
				}
			}
		})
	}
}

// TestExitCodes runs the program as a script does.
func TestExitCodes(t *testing.T) {
	program := filepath.Join(buildTool(t), "gatewayctl")
	cases := []struct {
		line string
		code int
		want string
	}{
		{"--help", 0, "webhook-secret rotate"},
		{"completion -c bash", 0, "complete -o default"},
		{"", 0, "begin with gatewayctl attention"},
		{"merchant paint", 2, "paint"},
		{"merchant list", 2, "LEDGER_TABLE"},
		{"merchant list --local", 2, "make run"},
		{"merchant list --ledger-table l --merchant-table m", 1, "connection refused"},
	}
	for _, c := range cases {
		command := exec.Command(program, strings.Fields(c.line)...)
		command.Dir = t.TempDir()
		command.Env = []string{"HOME=" + command.Dir, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=K",
			"AWS_SECRET_ACCESS_KEY=s",
			"AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1"}
		output, err := command.CombinedOutput()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		if code := command.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(output), c.want) {
			t.Errorf("%q: exit %d, want %d; %s lacks %q", c.line, code, c.code, output, c.want)
		}
	}
}
