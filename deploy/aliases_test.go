package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestRefuseAliasLoss checks that only DROP_ALIASES lets a deployment all at once remove a stack's aliases.
func TestRefuseAliasLoss(t *testing.T) {
	const aliases = `[{"OutputKey":"Alias","OutputValue":"live"},{"OutputKey":"Stage","OutputValue":"dev"}]`
	good := buildProgram(t, deployFlags("arm64")...)
	for name, c := range map[string]struct {
		arguments       []string
		outputs, stderr string // of sam list
		want            string // the error; "" if the stack is deployed
		listed          string // part of the arguments of sam list
	}{
		"no stack": {nil, "",
			"Error: The input stack a does not exist on Cloudformation in the region b", "", "--config-env default"},
		"a failed first deployment": {nil, "",
			"Error: Outputs do not exist for the input stack a on Cloudformation in the region b", "",
			"--stack-name mobile-gateway-dev"},
		"a stack without aliases": {[]string{"-stack", "mine"}, `[{"OutputKey":"Stage","OutputValue":"dev"}]`, "",
			"", "--stack-name mine"},
		"a stack with aliases": {nil, aliases, "", "mobile-gateway-dev was deployed gradually",
			"--stack-name mobile-gateway-dev"},
		"staging with aliases": {[]string{"-env", "staging"}, aliases, "", "DROP_ALIASES=1",
			"--config-env staging"},
		"gradual":                    {[]string{"-gradual=1"}, aliases, "", "", ""},
		"without aliases on request": {[]string{"-drop-aliases=1"}, aliases, "", "", ""},
		"no permission": {nil, "", "Error: denied",
			"check whether the stack has aliases: exit status 1\nError: denied", ""},
		"an invalid output": {nil, "?", "", "decode the outputs of the stack", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCheckout(t, good)
			t.Setenv("FAKE_OUTPUTS", c.outputs)
			t.Setenv("FAKE_STDERR", c.stderr)
			err := run(t.Context(), s.root, c.arguments, s.system())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if calls := s.calls(t); c.want != "" && calls[0] != "" {
				t.Errorf("SAM was called: %q", calls)
			}
			listed, _ := os.ReadFile(s.log + ".list") // missing if sam list was not called
			if !strings.Contains(string(listed), c.listed) {
				t.Errorf("sam list was called with %q, want %q", listed, c.listed)
			}
			if c.listed == "" && c.want == "" && len(listed) > 0 {
				t.Errorf("sam list was called with %q, want no call", listed)
			}
		})
	}
}

// TestAliasOutput checks that only the gradual form of the template has the output.
func TestAliasOutput(t *testing.T) {
	text := read(t, "template.yaml")
	line := []byte("\n  " + aliasOutput + ":\n")
	if bytes.Contains(text, line) || !bytes.Contains(enableGradualLines(text), line) {
		t.Errorf("the output %s is not on a line that only a gradual deployment has", aliasOutput)
	}
}

// TestOutputsArguments checks that sam list uses the region and the profile of the deployment.
func TestOutputsArguments(t *testing.T) {
	parameters := map[string]any{"region": "eu-west-1", "profile": "money"}
	config := samconfig{root: "/r", section: "prod", file: map[string]any{
		"prod": map[string]any{"deploy": map[string]any{"parameters": parameters}},
	}}
	const want = "--config-file /r/samconfig.toml --config-env prod --region eu-west-1 --profile money"
	if got := strings.Join(config.outputsArguments(), " "); got != want {
		t.Errorf("arguments %s, want %s", got, want)
	}
}
