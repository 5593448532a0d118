package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRollbackCommand checks that a rollback is a dry run without YES=1, and that neither it nor an abort builds.
func TestRollbackCommand(t *testing.T) {
	const aws = `#!/bin/sh
echo "$*" >> "$0.calls"
case "$2" in
describe-stacks) echo "{\"Stacks\":[{\"StackStatus\":\"$FAKE_STATUS\"}]}";;
list-stack-resources) echo '{"StackResourceSummaries":[
 {"ResourceType":"AWS::Lambda::Version","PhysicalResourceId":"function:pay:2","ResourceStatus":"CREATE_COMPLETE"},
 {"ResourceType":"AWS::Lambda::Function","PhysicalResourceId":"pay","ResourceStatus":"UPDATE_COMPLETE"}]}';;
get-alias) echo "{\"FunctionVersion\":\"${FAKE_ALIAS:-2}\"}";;
list-versions-by-function) echo '{"Versions":[{"Version":"1"},{"Version":"2"}]}';;
esac
`
	for name, c := range map[string]struct {
		arguments    []string
		status       string
		call, output string
		change       string // the call that changes something, "" for none
		alias        string // its version, "" for the deployed one
	}{
		"dry run": {[]string{"-env", "prod", "-rollback"}, "UPDATE_COMPLETE",
			"--stack-name mobile-gateway-prod --output json --region eu-west-1", "YES=1 to move", "", ""},
		"for real": {[]string{"-env", "prod", "-rollback", "-yes=1"}, "UPDATE_COMPLETE", "describe-stacks",
			"no item", "update-alias --function-name pay --name live --function-version 1", ""},
		"once more": {[]string{"-env", "prod", "-rollback", "-yes=1"}, "UPDATE_COMPLETE", "get-alias",
			"No alias is left to move", "", "1"},
		"abort": {[]string{"-stack", "mine", "-abort", "-yes=1"}, "UPDATE_IN_PROGRESS", "--stack-name mine",
			"update stopped", "cancel-update-stack --stack-name mine", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCheckout(t, "/dev/null")
			s.keepProd(t, prodFile)
			path := filepath.Join(s.root, "aws")
			if err := os.WriteFile(path, []byte(aws), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", s.root+string(os.PathListSeparator)+os.Getenv("PATH"))
			t.Setenv("FAKE_STATUS", c.status)
			t.Setenv("FAKE_ALIAS", c.alias)
			var out strings.Builder
			env := s.system()
			env.out = &out
			env.who = func(context.Context) (account, region string) { return "123456789012", "" }
			if err := run(t.Context(), s.root, c.arguments, env); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path + ".calls")
			if err != nil {
				t.Fatal(err)
			}
			if calls := string(text); !strings.Contains(calls, c.call) || !strings.Contains(calls, c.change) ||
				c.change == "" && strings.Contains(calls, "update-alias") {
				t.Errorf("the calls are\n%s, want %q and %q", calls, c.call, c.change)
			}
			if !strings.Contains(out.String(), c.output) {
				t.Errorf("the output is %q, want %q", out.String(), c.output)
			}
			if calls := s.calls(t); calls[0] != "" {
				t.Errorf("SAM was called: %q", calls)
			}
		})
	}
}

// TestAbortPrompts checks that an abort needs a confirmation, of prod too, at a terminal or by YES=1.
func TestAbortPrompts(t *testing.T) {
	const aws = `#!/bin/sh
echo "$*" >> "$0.calls"
[ "$2" = describe-stacks ] && echo '{"Stacks":[{"StackStatus":"UPDATE_IN_PROGRESS"}]}'
[ "$2" = list-stack-resources ] && echo '{}'
exit 0
`
	for name, c := range map[string]struct {
		arguments []string
		typed     *strings.Reader
		err       string // "" if the deployment is stopped
	}{
		"yes":           {nil, strings.NewReader("y\n"), ""},
		"no":            {nil, strings.NewReader("n\n"), "nothing was stopped"},
		"an empty line": {nil, strings.NewReader("\n"), "nothing was stopped"},
		"no input":      {nil, strings.NewReader(""), "nothing was stopped"},
		"no terminal":   {nil, nil, "or with YES=1"},
		"YES=1":         {[]string{"-yes=1"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCheckout(t, "/dev/null")
			s.keepProd(t, prodFile)
			path := filepath.Join(s.root, "aws")
			if err := os.WriteFile(path, []byte(aws), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", s.root+string(os.PathListSeparator)+os.Getenv("PATH"))
			var out strings.Builder
			env := s.system()
			env.out = &out
			if c.typed != nil {
				env.in = c.typed
			}
			env.who = func(context.Context) (account, region string) { return "123456789012", "" }
			err := run(t.Context(), s.root, append([]string{"-env", "prod", "-abort"}, c.arguments...), env)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if prompts := strings.Contains(out.String(), "mobile-gateway-prod"); c.typed != nil && !prompts {
				t.Errorf("the prompt %q does not name the stack", out.String())
			}
			calls, err := os.ReadFile(path + ".calls")
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if stopped := strings.Contains(string(calls), "cancel-update-stack"); stopped != (c.err == "") {
				t.Errorf("stopped: %v, calls\n%s", stopped, calls)
			}
		})
	}
}

// TestReleaseOfAnotherAccount checks that the credentials of another account change no stack of the same name.
func TestReleaseOfAnotherAccount(t *testing.T) {
	for _, action := range []string{"-rollback", "-abort"} {
		s := newTestCheckout(t, "/dev/null")
		s.keepProd(t, prodFile)
		t.Setenv("PATH", s.root) // without an aws
		env := s.system()
		env.who = func(context.Context) (account, region string) { return "210987654321", "" }
		err := run(t.Context(), s.root, []string{"-env", "prod", action}, env)
		if err == nil || !strings.Contains(err.Error(), "the account is 210987654321, not 123456789012") {
			t.Errorf("%s: error %v, want the other account", action, err)
		}
	}
}
