package template_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"mobilegateway/internal/template"
)

// read gives the template's text.
func read(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// resource is what the rules below look at.
type resource struct {
	Type                string `yaml:"Type"`
	DeletionPolicy      string `yaml:"DeletionPolicy"`
	UpdateReplacePolicy string `yaml:"UpdateReplacePolicy"`
	Properties          struct {
		DeletionProtection bool      `yaml:"DeletionProtectionEnabled"`
		PointInTime        yaml.Node `yaml:"PointInTimeRecoverySpecification"`
		Encryption         yaml.Node `yaml:"SSESpecification"`
		Key                yaml.Node `yaml:"KmsKeyId"`
		Retention          yaml.Node `yaml:"RetentionInDays"`
		Concurrency        yaml.Node `yaml:"ReservedConcurrentExecutions"`
	} `yaml:"Properties"`
}

// disposable are the tables that hold no record, and why.
var disposable = map[string]string{"LimitTable": "a day's counters, which expire"}

// faults tells what a resource lacks.
func (r resource) faults(name string) []string {
	var found []string
	need := func(is bool, what string) {
		if !is {
			found = append(found, what)
		}
	}
	kept := r.DeletionPolicy == "Retain" && r.UpdateReplacePolicy == "Retain"
	switch r.Type {
	case "AWS::DynamoDB::Table":
		records := disposable[name] == ""
		need(kept == records, "is retained where it need not be, or the other way round")
		need(r.Properties.DeletionProtection == records, "has no deletion protection, or needs none")
		need(r.Properties.PointInTime.IsZero() != records, "has no point-in-time recovery, or needs none")
		need(!r.Properties.Encryption.IsZero(), "takes no customer key")
	case "AWS::SecretsManager::Secret":
		need(kept, "is not retained")
		need(!r.Properties.Key.IsZero(), "takes no customer key")
	case "AWS::Logs::LogGroup":
		need(!r.Properties.Key.IsZero(), "takes no customer key")
		need(!r.Properties.Retention.IsZero(), "keeps its lines for ever")
	case "AWS::Serverless::Function":
		need(!r.Properties.Concurrency.IsZero(), "has no concurrency to reserve")
	}
	return found
}

func TestWhatIsKeptIsProtected(t *testing.T) {
	var deployed struct {
		Resources map[string]resource `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(read(t), &deployed); err != nil {
		t.Fatal(err)
	}
	for name, one := range deployed.Resources {
		for _, fault := range one.faults(name) {
			t.Errorf("%s %s", name, fault)
		}
	}
}

func TestParametersSayWhatTheyAre(t *testing.T) {
	text := bytes.ReplaceAll(read(t), []byte("\n#gradual"), []byte("\n"))
	var deployed struct {
		Parameters map[string]map[string]any `yaml:"Parameters"`
	}
	if err := yaml.Unmarshal(text, &deployed); err != nil {
		t.Fatal(err)
	}
	for name, parameter := range deployed.Parameters {
		if parameter["Description"] == nil {
			t.Errorf("%s has no description", name)
		}
		if parameter["AllowedPattern"] == nil && parameter["AllowedValues"] == nil && parameter["MaxValue"] == nil {
			t.Errorf("%s takes anything", name)
		}
	}
}

// TestTheGradualTemplate takes the marks away, as a gradual deployment does: the rest is the same.
func TestTheGradualTemplate(t *testing.T) {
	marked := read(t)
	gradual := bytes.ReplaceAll(marked, []byte("\n#gradual"), []byte("\n"))
	parsed, err := template.Parse(gradual, template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Parameters["Deployment"] == "" {
		t.Error("it has no parameter Deployment")
	}
	if got, want := bytes.Count(gradual, []byte("\n      AutoPublishCodeSha256: !Ref Release\n")), len(parsed.Functions); got != want {
		t.Errorf("%d of %d functions get a new version with each release", got, want)
	}
	if count := bytes.Count(gradual, []byte("\n    AutoPublishAlias: live\n")); count != 1 || bytes.Contains(marked, []byte("\n    AutoPublishAlias")) {
		t.Error("the alias does not stand under its mark, once")
	}
}
