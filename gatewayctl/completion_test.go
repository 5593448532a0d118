package gatewayctl

import (
	"strconv"
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"gatewayctl ":                  "merchant",
		"gatewayctl keys add ":         "callbacks",
		"gatewayctl export --format ":  "csv",
		"gatewayctl merchant add --co": "--country",
		"gatewayctl operator set ":     "keys.go",
	} {
		t.Run(line, func(t *testing.T) {
			t.Setenv("COMP_LINE", line)
			t.Setenv("COMP_POINT", strconv.Itoa(len(line)))
			d := newTestTool(t)
			d.variables["COMP_LINE"] = line
			if code, out, _ := d.run(""); code != ExitDone || !strings.Contains(out, want) {
				t.Errorf("completion of %q: exit %d, %q lacks %q", line, code, out, want)
			}
		})
	}
}

func TestHelpAndCompletionCode(t *testing.T) {
	d := newTestTool(t)
	for line, want := range map[string]string{
		"completion bash":     "source <(gatewayctl completion -c bash)",
		"completion -c bash":  "complete -o default -o bashdefault -C",
		"completion -c zsh":   "bashcompinit",
		"completion -c fish":  "complete -f -c gatewayctl",
		"--help":              "webhook-secret rotate",
		"merchant add --help": "--notif-url",
		"slot list --help":    "($SANDBOX_URL)",
	} {
		if code, out, stderr := d.run(line); code != ExitDone || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, %s lacks %s; %s", line, code, out, want, stderr)
		}
	}
	d.expectExit("", ExitUsage, "expected")
	d.expectExit("bogus", ExitUsage, "bogus")
}

// TestToolRunsCommandsOneAfterAnother: a tool that has run one command still knows all others.
func TestToolRunsCommandsOneAfterAnother(t *testing.T) {
	d := newTestTool(t)
	for _, line := range []string{"merchant list", "keys --help", "audit", "--help", "merchant list"} {
		var out, messages strings.Builder
		code := d.Tool.Run(t.Context(), strings.Fields(line), System{
			Stdout: &out, Stderr: &messages, Getenv: func(name string) string { return d.variables[name] },
			Now: d.nowFunc(), Connect: d.connect,
		})
		if code != ExitDone {
			t.Errorf("%s: exit %d: %s", line, code, &messages)
		}
		for _, command := range []string{"webhook-secret rotate", "merchant list", "audit"} {
			if line == "--help" && !strings.Contains(out.String(), command) {
				t.Errorf("%s: no %q: %s", line, command, &out)
			}
		}
	}
}
