package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"mobilegateway/deploy/preflight"
)

// parameters are the template's parameters by name.
type parameters map[string]string

// operatorConstants are the operators' constants of the specification. Their defaults suit no real merchant.
var operatorConstants = [...]string{"ServiceId", "ApplicationId", "ContactId"}

// resolveParameters returns all parameters of a deployment: those of samconfig.toml, overridden by the command line. It
// adds the architecture, which the build needs, and how a new version takes over, which must not stay that of an
// incident. It fails for a parameter or value that the template does not accept.
func resolveParameters(config samconfig, known templateFile, o deployOptions) (parameters, error) {
	if err := config.checkStackName(o.stack); err != nil {
		return nil, err
	}
	given := known.resent()
	maps.Copy(given, config.parameters)
	maps.Copy(given, o.parameters)
	for _, name := range operatorConstants {
		if o.environment == "prod" && given[name] == "" {
			return nil, fmt.Errorf("prod needs the operators' %s: set it in %s or PARAMETERS", name,
				environmentPath(o.environment))
		}
	}
	for _, name := range [...]string{"BaseUrl", "CallbackBaseUrl"} {
		if o.environment == "prod" && strings.HasPrefix(given[name], "http://") {
			return nil, fmt.Errorf("prod needs https: %s begins with http://", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := known.checkParameter(name, given[name]); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// resent returns the defaults of the parameters that each deployment sends.
func (t templateFile) resent() parameters {
	given := parameters{}
	for _, name := range [...]string{"Architecture", "Gradual", "Deployment"} {
		given[name] = t.Parameters[name].Default
	}
	return given
}

// productionWarnings returns a line for each missing protection of a production deployment. The stack may have the
// value of an earlier deployment, which CloudFormation keeps. AccountConcurrency protects functions too, if it is large
// enough to reserve for them.
func productionWarnings(o deployOptions, known templateFile, given parameters) []string {
	if o.environment != "prod" {
		return nil
	}
	var found []string
	for _, missing := range [...]struct{ name, effect string }{
		{"WebAclArn", "anonymous requests count against a route's ThrottleRate (WAF=1 sets it)"},
		{"AlarmTopicArn", "alarms appear in CloudWatch but notify no one"},
		{"ChargeConcurrency", "another function can use the account's concurrency that charges need"},
		{"PayConcurrency", "another function can use the account's concurrency that payments need"},
		{"NotifConcurrency", "another function can use the account's concurrency that operators' callbacks need"},
	} {
		function, _ := strings.CutSuffix(missing.name, "Concurrency")
		reserved := known.reservation(given["AccountConcurrency"], function) > 0
		if given[missing.name] == "" && !reserved && !(o.waf && missing.name == "WebAclArn") {
			found = append(found, fmt.Sprintf("%s is not given: unless an earlier deployment set it, %s",
				missing.name, missing.effect))
		}
	}
	return found
}

// overrideWarnings returns a line for each parameter that the next deployment without options will set back.
func overrideWarnings(config samconfig, known templateFile, o deployOptions) []string {
	defaults := known.resent()
	maps.Copy(defaults, config.parameters)
	var found []string
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if value, overridden := o.parameters[name]; overridden && value != defaults[name] {
			found = append(found, fmt.Sprintf("%s=%s is for this deployment only: "+
				"the next one without it restores %s, unless its file changes", name, value, defaults[name]))
		}
	}
	return found
}

// templateFile is the part of a template that a deployment reads.
type templateFile struct {
	Parameters map[string]declaration `yaml:"Parameters"`
	Mappings   struct {
		Concurrency map[string]map[string]string `yaml:"Concurrency"` // by AccountConcurrency and function
	} `yaml:"Mappings"`
	Conditions map[string]yaml.Node `yaml:"Conditions"`
	Resources  map[string]struct {
		Type      string `yaml:"Type"`
		Condition string `yaml:"Condition"`
	} `yaml:"Resources"`
}

// dataTypes are the types of the resources that keep what a deployment must not lose.
var dataTypes = [...]string{"AWS::DynamoDB::Table", "AWS::SecretsManager::Secret", "AWS::KMS::Key",
	"AWS::Logs::LogGroup"}

// dataResources returns the resources with data that the stack makes only while a parameter is empty: their condition
// is of the form !Equals [!Ref Parameter, ""].
func (t templateFile) dataResources() []preflight.DataResource {
	var found []preflight.DataResource
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		resource := t.Resources[id]
		condition := t.Conditions[resource.Condition]
		if !slices.Contains(dataTypes[:], resource.Type) || condition.Tag != "!Equals" || len(condition.Content) != 2 {
			continue
		}
		if parameter, empty := condition.Content[0], condition.Content[1]; parameter.Tag == "!Ref" &&
			empty.Value == "" {
			found = append(found, preflight.DataResource{LogicalID: id, Parameter: parameter.Value})
		}
	}
	return found
}

type declaration struct {
	Default        string   `yaml:"Default"`
	AllowedPattern string   `yaml:"AllowedPattern"`
	AllowedValues  []string `yaml:"AllowedValues"`
	MinValue       *int     `yaml:"MinValue"`
	MaxValue       *int     `yaml:"MaxValue"`
}

func readTemplate(text []byte) (templateFile, error) {
	var t templateFile
	if err := yaml.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("template.yaml: %w", err)
	}
	return t, nil
}

// reservation returns the concurrency that a value of AccountConcurrency ("" for the default) reserves for a function,
// 0 for none.
func (t templateFile) reservation(accountConcurrency, function string) int {
	row := t.Mappings.Concurrency[cmp.Or(accountConcurrency, t.Parameters["AccountConcurrency"].Default)]
	reserved, _ := strconv.Atoi(row[function]) // not a number: none
	return reserved
}

func (t templateFile) checkParameter(name, value string) error {
	known, found := t.Parameters[name]
	if !found {
		return fmt.Errorf("template.yaml has no parameter %s", name)
	}
	if len(known.AllowedValues) > 0 && !slices.Contains(known.AllowedValues, value) {
		return fmt.Errorf("%s must be one of %s, not %q", name, strings.Join(known.AllowedValues, ", "), value)
	}
	if known.AllowedPattern != "" {
		pattern, err := regexp.Compile(known.AllowedPattern)
		if err != nil || !pattern.MatchString(value) {
			return fmt.Errorf("%s must match %s, not %q", name, known.AllowedPattern, value)
		}
	}
	if known.MinValue == nil && known.MaxValue == nil {
		return nil
	}
	number, err := strconv.Atoi(value)
	if err != nil || known.MinValue != nil && number < *known.MinValue || known.MaxValue != nil &&
		number > *known.MaxValue {
		return fmt.Errorf("%s must be a number within its limits, not %q", name, value)
	}
	return nil
}

// functions returns the logical ids of the functions in order. Each has a program in the bundle.
func (t templateFile) functions() []string {
	var found []string
	for name, resource := range t.Resources {
		if resource.Type == "AWS::Serverless::Function" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}
