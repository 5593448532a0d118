package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestJudge gives checkov's findings in a template, and in the same with no suppression in force.
func TestJudge(t *testing.T) {
	reason := "The next minute's run does what this one left"
	cases := []struct {
		name                           string
		passed, failed, skipped, needs string // a resource of each; needs fails in the open variant
		comment, want                  string
	}{
		{name: "nothing", passed: "Table"},
		{name: "failed", passed: "Table", failed: "Queue", needs: "Queue", want: "t.yaml:7: Queue CKV_1: the name"},
		{name: "suppressed with a reason", passed: "Table", skipped: "Queue", needs: "Queue", comment: reason},
		{name: "suppressed without one", passed: "Table", skipped: "Queue", needs: "Queue", want: "without a reason"},
		{name: "suppressed with checkov's word for none", passed: "Table", skipped: "Queue", needs: "Queue", comment: "No comment provided", want: "without a reason"},
		{name: "suppressed with a word", passed: "Table", skipped: "Queue", needs: "Queue", comment: "todo", want: "without a reason"},
		{name: "suppressed for nothing", passed: "Table", skipped: "Queue", comment: reason, want: "would pass"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var all report
			add := func(list *[]finding, file, resource string) {
				if resource != "" {
					f := finding{ID: "CKV_1", Name: "the name", File: file, Resource: resource, Lines: []int{7, 9}}
					f.Result.Comment = c.comment
					*list = append(*list, f)
				}
			}
			add(&all.Results.Passed, "t.yaml", c.passed)
			add(&all.Results.Passed, "open/t.yaml", c.passed)
			add(&all.Results.Failed, "t.yaml", c.failed)
			add(&all.Results.Failed, "open/t.yaml", c.needs)
			add(&all.Results.Skipped, "t.yaml", c.skipped)
			found, err := judge(all, map[string]string{"t.yaml": "open/t.yaml"}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0], c.want)) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
	if _, err := judge(report{}, map[string]string{"t.yaml": "open/t.yaml"}, io.Discard); err == nil {
		t.Error("a template that checkov did not look at passes")
	}
}

// TestReadReport refuses whatever says nothing about a template.
func TestReadReport(t *testing.T) {
	for _, text := range []string{"", `{"passed": 0, "failed": 0}`, `[{"check_type": "cloudformation"}]`,
		`{"check_type": "cloudformation", "results": {"parsing_errors": ["template.yaml"]}}`} {
		if _, err := readReport([]byte(text)); err == nil {
			t.Errorf("%q is taken for a report", text)
		}
	}
	text, err := json.Marshal(report{CheckType: "cloudformation"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readReport(text); err != nil {
		t.Error(err)
	}
}

// TestVariants finds templates by what they say, and puts #gradual lines in force on a copy.
func TestVariants(t *testing.T) {
	top, ctx := t.TempDir(), context.Background()
	if _, err := run(ctx, top, "git", "init", "-q"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"template.yaml":       "AWSTemplateFormatVersion: \"2010-09-09\"\nResources:\n#gradual  A: {}\n",
		"deploy/keys.json":    "{\n \"AWSTemplateFormatVersion\": \"2010-09-09\"}",
		"deploy/other.yaml":   "openapi: 3.1.0\n",
		"testdata/a.yaml":     "AWSTemplateFormatVersion: \"2010-09-09\"\n",
		"deploy/sam.template": "Transform: AWS::Serverless-2016-10-31\n",
	} {
		if err := write(filepath.Join(top, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	templates, err := find(ctx, top)
	if err != nil {
		t.Fatal(err)
	}
	files, err := variants(top, templates)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	if want := []string{".local/template/gradual/template.yaml", "deploy/keys.json", "deploy/sam.template", "template.yaml"}; !slices.Equal(files, want) {
		t.Errorf("%q, want %q", files, want)
	}
	text, err := os.ReadFile(filepath.Join(top, ".local/template/gradual/template.yaml"))
	if err != nil || !strings.Contains(string(text), "\n  A: {}\n") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestLintExceptionsHaveReasons asks a reason beside each rule that .cfnlintrc leaves out.
func TestLintExceptionsHaveReasons(t *testing.T) {
	text, err := os.ReadFile("../../.cfnlintrc")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "\nignore_checks:\n")
	if !found {
		t.Fatal(".cfnlintrc has no ignore_checks of its own lines")
	}
	for line := range strings.Lines(list) {
		if !regexp.MustCompile(`^  - [A-Z][0-9]{4} # .{15,}\n$`).MatchString(line) {
			t.Errorf(".cfnlintrc: %q is no rule with a reason beside it", line)
		}
	}
}

// TestCompare gives what SAM makes of two releases.
func TestCompare(t *testing.T) {
	release := func(version, description string) map[string]made {
		return map[string]made{
			"F":                  {Type: "AWS::Lambda::Function", Properties: map[string]any{"Description": description}},
			"FVersion" + version: {Type: "AWS::Lambda::Version"},
			"Api":                {Type: "AWS::ApiGateway::RestApi", Properties: map[string]any{"SecurityPolicy": "a", "EndpointAccessMode": "b"}},
		}
	}
	for name, c := range map[string]struct {
		first, second map[string]made
		want          string
	}{
		"two versions":        {release("1", "one 1"), release("2", "one 2"), ""},
		"one name":            {release("1", "one 1"), release("1", "one 2"), "FVersion1 is one version"},
		"one function":        {release("1", "one"), release("2", "one"), "F is the same in two releases"},
		"no version":          {map[string]made{"F": release("", "1")["F"]}, release("2", "2"), "F has no version"},
		"no security policy":  {map[string]made{"Api": {Type: "AWS::ApiGateway::RestApi"}}, nil, "Api loses its security policy"},
		"nothing is deployed": {nil, nil, "no function"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(compare(c.first, c.second), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
