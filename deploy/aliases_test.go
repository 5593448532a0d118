package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRefuseAliasLoss: what was deployed step by step is not deployed all at once but where somebody says so.
func TestRefuseAliasLoss(t *testing.T) {
	const aliases = `[{"OutputKey":"Alias","OutputValue":"live"},{"OutputKey":"Stage","OutputValue":"dev"}]`
	good := buildProgram(t, append(slices.Clone(deployFlags[:]), "GOARCH=arm64")...)
	for name, c := range map[string]struct {
		arguments          []string
		outputs, complaint string
		want               string // "" where it is deployed
		asked              string
	}{
		"no stack":                {nil, "", "Error: The input stack a does not exist on Cloudformation in the region b", "", "--config-env default"},
		"a stack that never was":  {nil, "", "Error: Outputs do not exist for the input stack a on Cloudformation in the region b", "", "--stack-name mobile-gateway-dev"},
		"a stack without aliases": {[]string{"-stack", "mine"}, `[{"OutputKey":"Stage","OutputValue":"dev"}]`, "", "", "--stack-name mine"},
		"a stack with aliases":    {nil, aliases, "", "mobile-gateway-dev was deployed step by step", "--stack-name mobile-gateway-dev"},
		"staging's":               {[]string{"-env", "staging"}, aliases, "", "DROP_ALIASES=1", "--config-env staging"},
		"step by step":            {[]string{"-gradual=1"}, aliases, "", "", ""},
		"without them, as wished": {[]string{"-drop-aliases=1"}, aliases, "", "", ""},
		"nobody tells":            {nil, "", "Error: denied", "whether the stack has aliases: exit status 1\nError: denied", ""},
		"an answer of no form":    {nil, "?", "", "the stack's outputs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCheckout(t, good)
			t.Setenv("FAKE_OUTPUTS", c.outputs)
			t.Setenv("FAKE_COMPLAINT", c.complaint)
			err := run(t.Context(), s.root, c.arguments, io.Discard)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if calls := s.calls(t); c.want != "" && calls[0] != "" {
				t.Errorf("SAM was called: %q", calls)
			}
			questions, _ := os.ReadFile(s.log + ".asked") // none where it was not asked
			if !strings.Contains(string(questions), c.asked) || c.asked == "" && c.want == "" && len(questions) > 0 {
				t.Errorf("asked %q, want %q", questions, c.asked)
			}
		})
	}
}

// TestAliasOutput: the template tells of its aliases in its gradual form alone.
func TestAliasOutput(t *testing.T) {
	text := read(t, "template.yaml")
	mark := []byte("\n  " + aliasOutput + ":\n")
	if bytes.Contains(text, mark) || !bytes.Contains(enableGradualLines(text), mark) {
		t.Errorf("the output %s does not stand under its mark", aliasOutput)
	}
}

func TestOutputsArguments(t *testing.T) {
	file := map[string]any{"prod": map[string]any{"deploy": map[string]any{"parameters": map[string]any{"region": "eu-west-1", "profile": "money"}}}}
	if got := strings.Join(outputsArguments("/r", file, "prod"), " "); got != "--config-file /r/samconfig.toml --config-env prod --region eu-west-1 --profile money" {
		t.Error(got)
	}
}
