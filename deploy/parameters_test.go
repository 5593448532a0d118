package main

import (
	"strings"
	"testing"
)

// TestProductionWarnings checks that a production deployment continues with a warning for each missing protection.
func TestProductionWarnings(t *testing.T) {
	all := parameters{
		"WebAclArn": "arn", "AlarmTopicArn": "arn",
		"ChargeConcurrency": "20", "PayConcurrency": "20", "NotifConcurrency": "20",
	}
	known := mustReadTemplate(t)
	if got := productionWarnings(deployOptions{environment: "prod"}, known, all); len(got) != 0 {
		t.Errorf("with everything: %q", got)
	}
	for name, value := range all {
		all[name] = "" // an empty value is a missing one
		got := productionWarnings(deployOptions{environment: "prod"}, known, all)
		if len(got) != 1 || !strings.HasPrefix(got[0], name+" is not given") || strings.Contains(got[0], "\n") {
			t.Errorf("without %s: %q", name, got)
		}
		all[name] = value
	}
	delete(all, "WebAclArn")
	if got := productionWarnings(deployOptions{environment: "prod", waf: true}, known, all); len(got) != 0 {
		t.Errorf("with WAF=1: the warnings %q, want none", got)
	}
	few := parameters{"WebAclArn": "arn", "AlarmTopicArn": "arn", "AccountConcurrency": "1000"}
	if got := productionWarnings(deployOptions{environment: "prod"}, known, few); len(got) != 0 {
		t.Errorf("with the reservations of AccountConcurrency: %q", got)
	}
	few["AccountConcurrency"] = "100"
	if got := productionWarnings(deployOptions{environment: "prod"}, known, few); len(got) != 3 {
		t.Errorf("with an account that can reserve nothing: the warnings %q, want 3", got)
	}
	if got := productionWarnings(deployOptions{environment: "dev"}, known, nil); len(got) != 0 {
		t.Errorf("dev: %q", got)
	}
}

// TestOverrideWarnings checks the warning that the next deployment sets an overridden value back.
func TestOverrideWarnings(t *testing.T) {
	config, err := readConfig(checkout, deployOptions{environment: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		given parameters
		want  string
	}{
		"nothing":               {nil, ""},
		"the same value":        {parameters{"LogRetentionDays": "400"}, ""},
		"not in samconfig.toml": {parameters{"AlarmTopicArn": "arn"}, ""},
		"another value": {
			parameters{"LogRetentionDays": "30"},
			"LogRetentionDays=30 is for this deployment only: the next one without it restores 400",
		},
		"another processor": {
			parameters{"Architecture": "x86_64"},
			"Architecture=x86_64 is for this deployment only: the next one without it restores arm64",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(overrideWarnings(config, mustReadTemplate(t), deployOptions{parameters: c.given}), "\n")
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("warnings %q, want %q", got, c.want)
			}
		})
	}
}
