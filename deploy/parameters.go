package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

// releaseLayout is the parameter Release as time.Format writes it: the minute.
const releaseLayout = "0601021504"

// parameter is one of the template's parameters with a value.
type parameter struct{ Name, Value string }

// operatorConstants are the operators' constants of the specification, which have no default that a real merchant could use.
var operatorConstants = [...]string{"ServiceId", "ApplicationId", "ContactId"}

// enableGradualLines takes the marks away from the lines of template.yaml that a gradual deployment has.
func enableGradualLines(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("\n#gradual"), []byte("\n"))
}

// removeDeploymentAlarms takes the alarms of a gradual deployment off, for a way back while one sounds: CodeDeploy stops whatever is
// deployed then, all at once or not. A line without the list, or an empty list, would leave them where they are: SAM
// gives CodeDeploy an empty configuration for this one alone.
func removeDeploymentAlarms(text []byte) []byte {
	return regexp.MustCompile(`(?m)^(    DeploymentPreference: \{.*), Alarms: \[.*\]\}$`).ReplaceAll(text, []byte("$1, Alarms: [!Ref AWS::NoValue]}"))
}

// resolveParameters are all parameters of a deployment: those of samconfig.toml, changed by the wish's own; the architecture,
// which the build needs to know too; and how a gradual one goes, which must not stay what it was in an incident. It fails for one that the template does not have or whose value it does not take.
func resolveParameters(config, template []byte, w deployOptions) ([]parameter, error) {
	given, err := configParameters(config, w.configSection())
	if err == nil {
		err = checkStackName(config, w)
	}
	if err != nil {
		return nil, fmt.Errorf("samconfig.toml: %w", err)
	}
	given = mergeParameters(given, w.parameters)
	for _, name := range operatorConstants {
		if w.environment == "prod" && parameterValue(given, name) == "" {
			return nil, fmt.Errorf("prod needs the operators' %s: put it into samconfig.toml, or into PARAMETERS", name)
		}
	}
	for _, name := range [...]string{"BaseUrl", "CallbackBaseUrl"} {
		if w.environment == "prod" && strings.HasPrefix(parameterValue(given, name), "http://") {
			return nil, fmt.Errorf("prod is reached by https alone: %s begins with http://", name)
		}
	}
	known, err := readDeclarations(template)
	if err != nil {
		return nil, err
	}
	defaults := []parameter{{"Architecture", known["Architecture"].Default}}
	if deployment, gradual := known["Deployment"]; gradual {
		defaults = append(defaults, parameter{"Deployment", deployment.Default})
	}
	given = mergeParameters(defaults, given)
	for _, p := range given {
		if err := known.checkValue(p); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// productionWarnings tells what a deployment of production goes without, a line each. A stack may have the value from before:
// CloudFormation keeps it, and nobody here knows it.
func productionWarnings(environment string, given []parameter) []string {
	if environment != "prod" {
		return nil
	}
	var found []string
	for _, absent := range [...]struct{ name, means string }{
		{"WebAclArn", "anybody's requests use up a route's ThrottleRate, and nobody needs a token for that"},
		{"AlarmTopicArn", "the alarms only show, and wake nobody"},
		{"ChargeConcurrency", "another function's traffic can leave charges none of the account's concurrency"},
		{"PayConcurrency", "another function's traffic can leave payments none of the account's concurrency"},
		{"NotifConcurrency", "another function's traffic can leave operators' callbacks none of the account's concurrency"},
	} {
		if parameterValue(given, absent.name) == "" {
			found = append(found, fmt.Sprintf("%s is not given: unless the stack has it from before, %s", absent.name, absent.means))
		}
	}
	return found
}

// overrideWarnings tells what of the command line holds for this deployment alone, a line each: what samconfig.toml says, and what
// is given each time, the next plain deployment puts back.
func overrideWarnings(config, template []byte, w deployOptions) []string {
	each, _ := configParameters(config, w.configSection()) // settled has read both before
	known, _ := readDeclarations(template)
	if !slices.ContainsFunc(each, func(p parameter) bool { return p.Name == "Architecture" }) {
		each = append(each, parameter{"Architecture", known["Architecture"].Default})
	}
	var found []string
	for _, p := range each {
		if overridden := mergeParameters([]parameter{p}, w.parameters)[0]; overridden.Value != p.Value {
			found = append(found, fmt.Sprintf("%s=%s is for this deployment: the next plain one puts %s back, unless samconfig.toml says otherwise", p.Name, overridden.Value, p.Value))
		}
	}
	return found
}

// configParameters reads the parameters of an environment from samconfig.toml.
func configParameters(text []byte, environment string) ([]parameter, error) {
	var file map[string]any
	if err := toml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	at := nestedValue(file, environment, "deploy", "parameters", "parameter_overrides")
	if at == nil {
		return nil, fmt.Errorf("there is no %s.deploy.parameters.parameter_overrides", environment)
	}
	line, isString := at.(string)
	if !isString {
		return nil, fmt.Errorf("parameter_overrides of %s is not a text of Name=value", environment)
	}
	var found []parameter
	for item := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(item, "=")
		found = append(found, parameter{name, value})
	}
	return found, nil
}

// nestedValue walks down tables; nil where there is nothing.
func nestedValue(at any, keys ...string) any {
	for _, key := range keys {
		table, _ := at.(map[string]any)
		at = table[key]
	}
	return at
}

// checkStackName refuses a stack's name that samconfig.toml gives to another environment: its parameters would be this one's.
func checkStackName(text []byte, w deployOptions) error {
	var file map[string]any
	if err := toml.Unmarshal(text, &file); err != nil {
		return err
	}
	for environment := range file {
		if w.stack != "" && environment != w.configSection() && nestedValue(file, environment, "global", "parameters", "stack_name") == w.stack {
			return fmt.Errorf("%s is the stack of %s: ENV=%s", w.stack, environment, environment)
		}
	}
	return nil
}

// mergeParameters lets later values take the place of earlier ones.
func mergeParameters(first, second []parameter) []parameter {
	merged := slices.Clone(first)
	for _, p := range second {
		if i := slices.IndexFunc(merged, func(other parameter) bool { return other.Name == p.Name }); i >= 0 {
			merged[i] = p
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

// parameterValue is a parameter's value, "" for none.
func parameterValue(all []parameter, name string) string {
	for _, p := range all {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// samOverrides writes parameters as SAM reads them; this form takes an empty value too.
func samOverrides(all []parameter) []string {
	var list []string
	for _, p := range all {
		list = append(list, "ParameterKey="+p.Name+",ParameterValue="+p.Value)
	}
	return list
}

// declaration is a parameter as the template declares it.
type declaration struct {
	Default        string   `yaml:"Default"`
	AllowedPattern string   `yaml:"AllowedPattern"`
	AllowedValues  []string `yaml:"AllowedValues"`
	MinValue       *int     `yaml:"MinValue"`
	MaxValue       *int     `yaml:"MaxValue"`
}

type declarations map[string]declaration

// readDeclarations reads the template's parameters.
func readDeclarations(template []byte) (declarations, error) {
	var document struct {
		Parameters declarations `yaml:"Parameters"`
	}
	err := yaml.Unmarshal(template, &document)
	return document.Parameters, err
}

// checkValue tells whether the template takes a value.
func (d declarations) checkValue(p parameter) error {
	known, found := d[p.Name]
	if !found {
		return fmt.Errorf("template.yaml has no parameter %s", p.Name)
	}
	if len(known.AllowedValues) > 0 && !slices.Contains(known.AllowedValues, p.Value) {
		return fmt.Errorf("%s is one of %s, not %q", p.Name, strings.Join(known.AllowedValues, ", "), p.Value)
	}
	if known.AllowedPattern != "" {
		pattern, err := regexp.Compile(known.AllowedPattern)
		if err != nil || !pattern.MatchString(p.Value) {
			return fmt.Errorf("%s does not take %q: %s", p.Name, p.Value, known.AllowedPattern)
		}
	}
	if known.MinValue == nil && known.MaxValue == nil {
		return nil
	}
	number, err := strconv.Atoi(p.Value)
	if err != nil || known.MinValue != nil && number < *known.MinValue || known.MaxValue != nil && number > *known.MaxValue {
		return fmt.Errorf("%s does not take %q: it is out of its limits", p.Name, p.Value)
	}
	return nil
}

// functionIDs lists the logical ids of a template's functions: each has a program in the bundle.
func functionIDs(template []byte) []string {
	var document struct {
		Resources map[string]struct {
			Type string `yaml:"Type"`
		} `yaml:"Resources"`
	}
	_ = yaml.Unmarshal(template, &document) // declared has read it before
	var found []string
	for name, resource := range document.Resources {
		if resource.Type == "AWS::Serverless::Function" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}
