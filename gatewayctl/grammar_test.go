package gatewayctl_test

import (
	"strconv"
	"strings"
	"testing"

	"mobilegateway/gatewayctl"
	"mobilegateway/proof/kits/gatewayctltest"
)

func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"gatewayctl ":                  "merchant",
		"gatewayctl keys add ":         "callbacks",
		"gatewayctl export --format ":  "csv",
		"gatewayctl merchant add --co": "--country",
		"gatewayctl operator set ":     "environment.go",
	} {
		t.Run(line, func(t *testing.T) {
			t.Setenv("COMP_LINE", line)
			t.Setenv("COMP_POINT", strconv.Itoa(len(line)))
			d := gatewayctltest.New(t)
			d.Variables["COMP_LINE"] = line
			d.ExpectOutput("", want)
		})
	}
}

// One tool runs many commands, such as those of the console. Each needs its own required flags.
func TestRequiredFlagOfTheNextCommand(t *testing.T) {
	d := gatewayctltest.New(t)
	code, _, stderr := d.Exec("reconcile --platform sandbox --day 2026-03-01 --statement missing.csv")
	if code == gatewayctl.ExitDone {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	code, _, stderr = d.Exec("reconcile --platform sandbox --day 2026-03-01")
	if code != gatewayctl.ExitUsage || !strings.Contains(stderr, "missing flags: --statement") {
		t.Errorf("exit %d, %s, want the missing flag", code, stderr)
	}
}

func TestHelpAndCompletionCode(t *testing.T) {
	d := gatewayctltest.New(t)
	for line, want := range map[string]string{
		"completion bash":     "source <(gatewayctl completion -c bash)",
		"completion -c bash":  "complete -o default -o bashdefault -C",
		"completion -c zsh":   "bashcompinit",
		"completion -c fish":  "complete -f -c gatewayctl",
		"--help":              "webhook-secret rotate",
		"merchant add --help": "--notif-url",
		"slot list --help":    "($SANDBOX_URL)",
		"":                    "What to do first",
	} {
		d.ExpectOutput(line, want)
	}
	d.ExpectExit("bogus", gatewayctl.ExitUsage, "bogus")
}

// TestToolRunsCommandsOneAfterAnother: a tool that has run one command still knows all others.
func TestToolRunsCommandsOneAfterAnother(t *testing.T) {
	d := gatewayctltest.New(t)
	for _, line := range []string{"merchant list", "keys --help", "audit", "--help", "merchant list", "keys --help"} {
		d.ExpectOutput(line) // by the same tool
	}
	for _, command := range []string{"webhook-secret rotate", "merchant list", "audit"} {
		d.ExpectOutput("--help", command)
	}
}
