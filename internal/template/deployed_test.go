package template_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"mobilegateway/internal/template"
	"mobilegateway/shared/settings"
)

// readTemplate gives the template's text.
func readTemplate(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "template.yaml"))
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

// unprotectedResources are the tables that hold no record, and why.
var unprotectedResources = map[string]string{"LimitTable": "a day's counters, which expire"}

// faults tells what a resource lacks.
func (r resource) faults(name string) []string {
	var found []string
	need := func(is bool, what string) {
		if !is {
			found = append(found, what)
		}
	}
	kept := r.DeletionPolicy == "Retain" && r.UpdateReplacePolicy == "Retain"
	// A name of its own that outlives a first deployment which failed is taken for the second.
	unlessNew := r.DeletionPolicy == "RetainExceptOnCreate" && r.UpdateReplacePolicy == "Retain"
	switch r.Type {
	case "AWS::DynamoDB::Table":
		records := unprotectedResources[name] == ""
		need(kept == records, "is retained where it need not be, or the other way round")
		need(r.Properties.DeletionProtection == records, "has no deletion protection, or needs none")
		need(r.Properties.PointInTime.IsZero() != records, "has no point-in-time recovery, or needs none")
		need(!r.Properties.Encryption.IsZero(), "takes no customer key")
	case "AWS::SecretsManager::Secret":
		need(unlessNew, "is not retained, or also where the stack never was")
		need(!r.Properties.Key.IsZero(), "takes no customer key")
	case "AWS::Logs::LogGroup":
		need(!r.Properties.Key.IsZero(), "takes no customer key")
		need(!r.Properties.Retention.IsZero(), "keeps its lines for ever")
	case "AWS::Serverless::Function":
		need(!r.Properties.Concurrency.IsZero(), "has no concurrency to reserve")
	}
	return found
}

func TestStatefulResourcesAreProtected(t *testing.T) {
	var deployed struct {
		Resources map[string]resource `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(readTemplate(t), &deployed); err != nil {
		t.Fatal(err)
	}
	for name, item := range deployed.Resources {
		for _, resolveErr := range item.faults(name) {
			t.Errorf("%s %s", name, resolveErr)
		}
	}
}

func TestParametersAreDescribed(t *testing.T) {
	text := bytes.ReplaceAll(readTemplate(t), []byte("\n#gradual"), []byte("\n"))
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

// TestGradualDeploymentTemplate takes the marks away, as a gradual deployment does: the rest is the same.
func TestGradualDeploymentTemplate(t *testing.T) {
	marked := readTemplate(t)
	gradual := bytes.ReplaceAll(marked, []byte("\n#gradual"), []byte("\n"))
	parsed, err := template.Parse(gradual, template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Parameters["Deployment"] == "" {
		t.Error("it has no parameter Deployment")
	}
	if actual, want := bytes.Count(gradual, []byte("\n      AutoPublishCodeSha256: !Ref Release\n")), len(parsed.Functions); actual != want {
		t.Errorf("%d of %d functions get a new version with each release", actual, want)
	}
	if count := bytes.Count(gradual, []byte("\n    AutoPublishAlias: live\n")); count != 1 || bytes.Contains(marked, []byte("\n    AutoPublishAlias")) {
		t.Error("the alias does not stand under its mark, once")
	}
}

// TestStageURL: what anybody reaches takes TLS 1.2 or better, and can be closed.
func TestStageURL(t *testing.T) {
	var deployed struct {
		Resources struct {
			API struct {
				Properties struct {
					SecurityPolicy     string    `yaml:"SecurityPolicy"`
					EndpointAccessMode string    `yaml:"EndpointAccessMode"`
					Closed             yaml.Node `yaml:"DisableExecuteApiEndpoint"`
				} `yaml:"Properties"`
			} `yaml:"Api"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(readTemplate(t), &deployed); err != nil {
		t.Fatal(err)
	}
	api := deployed.Resources.API.Properties
	if api.SecurityPolicy != "SecurityPolicy_TLS13_1_2_2021_06" || api.EndpointAccessMode != "STRICT" {
		t.Errorf("it takes what %q with %q takes", api.SecurityPolicy, api.EndpointAccessMode)
	}
	if api.Closed.Tag != "!If" || api.Closed.Content[0].Value != "HasClosedStage" {
		t.Error("nothing closes it")
	}
	if !bytes.Contains(readTemplate(t), []byte("\n    Value: !If\n      - HasClosedStage\n      - !Sub \"https://${DomainName}\"\n")) {
		t.Error("the output BaseUrl names a stage that does not answer")
	}
}

// TestURLParameterPatterns holds the patterns of the two bases against what may stand in front of a path.
func TestURLParameterPatterns(t *testing.T) {
	for _, name := range []string{"BaseUrl", "CallbackBaseUrl"} {
		pattern := parameterPattern(t, name)
		for _, address := range []string{
			"", "https://api.example.com", "http://127.0.0.1:3000", "https://api.example.com/gateway/v1", "https://x:65535/a_b.c~d-e",
		} {
			if !pattern.MatchString(address) {
				t.Errorf("%s does not take %q", name, address)
			}
		}
		for _, address := range []string{
			"https://x/a b", "https://user:p@x", "https://user@x", "https://x/", "https://x//a", "https://x?a", "https://x/a?b", "https://x#a",
			"ftp://x", "https://", "https://x\n", "https://x:", "https://x:123456", "https://x/\"a", "https://x/${a}", "api.example.com",
		} {
			if pattern.MatchString(address) {
				t.Errorf("%s takes %q", name, address)
			}
		}
	}
}

// parameterPattern is the pattern of a parameter.
func parameterPattern(t *testing.T, name string) *regexp.Regexp {
	t.Helper()
	var deployed struct {
		Parameters map[string]struct {
			Pattern string `yaml:"AllowedPattern"`
		} `yaml:"Parameters"`
	}
	if err := yaml.Unmarshal(readTemplate(t), &deployed); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(deployed.Parameters[name].Pattern)
}

// TestDurationParameterPatterns compares what a parameter's pattern takes with what the function that is given it takes: more,
// and the function does not start; less, and a value that the description allows is refused.
func TestDurationParameterPatterns(t *testing.T) {
	given := regexp.MustCompile(`(?m)^          ([A-Z_]+): !Ref ([A-Za-z]+)$`).FindAllStringSubmatch(string(readTemplate(t)), -1)
	durations := map[string]string{}
	for _, match := range given {
		// The default tells which variables are durations.
		if _, err := time.ParseDuration(settings.FromEnv(func(string) string { return "" }).Text(match[1])); err == nil {
			durations[match[2]] = match[1]
		}
	}
	if durations["RecordRetention"] == "" {
		t.Error("RecordRetention is not found")
	}
	values := []string{
		"0s", "0h", "1s", "1h", "-1h", "999h", "1000h", "8999h", "9000h", "9599h", "9600h", "9601h", "9699h", "9700h", "9999h", "10000h", "09600h",
		"99999h", "100000h", "999999h", "1000000h", "2562047h", "2562048h", "9999999h", "9600", "9600h1m", "576000m", "9600H",
	}
	const longest = 999999 * time.Hour // what the description says
	for parameter, variable := range durations {
		pattern := parameterPattern(t, parameter)
		for _, value := range values {
			environment := settings.FromEnv(func(name string) string { return map[string]string{variable: value}[name] })
			read := environment.Duration(variable)
			starts, taken := environment.Err() == nil, pattern.MatchString(value)
			if taken && !starts {
				t.Errorf("%s takes %s, with which no function starts: %v", parameter, value, environment.Err())
			}
			whole := value == "0s" || regexp.MustCompile(`^[1-9][0-9]*h$`).MatchString(value)
			if starts && whole && read <= longest && !taken {
				t.Errorf("%s does not take %s", parameter, value)
			}
		}
	}
}
