package main

import (
	"slices"
	"strings"
	"testing"
)

// TestDataStack: prod's data is deployed and protected before its gateway, which gets the name of that stack and the
// ledger's stream. A stream that is given, of a restored table, wins. An empty DataStack keeps the data in one stack,
// as dev does.
func TestDataStack(t *testing.T) {
	const restored = "arn:aws:dynamodb:eu-west-1:123456789012:table/ledger/stream/2026-12-01T00:00:00.000"
	for name, c := range map[string]struct {
		environment, more string // the environment, and a line of its file
		outputs           string
		want              []string // part of each call of SAM
		fault             string
	}{
		"prod": {"prod", "KmsKeyArn = \"arn:aws:kms:eu-west-1:123456789012:key/1\"\n", dataOutputs, []string{"build ",
			"data.yaml --stack-name mobile-gateway-prod-data --no-fail-on-empty-changeset",
			"DataStack,ParameterValue=mobile-gateway-prod-data ParameterKey=Deployment"}, ""},
		"a restored ledger": {"prod", "LedgerStreamArn = \"" + restored + "\"\n", dataOutputs, []string{"build ",
			"data.yaml ", "LedgerStreamArn,ParameterValue=" + restored}, ""},
		"one stack": {"prod", "DataStack = \"\"\n", "[]", []string{"build ", "DataStack,ParameterValue= "}, ""},
		"staging with a data stack": {"staging", "DataStack = \"own-data\"\n", dataOutputs, []string{"build ",
			"data.yaml --stack-name own-data ", "LedgerStreamArn,ParameterValue=" + ledgerStream}, ""},
		"dev":        {"dev", "", "[]", []string{"build ", "deploy "}, ""},
		"a declined": {"prod", "", "[]", []string{"build ", "data.yaml "}, "was its change set declined?"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTrace(t)
			r.keep(t, c.environment, prodFile+"DomainName = \"api.example.com\"\nCertificateArn = "+
				"\"arn:aws:acm:eu-west-1:123456789012:certificate/1\"\n"+c.more)
			t.Setenv("FAKE_OUTPUTS", c.outputs)
			err := r.run(t, "", "-env", c.environment)
			if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Fatalf("error %v, want %q", err, c.fault)
			}
			calls := r.calls(t)
			if len(calls) != len(c.want) {
				t.Fatalf("SAM was called with %q", calls)
			}
			for i, want := range c.want {
				if !strings.Contains(calls[i], want) {
					t.Errorf("call %d has no %q: %s", i, want, calls[i])
				}
				isData := strings.Contains(calls[i], "data.yaml")
				if isData != strings.Contains(calls[i], "GatewayStack,ParameterValue=mobile-gateway-") ||
					isData && strings.Contains(calls[i], "ParameterKey=DomainName") ||
					isData && strings.Contains(calls[i], "key/1") != strings.Contains(c.more, "key/1") {
					t.Errorf("the parameters of call %d: %s", i, calls[i])
				}
			}
			isProtected := slices.ContainsFunc(r.protected,
				func(s string) bool { return strings.HasPrefix(s, "data ") })
			if want := c.fault == "" && strings.Contains(strings.Join(calls, "\n"), "data.yaml"); isProtected != want {
				t.Errorf("protected %q", r.protected)
			}
		})
	}
}
