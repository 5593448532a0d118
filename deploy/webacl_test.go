package main

import (
	"strings"
	"testing"
)

// TestWebACL checks that WAF=1 deploys the web ACL after the bundle is checked, and gives its ARN to the stack.
func TestWebACL(t *testing.T) {
	const arn = "arn:aws:wafv2:eu-west-1:123456789012:regional/webacl/WebAcl-x/1a-2b"
	good := buildProgram(t, deployFlags("arm64")...)
	for name, outputs := range map[string]string{
		"deployed": `[{"OutputKey":"WebAclArn","OutputValue":"` + arn + `"}]`, "declined": "[]",
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCheckout(t, good)
			t.Setenv("FAKE_OUTPUTS", outputs)
			t.Setenv("FAKE_STDERR", "")
			err := run(t.Context(), s.root, []string{"-waf=1", "-stack", "mine", "-yes=1"}, s.system())
			calls := s.calls(t)
			if len(calls) < 2 || !strings.HasPrefix(calls[0], "build ") {
				t.Fatalf("SAM was called with %q, want a build first", calls)
			}
			for _, word := range []string{"/deploy/waf.yaml --stack-name mine-waf", "--no-confirm-changeset",
				"--no-fail-on-empty-changeset", "ParameterKey=LogRetentionDays,ParameterValue=7"} {
				if !strings.Contains(calls[1], word) {
					t.Errorf("the call %s\nlacks %s", calls[1], word)
				}
			}
			if name == "declined" {
				if err == nil || !strings.Contains(err.Error(), "no output WebAclArn") || len(calls) != 2 {
					t.Errorf("error %v after %d calls, want one about the missing output", err, len(calls))
				}
				return
			}
			if err != nil || len(calls) != 3 || !strings.Contains(calls[2], "WebAclArn,ParameterValue="+arn) {
				t.Errorf("error %v, calls %q, want the ARN in the third", err, calls)
			}
		})
	}
}
