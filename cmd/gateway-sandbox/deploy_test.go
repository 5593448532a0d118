package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// readStack is the text of the program's own stack.
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
	found := regexp.MustCompile(`(?s)\n  Stage:\n    Type: String\n    AllowedPattern: "\^\(\?!([a-z|]+)\)(\[[^"]+)"`).FindStringSubmatch(readStack(t))
	if found == nil {
		t.Fatal("the stage has no pattern of the known form")
	}
	// Go's expressions have no look-ahead: its two halves apart.
	refused, allowed := regexp.MustCompile("^(?:"+found[1]+")"), regexp.MustCompile("^"+found[2])
	for stage, want := range map[string]bool{"prod": false, "production": false, "prod2": false, "live": false, "dev": true, "staging": true, "Prod": false, "": false} {
		if got := allowed.MatchString(stage) && !refused.MatchString(stage); got != want {
			t.Errorf("%q: %v", stage, got)
		}
	}
}

// The machine's script is one that a shell can read, and starts the program with flags that it has and an address that
// CloudFront and the firewall know.
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
	flags := strings.NewReplacer("$(tail -n 1 /run/base-url)", "https://d1.cloudfront.net", "$data", "/data", "${Speed}", "60").Replace(line[1])
	variables := map[string]string{}
	for _, opts := range regexp.MustCompile(`(?m)^(SANDBOX_[A-Z_]+)=(\S+)$`).FindAllStringSubmatch(script, -1) {
		variables[opts[1]] = strings.NewReplacer("$tokens", operatorToken, "$control", controlToken, "$tests", testsToken, "${Seed}", "7").Replace(opts[2])
	}
	opts, config, err := parseConfig(strings.Fields(flags), lookupIn(variables), io.Discard)
	if err != nil || len(config.Tokens) != 1 || len(config.ControlTokens) != 1 || len(config.TestsTokens) != 1 || config.Faults.Seed != 7 || config.Speed != 60 {
		t.Errorf("%v %+v", err, config)
	}
	for _, secret := range []string{"Tokens", "ControlTokens", "TestsTokens"} {
		for _, want := range []string{"\n  " + secret + ":\n    Type: AWS::SecretsManager::Secret\n", "$(again secret '${" + secret + "}')", "\n  " + secret + "Secret:\n"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("no %q, or more than one", want)
			}
		}
		if !regexp.MustCompile(`"secretsmanager:GetSecretValue", Resource: \[[^]]*!Ref ` + secret + `[],]`).MatchString(text) {
			t.Errorf("the machine may not read %s", secret)
		}
	}
	_, port, _ := strings.Cut(opts.listen, ":")
	for _, want := range []string{"FromPort: " + port + ", ToPort: " + port + ", SourcePrefixListId", "HTTPPort: " + port} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Count(text, "SecurityGroupIngress") != 1 || strings.Count(text, "SourcePrefixListId") != 1 || strings.Contains(text, "CidrIpv6") {
		t.Error("another way in than CloudFront's")
	}
}
