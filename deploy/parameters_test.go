package main

import (
	"slices"
	"strings"
	"testing"
)

// TestProductionWarnings: production is told what it goes without, and goes.
func TestProductionWarnings(t *testing.T) {
	all := []parameter{
		{"WebAclArn", "arn"}, {"AlarmTopicArn", "arn"}, {"ChargeConcurrency", "20"}, {"PayConcurrency", "20"}, {"NotifConcurrency", "20"},
	}
	if got := productionWarnings("prod", all); len(got) != 0 {
		t.Errorf("with everything: %q", got)
	}
	for i, p := range all {
		got := productionWarnings("prod", slices.Delete(slices.Clone(all), i, i+1))
		if len(got) != 1 || !strings.HasPrefix(got[0], p.Name+" is not given") || strings.Contains(got[0], "\n") {
			t.Errorf("without %s: %q", p.Name, got)
		}
	}
	if got := productionWarnings("prod", mergeParameters(all, []parameter{{"WebAclArn", ""}})); len(got) != 1 {
		t.Errorf("an empty value: %q", got)
	}
	if got := productionWarnings("dev", nil); len(got) != 0 {
		t.Errorf("dev: %q", got)
	}
}

// TestOverrideWarnings: what samconfig.toml says comes back with the next deployment that does not say otherwise.
func TestOverrideWarnings(t *testing.T) {
	config, known := read(t, "samconfig.toml"), read(t, "template.yaml")
	for name, c := range map[string]struct {
		given []parameter
		want  string
	}{
		"nothing":                  {nil, ""},
		"what stands there too":    {[]parameter{{"LogRetentionDays", "400"}}, ""},
		"what it does not mention": {[]parameter{{"AlarmTopicArn", "arn"}}, ""},
		"another value":            {[]parameter{{"LogRetentionDays", "30"}}, "LogRetentionDays=30 is for this deployment: the next plain one puts 400 back"},
		"another processor":        {[]parameter{{"Architecture", "x86_64"}}, "Architecture=x86_64 is for this deployment: the next plain one puts arm64 back"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(overrideWarnings(config, known, deployOptions{environment: "prod", parameters: c.given}), "\n")
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
