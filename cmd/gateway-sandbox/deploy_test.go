package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/sandbox"
)

// readStack returns the text of the program's own stack.
func readStack(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/sandbox.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The stack refuses the names of production.
func TestStackIsNeverInProduction(t *testing.T) {
	stage := `(?s)\n  Stage:\n    Type: String\n    AllowedPattern: "\^\(\?!([a-z|]+)\)(\[[^"]+)"`
	found := regexp.MustCompile(stage).FindStringSubmatch(readStack(t))
	if found == nil {
		t.Fatal("the stage has no pattern of the known form")
	}
	// Go's regular expressions have no look-ahead, so this tests both halves.
	refused, allowed := regexp.MustCompile("^(?:"+found[1]+")"), regexp.MustCompile("^"+found[2])
	for stage, want := range map[string]bool{
		"prod": false, "production": false, "prod2": false, "live": false, "Prod": false, "": false,
		"dev": true, "staging": true,
	} {
		if got := allowed.MatchString(stage) && !refused.MatchString(stage); got != want {
			t.Errorf("stage %q is allowed: %v, want %v", stage, got, want)
		}
	}
}

// The machine's script is a valid shell script. It starts the program with known flags, and on the port of CloudFront
// and the firewall.
func TestStackStartsTheProgram(t *testing.T) {
	text := readStack(t)
	_, script, _ := strings.Cut(text, "#!/bin/bash\n")
	script, _, found := strings.Cut(script, "--//--")
	if !found {
		t.Fatal("no script")
	}
	script = strings.ReplaceAll(script, "\n          ", "\n")
	shell := exec.Command("bash", "-n")
	shell.Stdin = strings.NewReader(script)
	if output, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	line := regexp.MustCompile(`(?m)^ExecStart=\$program (.*)$`).FindStringSubmatch(script)
	if line == nil {
		t.Fatal("nothing is started")
	}
	flags := strings.NewReplacer("$(tail -n 1 /run/base-url)", "https://d1.cloudfront.net", "$data", "/data",
		"${Speed}", "60").Replace(line[1])
	values := strings.NewReplacer(
		"$tokens", operatorToken, "$control", controlToken, "$tests", testsToken, "${Seed}", "7")
	variables := map[string]string{}
	for _, pair := range regexp.MustCompile(`(?m)^(SANDBOX_[A-Z_]+)=(\S+)$`).FindAllStringSubmatch(script, -1) {
		variables[pair[1]] = values.Replace(pair[2])
	}
	listen, config, err := parseConfig(strings.Fields(flags), lookupIn(variables), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	config.Faults = sandbox.FaultSettings{Seed: config.Faults.Seed}
	want := sandbox.Config{
		Tokens: []string{operatorToken}, ControlTokens: []string{controlToken},
		TestsTokens: []sandbox.TestsToken{{Token: testsToken}},
		Dir:         "/data", BaseURL: "https://d1.cloudfront.net", Faults: sandbox.FaultSettings{Seed: 7},
		Config: kit.Config{Speed: 60},
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("settings of the machine's script (-want +got):\n%s", diff)
	}
	for _, secret := range []string{"Tokens", "ControlTokens", "TestsTokens"} {
		for _, want := range []string{
			"\n  " + secret + ":\n    Type: AWS::SecretsManager::Secret\n", "$(again secret '${" + secret + "}')",
			"\n  " + secret + "Secret:\n",
		} {
			if strings.Count(text, want) != 1 {
				t.Errorf("the stack does not have %q exactly once", want)
			}
		}
		if !regexp.MustCompile(`"secretsmanager:GetSecretValue", Resource: \[[^]]*!Ref ` + secret +
			`[],]`).MatchString(text) {
			t.Errorf("the machine may not read %s", secret)
		}
	}
	_, port, _ := strings.Cut(listen, ":")
	for _, want := range []string{"FromPort: " + port + ", ToPort: " + port + ", SourcePrefixListId",
		"HTTPPort: " + port} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	for part, want := range map[string]int{"SecurityGroupIngress": 1, "SourcePrefixListId": 1, "CidrIpv6": 0} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("only CloudFront may reach the machine: %d times %s, want %d", got, part, want)
		}
	}
}
