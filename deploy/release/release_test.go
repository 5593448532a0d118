package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/deploy/release"
)

// fakeAWS prints the file of its first two words, and records its arguments. A file that begins with ! is an error.
const fakeAWS = `#!/bin/sh
echo "$*" >> "$FAKE_AWS/calls"
file="$FAKE_AWS/$1 $2"
[ -f "$file $4" ] && file="$file $4"
[ -f "$file" ] || exit 0
if grep -q '^!' "$file"; then cat "$file" >&2; exit 254; fi
cat "$file"
`

// fake puts a stub of the AWS CLI before the real one, with responses by command, and returns the file of its calls.
func fake(t *testing.T, responses map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "aws"), []byte(fakeAWS), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range responses {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("FAKE_AWS", folder)
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	return filepath.Join(folder, "calls")
}

// changes returns the calls that change something.
func changes(t *testing.T, calls string) []string {
	t.Helper()
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "update-alias") || strings.Contains(line, "stop-") ||
			strings.Contains(line, "cancel-") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

var stack = release.Stack{Name: "mine", Region: "eu-west-1"}

const resources = `{"StackResourceSummaries":[
 {"ResourceType":"AWS::Lambda::Function","PhysicalResourceId":"pay","ResourceStatus":"UPDATE_COMPLETE"},
 {"ResourceType":"AWS::Lambda::Function","PhysicalResourceId":"gone","ResourceStatus":"DELETE_COMPLETE"},
 {"ResourceType":"AWS::Lambda::Version","PhysicalResourceId":"arn:aws:lambda:eu-west-1:1:function:pay:12",
  "ResourceStatus":"CREATE_COMPLETE"},
 {"ResourceType":"AWS::Lambda::Version","PhysicalResourceId":"arn:aws:lambda:eu-west-1:1:function:sms:12",
  "ResourceStatus":"CREATE_COMPLETE"},
 {"ResourceType":"AWS::CodeDeploy::Application","PhysicalResourceId":"app","ResourceStatus":"CREATE_COMPLETE"},
 {"ResourceType":"AWS::Lambda::Function","PhysicalResourceId":"sms","ResourceStatus":"UPDATE_COMPLETE"}]}`

func responses(status string, more map[string]string) map[string]string {
	all := map[string]string{
		"cloudformation describe-stacks":      `{"Stacks":[{"StackStatus":"` + status + `"}]}`,
		"cloudformation list-stack-resources": resources,
		"lambda get-alias":                    `{"FunctionVersion":"12"}`,
		"lambda list-versions-by-function": `{"Versions":[{"Version":"$LATEST"},{"Version":"9"},{"Version":"10"},` +
			`{"Version":"12"},{"Version":"13"}]}`,
		"deploy list-deployment-groups": `{"deploymentGroups":["group"]}`,
		"deploy list-deployments":       `{"deployments":["d-1"]}`,
	}
	for name, text := range more {
		all[name] = text
	}
	return all
}

func TestRollback(t *testing.T) {
	calls := fake(t, responses("UPDATE_COMPLETE", nil))
	plan, err := release.PlanRollback(t.Context(), stack)
	if err != nil {
		t.Fatal(err)
	}
	want := release.Plan{Moves: []release.Move{
		{Function: "pay", From: "12", To: "10"}, {Function: "sms", From: "12", To: "10"},
	}}
	if difference := cmp.Diff(want, plan); difference != "" {
		t.Errorf("the plan differs (-want +got):\n%s", difference)
	}
	if made := changes(t, calls); made != nil {
		t.Errorf("the plan changed something: %q", made)
	}
	var out strings.Builder
	if err := release.Rollback(t.Context(), stack, plan.Moves, &out); err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff([]string{
		"lambda update-alias --function-name pay --name live --function-version 10 --output json --region eu-west-1",
		"lambda update-alias --function-name sms --name live --function-version 10 --output json --region eu-west-1",
	}, changes(t, calls)); difference != "" {
		t.Errorf("the calls differ (-want +got):\n%s", difference)
	}
	if out.String() != "pay: 12 -> 10\nsms: 12 -> 10\n" {
		t.Errorf("the output is %q", out.String())
	}
}

// TestRollbackAgain checks what a rollback does in other states: after one that ended early, after a release that added
// a function, and after a failed deployment, whose versions are kept.
func TestRollbackAgain(t *testing.T) {
	for name, c := range map[string]struct {
		more map[string]string
		want release.Plan
	}{
		"half made": {map[string]string{"lambda get-alias pay": `{"FunctionVersion":"10"}`}, release.Plan{
			Moves: []release.Move{{Function: "sms", From: "12", To: "10"}},
			Kept:  []string{"pay: is at version 10 already"},
		}},
		"made": {map[string]string{"lambda get-alias": `{"FunctionVersion":"10"}`}, release.Plan{
			Kept: []string{"pay: is at version 10 already", "sms: is at version 10 already"},
		}},
		"further back": {map[string]string{"lambda get-alias sms": `{"FunctionVersion":"9"}`}, release.Plan{
			Moves: []release.Move{{Function: "pay", From: "12", To: "10"}},
			Kept:  []string{"sms: is at version 9 already"},
		}},
		"a new function": {map[string]string{
			"lambda get-alias sms":                 `{"FunctionVersion":"1"}`,
			"lambda list-versions-by-function sms": `{"Versions":[{"Version":"$LATEST"},{"Version":"1"}]}`,
			"cloudformation list-stack-resources":  strings.Replace(resources, "sms:12", "sms:1", 1),
		}, release.Plan{
			Moves: []release.Move{{Function: "pay", From: "12", To: "10"}},
			Kept:  []string{"sms: stays at version 1, it has none before"},
		}},
		"the alias is ahead": {map[string]string{"lambda get-alias sms": `{"FunctionVersion":"13"}`}, release.Plan{
			Moves: []release.Move{{Function: "pay", From: "12", To: "10"}, {Function: "sms", From: "13", To: "10"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			fake(t, responses("UPDATE_ROLLBACK_COMPLETE", c.more))
			plan, err := release.PlanRollback(t.Context(), stack)
			if err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(c.want, plan); difference != "" {
				t.Errorf("the plan differs (-want +got):\n%s", difference)
			}
		})
	}
}

func TestRefusedRollbacks(t *testing.T) {
	for name, c := range map[string]struct {
		status   string
		more     map[string]string
		contains string
	}{
		"during an update": {"UPDATE_IN_PROGRESS", nil, "make abort"},
		"the first release": {"UPDATE_COMPLETE", map[string]string{
			"lambda list-versions-by-function": `{"Versions":[{"Version":"12"}]}`},
			"no function of mine has a version before"},
		"not deployed": {"UPDATE_COMPLETE", map[string]string{
			"cloudformation list-stack-resources": strings.Replace(resources, "sms:12", "other:12", 1)},
			"the stack deployed version 0 of it"},
		"two versions": {"UPDATE_COMPLETE", map[string]string{"lambda get-alias": `{"FunctionVersion":"12",
			"RoutingConfig":{"AdditionalVersionWeights":{"13":0.1}}}`}, "pay serves two versions"},
		"no alias": {"UPDATE_COMPLETE", map[string]string{"lambda get-alias": "! ResourceNotFoundException"},
			"aws lambda get-alias: exit status 254\n! ResourceNotFoundException"},
		"no function": {"UPDATE_COMPLETE", map[string]string{"cloudformation list-stack-resources": "{}"},
			"mine has no function"},
		"no stack": {"", map[string]string{"cloudformation describe-stacks": `{"Stacks":[]}`}, "not one stack mine"},
		"not JSON": {"", map[string]string{"cloudformation describe-stacks": "?"}, "decode the output"},
		"no version": {"UPDATE_COMPLETE", map[string]string{"lambda get-alias": `{"FunctionVersion":"$LATEST"}`},
			"run make deploy once"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := fake(t, responses(c.status, c.more))
			_, err := release.PlanRollback(t.Context(), stack)
			if err == nil || !strings.Contains(err.Error(), c.contains) {
				t.Errorf("error %v, want %q", err, c.contains)
			}
			if made := changes(t, calls); made != nil {
				t.Errorf("something was changed: %q", made)
			}
		})
	}
}

// TestHalfARollback checks that the error of a rollback that ended early says how many aliases moved.
func TestHalfARollback(t *testing.T) {
	fake(t, map[string]string{"lambda update-alias": "! denied"})
	err := release.Rollback(t.Context(), stack, []release.Move{{Function: "pay", From: "2", To: "1"}},
		&strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "0 of 1 aliases moved") {
		t.Errorf("error %v, want the aliases that moved", err)
	}
}

func TestAbort(t *testing.T) {
	const cancel = "cloudformation cancel-update-stack"
	for name, c := range map[string]struct {
		status string
		more   map[string]string
		want   []string // the changes, in order
		err    string
	}{
		"gradual": {"UPDATE_IN_PROGRESS", nil, []string{
			"deploy stop-deployment --deployment-id d-1 --auto-rollback-enabled", cancel + " --stack-name mine"}, ""},
		"at once": {"UPDATE_IN_PROGRESS", map[string]string{"cloudformation list-stack-resources": "{}"},
			[]string{cancel + " --stack-name mine"}, ""},
		"nothing runs":     {"UPDATE_COMPLETE", nil, nil, "no update of it can be stopped"},
		"a first creation": {"CREATE_IN_PROGRESS", nil, nil, "no update of it can be stopped"},
		"a refused cancel": {"UPDATE_IN_PROGRESS", map[string]string{cancel: "! denied"},
			[]string{"deploy stop", cancel}, "denied"},
		"a refused listing": {"UPDATE_IN_PROGRESS", map[string]string{"deploy list-deployments": "! no"}, nil, "! no"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := fake(t, responses(c.status, c.more))
			err := release.Abort(t.Context(), stack, &strings.Builder{})
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			made := changes(t, calls)
			if len(made) != len(c.want) {
				t.Fatalf("changes %q, want %q", made, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(made[i], want) {
					t.Errorf("change %q, want %q", made[i], want)
				}
			}
		})
	}
}
