package template_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"mobilegateway/shared/settings"
	"mobilegateway/world/template"
	"mobilegateway/world/template/node"
)

// readTemplate returns the template's text.
func readTemplate(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decodeTemplate decodes the template as YAML.
func decodeTemplate(t *testing.T, into any) {
	t.Helper()
	if err := node.Decode(readTemplate(t), into); err != nil {
		t.Fatal(err)
	}
}

// valueAt returns the value below nested mappings of the template, one key for each.
func valueAt(t *testing.T, keys ...string) *yaml.Node {
	t.Helper()
	var document yaml.Node
	decodeTemplate(t, &document)
	value := node.At(document.Content[0], keys...)
	if value == nil {
		t.Fatalf("the template has no %v", keys)
	}
	return value
}

// resource has the properties that the rules below check.
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

// unprotectedResources are the tables without records, with the reason.
var unprotectedResources = map[string]string{"LimitTable": "a day's counters, which expire"}

// faults lists the rules that a resource breaks.
func (r resource) faults(name string) []string {
	var found []string
	need := func(is bool, what string) {
		if !is {
			found = append(found, what)
		}
	}
	kept := r.DeletionPolicy == "Retain" && r.UpdateReplacePolicy == "Retain"
	// A named resource that outlives a failed first deployment blocks the next one.
	unlessNew := r.DeletionPolicy == "RetainExceptOnCreate" && r.UpdateReplacePolicy == "Retain"
	switch r.Type {
	case "AWS::DynamoDB::Table":
		records := unprotectedResources[name] == ""
		need(kept == records, "must be retained exactly if it has records")
		need(r.Properties.DeletionProtection == records, "must have deletion protection exactly if it has records")
		need(r.Properties.PointInTime.IsZero() != records, "must have point-in-time recovery exactly if it has records")
		need(!r.Properties.Encryption.IsZero(), "has no customer key")
	case "AWS::SecretsManager::Secret":
		need(unlessNew, "must be retained, except on a failed creation (RetainExceptOnCreate)")
		need(!r.Properties.Key.IsZero(), "has no customer key")
	case "AWS::Logs::LogGroup":
		need(!r.Properties.Key.IsZero(), "has no customer key")
		need(!r.Properties.Retention.IsZero(), "has no retention: it keeps its lines without limit")
	case "AWS::Serverless::Function":
		need(!r.Properties.Concurrency.IsZero(), "has no setting for reserved concurrency")
	}
	return found
}

func TestStatefulResourcesAreProtected(t *testing.T) {
	var deployed struct {
		Resources map[string]resource `yaml:"Resources"`
	}
	decodeTemplate(t, &deployed)
	for name, item := range deployed.Resources {
		for _, fault := range item.faults(name) {
			t.Errorf("%s %s", name, fault)
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
			t.Errorf("%s has neither a pattern nor allowed values nor a maximum", name)
		}
	}
}

// TestGradualDeploymentTemplate removes the #gradual marks, as a gradual deployment does.
func TestGradualDeploymentTemplate(t *testing.T) {
	marked := readTemplate(t)
	gradual := bytes.ReplaceAll(marked, []byte("\n#gradual"), []byte("\n"))
	parsed, err := template.Parse(gradual, template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if parsed.References["Deployment"] == "" {
		t.Error("the gradual template has no parameter Deployment")
	}
	published := bytes.Count(gradual, []byte("\n      AutoPublishCodeSha256: !Ref Release\n"))
	if want := len(parsed.Functions); published != want {
		t.Errorf("%d of %d functions get a new version with each release", published, want)
	}
	if count := bytes.Count(gradual, []byte("\n    AutoPublishAlias: live\n")); count != 1 {
		t.Errorf("the gradual template sets the alias %d times, want once", count)
	}
	if bytes.Contains(marked, []byte("\n    AutoPublishAlias")) {
		t.Error("the alias is not behind the #gradual mark")
	}
}

// TestStageURL: the public address accepts TLS 1.2 or better only, and can be closed.
func TestStageURL(t *testing.T) {
	setting := func(name string) *yaml.Node { return valueAt(t, "Resources", "Api", "Properties", name) }
	policy, mode := setting("SecurityPolicy").Value, setting("EndpointAccessMode").Value
	if policy != "SecurityPolicy_TLS13_1_2_2021_06" || mode != "STRICT" {
		t.Errorf("the security policy is %q with access mode %q", policy, mode)
	}
	closed := setting("DisableExecuteApiEndpoint")
	if closed.Tag != "!If" || closed.Content[0].Value != "HasClosedStage" {
		t.Error("the condition HasClosedStage does not close the stage's own address")
	}
	output := "\n    Value: !If\n      - HasClosedStage\n      - !Sub \"https://${DomainName}\"\n"
	if !bytes.Contains(readTemplate(t), []byte(output)) {
		t.Error("the output BaseUrl names a stage that is closed")
	}
}

// TestURLParameterPatterns: the patterns of the two base addresses accept exactly what may precede a path.
func TestURLParameterPatterns(t *testing.T) {
	for _, name := range []string{"BaseUrl", "CallbackBaseUrl"} {
		pattern := parameterPattern(t, name)
		for wanted, addresses := range map[bool][]string{
			true: {
				"", "https://api.example.com", "http://127.0.0.1:3000", "https://api.example.com/gateway/v1",
				"https://x:65535/a_b.c~d-e",
			},
			false: {
				"https://x/a b", "https://user:p@x", "https://user@x", "https://x/", "https://x//a", "https://x?a",
				"https://x/a?b", "https://x#a", "ftp://x", "https://", "https://x\n", "https://x:", "https://x:123456",
				"https://x/\"a", "https://x/${a}", "api.example.com",
			},
		} {
			for _, address := range addresses {
				if pattern.MatchString(address) != wanted {
					t.Errorf("the pattern of %s accepts %q: %v, want %v", name, address, !wanted, wanted)
				}
			}
		}
	}
}

// parameterPattern returns the pattern of a parameter.
func parameterPattern(t *testing.T, name string) *regexp.Regexp {
	t.Helper()
	return regexp.MustCompile(valueAt(t, "Parameters", name, "AllowedPattern").Value)
}

// TestDurationParameterPatterns compares the pattern of a parameter with the values that the function accepts. If the
// pattern accepts more, the function does not start. If it accepts less, it refuses a value that the description
// allows.
func TestDurationParameterPatterns(t *testing.T) {
	reference := regexp.MustCompile(`(?m)^          ([A-Z_]+): !Ref ([A-Za-z]+)$`)
	given := reference.FindAllStringSubmatch(string(readTemplate(t)), -1)
	defaults := settings.FromEnv(func(string) string { return "" })
	durations := map[string]string{}
	for _, match := range given {
		// A variable is a duration if its default is one.
		if _, err := time.ParseDuration(defaults.Text(match[1])); err == nil {
			durations[match[2]] = match[1]
		}
	}
	if durations["RecordRetention"] == "" {
		t.Error("RecordRetention is not found")
	}
	values := []string{
		"0s", "0h", "1s", "1h", "-1h", "999h", "1000h", "8999h", "9000h", "9599h", "9600h", "9601h", "9699h", "9700h",
		"9999h", "10000h", "09600h", "99999h", "100000h", "999999h", "1000000h", "2562047h", "2562048h", "9999999h",
		"9600", "9600h1m", "576000m", "9600H",
	}
	const longest = 999999 * time.Hour // as the description says
	for parameter, variable := range durations {
		pattern := parameterPattern(t, parameter)
		for _, value := range values {
			set := map[string]string{variable: value}
			environment := settings.FromEnv(func(name string) string { return set[name] })
			read := environment.Duration(variable)
			starts, accepted := environment.Err() == nil, pattern.MatchString(value)
			if accepted && !starts {
				t.Errorf("the pattern of %s accepts %s, but no function starts: %v",
					parameter, value, environment.Err())
			}
			whole := value == "0s" || regexp.MustCompile(`^[1-9][0-9]*h$`).MatchString(value)
			if starts && whole && read <= longest && !accepted {
				t.Errorf("the pattern of %s refuses %s", parameter, value)
			}
		}
	}
}
