package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/deploy/preflight"
)

// firstInput is what a person types at the first deployment of prod, some values wrong first.
const firstInput = "12\n\neu\neu-west-1\n\nS\nA\nC\nalarms\narn:aws:sns:eu-west-1:123456789012:alarms\n" +
	"api.example.com\narn:aws:acm:eu-west-1:123456789012:certificate/1\n"

// trace is a system that records its steps beside those of SAM.
type trace struct {
	testCheckout
	target    preflight.Target
	report    preflight.Report
	said      strings.Builder
	protected []string
	pauses    []time.Duration
}

func newTrace(t *testing.T) *trace {
	t.Helper()
	r := &trace{testCheckout: newTestCheckout(t, buildProgram(t, deployFlags("arm64")...))}
	t.Setenv("FAKE_OUTPUTS", dataOutputs)
	return r
}

func (r *trace) run(t *testing.T, input string, arguments ...string) error {
	t.Helper()
	s := system{
		out: &r.said, who: func(context.Context) (account, region string) { return "123456789012", "eu-west-3" },
		preflight: func(_ context.Context, target preflight.Target) (preflight.Report, error) {
			r.target = target
			return r.report, nil
		},
		protect: func(_ context.Context, region, stack string) error {
			r.protected = append(r.protected, region+" "+stack)
			return nil
		},
		protectData: func(_ context.Context, region, stack string) error {
			r.protected = append(r.protected, "data "+region+" "+stack)
			return nil
		},
		pause: func(_ context.Context, wait time.Duration) error {
			r.pauses = append(r.pauses, wait)
			return nil
		},
	}
	if input != "" {
		s.in = strings.NewReader(input)
	}
	return run(t.Context(), r.root, arguments, s)
}

// verbs returns the first two words of each call of SAM.
func (r *trace) verbs(t *testing.T) (verbs []string) {
	t.Helper()
	for _, call := range r.calls(t) {
		words := strings.Fields(call)
		if len(words) > 0 {
			verbs = append(verbs, words[0]+" "+filepath.Base(words[2]))
		}
	}
	return verbs
}

// TestFirstDeploymentOfProd prompts for the values, keeps them, checks the account, and protects the stack at the end.
// The second one does not prompt.
func TestFirstDeploymentOfProd(t *testing.T) {
	r := newTrace(t)
	if err := r.run(t, firstInput, "-env", "prod"); err != nil {
		t.Fatal(err)
	}
	kept, err := readEnvironment(r.root, "prod")
	if err != nil || kept.Account != "123456789012" || kept.Region != "eu-west-3" && kept.Region != "eu-west-1" {
		t.Fatalf("kept %+v, %v", kept, err)
	}
	want := parameters{"ServiceId": "S", "ApplicationId": "A", "ContactId": "C",
		"AlarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:alarms", "DomainName": "api.example.com",
		"CertificateArn": "arn:aws:acm:eu-west-1:123456789012:certificate/1"}
	if !maps.Equal(kept.Parameters, want) {
		t.Errorf("kept %v, want %v", kept.Parameters, want)
	}
	for _, fault := range []string{"12 digits", "a region such as eu-west-1", "ServiceId must not be empty",
		"AlarmTopicArn must match"} {
		if !strings.Contains(r.said.String(), fault) {
			t.Errorf("no word of %q in %s", fault, r.said.String())
		}
	}
	if got := r.verbs(t); !slices.Equal(got, []string{"build template.yaml", "deploy data.yaml",
		"deploy template.yaml"}) {
		t.Errorf("SAM did %q", got)
	}
	if !slices.Equal(r.protected,
		[]string{"data " + kept.Region + " mobile-gateway-prod-data", kept.Region + " mobile-gateway-prod"}) {
		t.Errorf("protected %q", r.protected)
	}
	if r.target.Account != kept.Account || r.target.Region != kept.Region || r.target.Stack != "mobile-gateway-prod" ||
		r.target.Given["DomainName"] != "api.example.com" || r.target.Given["AccountConcurrency"] != "1000" ||
		r.target.Defaults["ThrottleRate"] != "100" {
		t.Errorf("the preflight checked %+v", r.target)
	}
	info, err := os.Stat(filepath.Join(r.root, environmentPath("prod")))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %v, %v", info.Mode(), err)
	}
	r.said.Reset()
	if err := r.run(t, "", "-env", "prod"); err != nil || strings.Contains(r.said.String(), "AWS account") {
		t.Errorf("the second deployment: %v, %s", err, r.said.String())
	}
}

// TestFirstInputThatEnds keeps nothing.
func TestFirstInputThatEnds(t *testing.T) {
	r := newTrace(t)
	err := r.run(t, "123456789012\neu-west-1\nS\n", "-env", "prod")
	if err == nil || !strings.Contains(err.Error(), "nothing was kept") || len(r.verbs(t)) > 0 {
		t.Errorf("error %v, SAM did %q", err, r.verbs(t))
	}
	if _, err := os.Stat(filepath.Join(r.root, environmentPath("prod"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file exists: %v", err)
	}
}

// TestPreflightComesFirst: a refusal ends the deployment before SAM, and -preflight ends it in any case.
func TestPreflightComesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		refuses bool
		flags   []string
		want    int // calls of SAM
	}{
		"refused": {true, nil, 0}, "only the preflight": {false, []string{"-preflight"}, 0}, "neither": {false, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTrace(t)
			r.report = preflight.Report{Account: "1", Region: "eu-west-1", Findings: []preflight.Finding{
				{Check: "state of the stack", Problem: "it is busy", Action: "wait", Refuses: c.refuses}}}
			err := r.run(t, "", c.flags...)
			if errors.Is(err, preflight.ErrRefused) != c.refuses || len(r.verbs(t)) != c.want {
				t.Errorf("error %v, SAM did %q", err, r.verbs(t))
			}
			if !strings.Contains(r.said.String(), "it is busy\n           wait") {
				t.Errorf("said %s", r.said.String())
			}
			if len(r.protected) > 0 {
				t.Errorf("dev is protected: %q", r.protected)
			}
		})
	}
}

// TestLogRole: the role is made before the stack, only where it is missing. A role that AWS does not know yet is tried
// again, a bounded number of times.
func TestLogRole(t *testing.T) {
	for failures, c := range map[int]struct {
		pauses int
		want   string // the error
	}{0: {0, ""}, 2: {2, ""}, 9: {accountTries - 1, "the log role of API Gateway, stack api-gateway-account"}} {
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			r := newTrace(t)
			r.report.LacksLogRole = true
			t.Setenv("FAKE_ROLE_FAILURES", strings.Repeat("x", failures))
			err := r.run(t, "")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			made := slices.Repeat([]string{"deploy account.yaml"}, c.pauses+1)
			if err == nil {
				made = append(made, "build template.yaml", "deploy template.yaml")
			}
			if got := r.verbs(t); !slices.Equal(got, made) || len(r.pauses) != c.pauses {
				t.Errorf("SAM did %q with %d pauses, want %q", got, len(r.pauses), made)
			}
			if call := r.calls(t)[0]; strings.Contains(call, "--parameter-overrides") ||
				!strings.Contains(call, "--on-failure DELETE") {
				t.Errorf("the call %s", call)
			}
		})
	}
}

// TestEnvironmentFiles: a wrong file is refused by its fault, before SAM. The example is a right one.
func TestEnvironmentFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not TOML":       {"account", "prod.toml"},
		"no account":     {"region = \"eu-west-1\"\n", "12 digits"},
		"no region":      {"account = \"123456789012\"\n", "region must be a region"},
		"an unknown key": {prodFile + "[more]\nx = 1\n", "unknown key more"},
		"a parameter":    {prodFile + "Colour = \"red\"\n", "no parameter Colour"},
		"a value":        {prodFile + "DomainName = \"https://x\"\n", "DomainName must match"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTrace(t)
			r.keepProd(t, c.text)
			err := r.run(t, "", "-env", "prod")
			if err == nil || !strings.Contains(err.Error(), c.want) || len(r.verbs(t)) > 0 {
				t.Errorf("error %v, want %q; SAM did %q", err, c.want, r.verbs(t))
			}
		})
	}
	r := newTrace(t)
	r.keepProd(t, string(read(t, "deploy/environments/ENV.toml.example")))
	if err := r.run(t, "", "-env", "prod", "-preflight"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(read(t, ".gitignore")), "\n**/deploy/environments/*.toml\n") {
		t.Error("git does not ignore the environments")
	}
}

// TestDataResources finds the tables and secrets that a template makes only while their name is not given.
func TestDataResources(t *testing.T) {
	known, err := readTemplate([]byte(`
Conditions:
  MakesLedger: !Equals [!Ref LedgerTableName, ""]
  HasDomain: !Not [!Equals [!Ref DomainName, ""]]
Resources:
  LedgerTable: {Type: "AWS::DynamoDB::Table", Condition: MakesLedger}
  LimitTable: {Type: "AWS::DynamoDB::Table"}
  OtherTable: {Type: "AWS::DynamoDB::Table", Condition: HasDomain}
  Queue: {Type: "AWS::SQS::Queue", Condition: MakesLedger}
`))
	want := []preflight.DataResource{{LogicalID: "LedgerTable", Parameter: "LedgerTableName"}}
	if got := known.dataResources(); err != nil || !slices.Equal(got, want) {
		t.Errorf("found %v, %v, want %v", got, err, want)
	}
}
