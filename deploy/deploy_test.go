package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mobilegateway/world/template"
)

const checkout = ".."

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSamconfig checks the environments of samconfig.toml.
func TestSamconfig(t *testing.T) {
	known := mustReadTemplate(t)
	stacks := map[string]bool{}
	for environment, stage := range map[string]string{"dev": "dev", "staging": "staging", "prod": "prod"} {
		t.Run(environment, func(t *testing.T) {
			config, err := readConfig(checkout, deployOptions{environment: environment})
			if err != nil || config.parameters["Stage"] != stage {
				t.Errorf("parameters %v (%v), want the stage %s", config.parameters, err, stage)
			}
			if len(config.file) != 4 || config.file["version"] != 0.1 {
				t.Errorf("samconfig.toml has %d sections and version %v, want 4 and 0.1", len(config.file),
					config.file["version"])
			}
			stacks[config.stackName(config.section)] = true
			deployment, _ := nestedValue(config.file, config.section, "deploy", "parameters").(map[string]any)
			for name, want := range map[string]any{"confirm_changeset": true, "resolve_s3": true} {
				if deployment[name] != want {
					t.Errorf("%s is %v, want %v", name, deployment[name], want)
				}
			}
			// deploy/pipeline.yaml allows no other place in SAM's bucket.
			if want := config.stackName(config.section); deployment["s3_prefix"] != want {
				t.Errorf("s3_prefix is %v, want %s", deployment["s3_prefix"], want)
			}
			if deployment["disable_rollback"] == true {
				t.Error("a failed deployment is not rolled back")
			}
			if nestedValue(config.file, config.section, "build", "parameters", "cached") != nil {
				t.Error("the build is cached")
			}
			for name, value := range config.parameters {
				if err := known.checkParameter(name, value); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if len(stacks) != 3 || stacks[""] {
		t.Errorf("stack names %v, want three different ones", stacks)
	}
}

// mustReadTemplate parses template.yaml.
func mustReadTemplate(t *testing.T) templateFile {
	t.Helper()
	known, err := readTemplate(read(t, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// deployFlags returns the flags of the Makefile, which SAM passes to go build, for a processor.
func deployFlags(architecture string) []string {
	return []string{"GOFLAGS=" + goFlags, "CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + architecture}
}

const goFlags = "-tags=lambda.norpc -trimpath -buildvcs=false '-ldflags=-s -w -buildid='"

// buildProgram builds a minimal program.
func buildProgram(t *testing.T, environment ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module hello\n",
		"main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "bootstrap", ".")
	build.Dir, build.Env = dir, append(os.Environ(), environment...)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return filepath.Join(dir, "bootstrap")
}

// TestMakefileBuildFlags checks that the tests build with the Makefile's flags.
func TestMakefileBuildFlags(t *testing.T) {
	want := `DEPLOY = CGO_ENABLED=0 GOFLAGS="` + goFlags + `"`
	if !bytes.Contains(read(t, "Makefile"), []byte(want)) {
		t.Errorf("the Makefile has no line %s", want)
	}
}

// TestMakefileIgnoresStrayVariables checks that only variables on make's command line choose the deployment, not those
// of the shell.
func TestMakefileIgnoresStrayVariables(t *testing.T) {
	set := []string{
		"ENV=prod", "STACK=other", "GRADUAL=true", "WAF=1", "YES=1", "PARAMETERS=Stage=prod",
	}
	dryRun := func(arguments, environment []string) string {
		make := exec.Command("make", append([]string{"-n", "--no-print-directory", "deploy"}, arguments...)...)
		make.Dir, make.Env = "..", append(os.Environ(), environment...)
		make.Env = append(make.Env, "MAKEFLAGS=", "MAKELEVEL=") // hides the make that started this test
		output, err := make.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		_, line, _ := strings.Cut(strings.ReplaceAll(string(output), "\\\n", ""), ".local/bin/deploy -env ")
		return strings.Join(strings.Fields(line), " ")
	}
	if got := dryRun(nil, set); got != "dev -gradual='' -waf='' -yes=''" {
		t.Errorf("with variables of the environment: %q", got)
	}
	const want = "prod -gradual='true' -waf='1' -yes='1' -stack other Stage=prod"
	if got := dryRun(set, nil); got != want {
		t.Errorf("with variables of the command line: %q", got)
	}
}

// TestDeploy checks the arguments of sam build and sam deploy.
func TestDeploy(t *testing.T) {
	good := buildProgram(t, deployFlags("arm64")...)
	cases := map[string]struct {
		arguments []string
		build     []string // words of the first call
		deploy    []string // words of the second
		never     []string
	}{
		"dev": {
			nil, []string{"--config-env default", "Stage,ParameterValue=dev", "Architecture,ParameterValue=arm64",
				"/template.yaml --base-dir", "Gradual,ParameterValue=false"},
			[]string{"deploy --template-file", "/.aws-sam/build/template.yaml", "--config-env default",
				"LogRetentionDays,ParameterValue=7"},
			[]string{"--no-confirm-changeset", "--stack-name", "cached"},
		},
		"a developer's stack": {
			[]string{"-stack", "mine", "-yes=1", "LogRetentionDays=1"}, nil,
			[]string{"--stack-name mine", "--no-confirm-changeset", "Stage,ParameterValue=dev",
				"LogRetentionDays,ParameterValue=1 "},
			[]string{"LogRetentionDays,ParameterValue=7"},
		},
		"staging, gradually": {
			[]string{"-env", "staging", "-gradual=1", "Deployment=Canary10Percent5Minutes"},
			nil,
			[]string{"--config-env staging", "Gradual,ParameterValue=true",
				"Deployment,ParameterValue=Canary10Percent5Minutes"},
			[]string{"--no-confirm-changeset"},
		},
		"prod": {
			[]string{"-env", "prod", "ContactId=D"}, []string{"--region eu-west-1"},
			[]string{"--config-env prod", "Stage,ParameterValue=prod", "ServiceId,ParameterValue=S",
				"ContactId,ParameterValue=D", "--region eu-west-1"},
			[]string{"--no-confirm-changeset", "Gradual,ParameterValue=true", "ContactId,ParameterValue=C"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestCheckout(t, good)
			s.keepProd(t, prodFile+"DataStack = \"\"\n")
			if err := run(t.Context(), s.root, c.arguments, s.system()); err != nil {
				t.Fatal(err)
			}
			calls := s.calls(t)
			if len(calls) != 2 || !strings.HasPrefix(calls[0], "build ") || !strings.HasPrefix(calls[1], "deploy ") {
				t.Fatalf("SAM was called with %q, want a build and a deploy", calls)
			}
			for i, words := range [][]string{c.build, c.deploy} {
				for _, word := range words {
					if !strings.Contains(calls[i], word) {
						t.Errorf("the call %s\nlacks %s", calls[i], word)
					}
				}
			}
			for _, word := range c.never {
				if strings.Contains(calls[0]+calls[1], word) {
					t.Errorf("the calls %q must not have %s", calls, word)
				}
			}
		})
	}
}

// TestRefusedOptions checks that wrong options are refused before SAM is called.
func TestRefusedOptions(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"an unknown environment":    {[]string{"-env", "production"}, "no environment"},
		"another name for prod":     {[]string{"-env", "prod", "-stack", "mine"}, "fixed in samconfig.toml"},
		"prod without confirmation": {[]string{"-env", "prod", "-yes=1"}, "needs confirmation"},
		"prod without its file": {[]string{"-env", "prod", "ServiceId=S", "ApplicationId=A", "ContactId=C"},
			"prod.toml is missing: run this at a terminal"},
		"prod without its constant": {[]string{"-env", "prod", "ServiceId=S", "ContactId=C"}, "ApplicationId"},
		"prod without TLS": {[]string{"-env", "prod", "ServiceId=S", "ApplicationId=A", "ContactId=C",
			"BaseUrl=http://x"}, "prod needs https: BaseUrl"},
		"prod's callbacks too": {[]string{"-env", "prod", "ServiceId=S", "ApplicationId=A", "ContactId=C",
			"CallbackBaseUrl=http://x"}, "prod needs https: CallbackBaseUrl"},
		"the stack of prod": {[]string{"-stack", "mobile-gateway-prod", "-yes=1"},
			"mobile-gateway-prod is the stack of prod: use ENV=prod"},
		"the stack of staging": {[]string{"-stack", "mobile-gateway-staging"},
			"is the stack of staging: use ENV=staging"},
		"no parameter":              {[]string{"Stage"}, "not a parameter"},
		"a parameter unknown":       {[]string{"Colour=red"}, "no parameter Colour"},
		"a value of another form":   {[]string{"BaseUrl=ftp://x"}, "BaseUrl must match"},
		"a value that is not one":   {[]string{"LogRetentionDays=2"}, "LogRetentionDays must be one of"},
		"a value out of its limits": {[]string{"ThrottleRate=0"}, "ThrottleRate must be a number"},
		"no number":                 {[]string{"ThrottleRate=many"}, "ThrottleRate must be a number"},
		"a space in an address":     {[]string{"BaseUrl=https://x/a b"}, "BaseUrl must match"},
		"a user in an address":      {[]string{"CallbackBaseUrl=https://user:p@x"}, "CallbackBaseUrl must match"},
		"gradual, by another word":  {[]string{"-gradual=true"}, "set it to 1"},
		"yes, by another word":      {[]string{"-yes=y"}, "set it to 1"},
		"WAF, by another word":      {[]string{"-waf=on"}, "set it to 1"},
		"two web ACLs":              {[]string{"-waf=1", "WebAclArn=arn"}, "WAF or WebAclArn"},
		"gradual and not":           {[]string{"-gradual=1", "Gradual=false"}, "use one of the two"},
		"a closed stage":            {[]string{"StageAddress=shut"}, "StageAddress must be one of"},
		"all at once by type":       {[]string{"Deployment=AllAtOnce"}, "Deployment must be one of"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestCheckout(t, "/dev/null")
			if name != "prod without its file" {
				s.keepProd(t, "account = \"123456789012\"\nregion = \"eu-west-1\"\n")
			}
			err := run(t.Context(), s.root, c.arguments, s.system())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if calls := s.calls(t); calls[0] != "" {
				t.Errorf("SAM was called: %q", calls)
			}
		})
	}
}

// TestRefusedBundles checks programs that SAM itself would deploy.
func TestRefusedBundles(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(archive, []byte("!<arch>\n"+strings.Repeat("x", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ program, want string }{
		"an archive": {archive, "bad magic number"},
		"another processor": {buildProgram(t, deployFlags("amd64")...),
			"not an executable for"},
		"no flags": {buildProgram(t, "GOFLAGS=", "CGO_ENABLED=0", "GOARCH=arm64", "GOOS=linux"),
			"-ldflags=-s"},
		"half the flags": {buildProgram(t, "GOFLAGS=-ldflags=-s", "CGO_ENABLED=0", "GOARCH=arm64", "GOOS=linux"),
			"use make"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestCheckout(t, c.program)
			err := run(t.Context(), s.root, nil, s.system())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if calls := s.calls(t); len(calls) != 1 {
				t.Errorf("the bundle was deployed: %q", calls)
			}
		})
	}
}

// TestNoResponseIsUnknown checks that API Gateway reports a function without a response as unknown, never as not
// applied: the function may have called the operator, although a throttled one did not. The access log has the reason.
func TestNoResponseIsUnknown(t *testing.T) {
	deployed, err := template.Load(filepath.Join(checkout, "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT", "DEFAULT_5XX"} {
		response := deployed.GatewayResponses[kind]
		if response.Status != http.StatusGatewayTimeout || !strings.Contains(response.Body, `"PDK_SMSW_0011"`) {
			t.Errorf("%s: %d %s, want 504 with the code of an unknown outcome", kind, response.Status, response.Body)
		}
	}
	if !bytes.Contains(read(t, "template.yaml"), []byte(`"integrationError":"$context.integrationErrorMessage"`)) {
		t.Error("the access log has no reason of a function without a response")
	}
}
