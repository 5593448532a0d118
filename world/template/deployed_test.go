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
	var deployed struct {
		Parameters map[string]map[string]any `yaml:"Parameters"`
	}
	decodeTemplate(t, &deployed)
	for name, parameter := range deployed.Parameters {
		if parameter["Description"] == nil {
			t.Errorf("%s has no description", name)
		}
		if parameter["AllowedPattern"] == nil && parameter["AllowedValues"] == nil && parameter["MaxValue"] == nil {
			t.Errorf("%s has neither a pattern nor allowed values nor a maximum", name)
		}
	}
}

// TestAlias checks that each function has the alias live, and that a parameter decides whether it moves gradually.
func TestAlias(t *testing.T) {
	global := func(names ...string) *yaml.Node {
		return valueAt(t, append([]string{"Globals", "Function"}, names...)...)
	}
	if alias := global("AutoPublishAlias").Value; alias != "live" {
		t.Errorf("the alias is %q, want live", alias)
	}
	if enabled := global("DeploymentPreference", "Enabled"); enabled.Tag != "!Ref" || enabled.Value != "Gradual" {
		t.Errorf("a gradual deployment is enabled by %s %s, want the parameter Gradual", enabled.Tag, enabled.Value)
	}
}

// TestStageURL checks that the public address accepts TLS 1.2 or better only, and can be closed. The API has no policy
// of its own only if its address is closed: with one, no domain of it can have mutual TLS.
func TestStageURL(t *testing.T) {
	setting := func(name string) *yaml.Node { return valueAt(t, "Resources", "Api", "Properties", name) }
	for name, want := range map[string]string{
		"SecurityPolicy": "SecurityPolicy_TLS13_1_2_2021_06", "EndpointAccessMode": "STRICT",
	} {
		value := setting(name)
		if value.Tag != "!If" || value.Content[0].Value != "HasClosedStage" ||
			value.Content[1].Value != "AWS::NoValue" || value.Content[2].Value != want {
			t.Errorf("%s of the API is not %s while its address is open", name, want)
		}
	}
	if setting("AlwaysDeploy").Value != "true" {
		t.Error("a change of the API's address or policy has no effect: it has no deployment")
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

// TestDomainPolicies checks the policies of the domains. API Gateway refuses mutual TLS with an enhanced policy.
func TestDomainPolicies(t *testing.T) {
	for domain, want := range map[string]string{
		"Domain": "SecurityPolicy_TLS13_1_2_2021_06", "OperatorDomain": "TLS_1_2",
	} {
		if policy := valueAt(t, "Resources", domain, "Properties", "SecurityPolicy").Value; policy != want {
			t.Errorf("the policy of %s is %s, want %s", domain, policy, want)
		}
	}
	if mode := valueAt(t, "Resources", "Domain", "Properties", "EndpointAccessMode").Value; mode != "STRICT" {
		t.Errorf("the access mode of Domain is %q: an enhanced policy needs one", mode)
	}
	mutual := valueAt(t, "Resources", "OperatorDomain", "Properties", "MutualTlsAuthentication")
	if mutual.Tag != "!If" || mutual.Content[0].Value != "HasOperatorTruststore" {
		t.Error("mutual TLS is not optional")
	}
	rule := valueAt(t, "Rules", "MutualTlsNeedsClosedStage", "Assertions")
	if text := rule.Content[0].Content[1]; text.Tag != "!Equals" || text.Content[0].Value != "StageAddress" ||
		text.Content[1].Value != "closed" {
		t.Error("the rule lets a domain with mutual TLS have an API with an enhanced policy")
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
