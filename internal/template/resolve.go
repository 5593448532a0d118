package template

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// accountID is the account number that resolved ARNs name.
const accountID = "000000000000"

// document is the template as it is written.
type document struct {
	Parameters map[string]struct {
		Default *string `yaml:"Default"`
	} `yaml:"Parameters"`
	Globals struct {
		Function yaml.Node `yaml:"Function"`
	} `yaml:"Globals"`
	Conditions yaml.Node `yaml:"Conditions"`
	Resources  yaml.Node `yaml:"Resources"`
}

// mappingPair is one entry of a mapping.
type mappingPair struct {
	key   string
	value *yaml.Node
}

// mappingPairs lists a mapping's entries in the order of the file.
func mappingPairs(n *yaml.Node) []mappingPair {
	var list []mappingPair
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, mappingPair{key: n.Content[i].Value, value: n.Content[i+1]})
	}
	return list
}

// mappingValue finds an entry of a mapping; nil when there is none.
func mappingValue(n *yaml.Node, key string) *yaml.Node {
	for _, p := range mappingPairs(n) {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// resolver turns values with intrinsic functions into texts.
type resolver struct {
	parameters       map[string]string
	pseudoParameters map[string]string
	resourceTypes    map[string]string // resource types by logical id
	resourceNames    map[string]string // what Ref gives, by logical id
	conditions       yaml.Node
	region           string
}

func newResolver(root *document, options Options) (*resolver, error) {
	if options.StackName == "" {
		options.StackName = "local"
	}
	if options.Region == "" {
		options.Region = "us-east-1"
	}
	r := &resolver{
		parameters: map[string]string{}, resourceTypes: map[string]string{}, resourceNames: map[string]string{}, region: options.Region,
		conditions: root.Conditions,
		pseudoParameters: map[string]string{
			"AWS::StackName": options.StackName, "AWS::Region": options.Region, "AWS::AccountId": accountID,
			"AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com",
		},
	}
	for name, parameter := range root.Parameters {
		if parameter.Default != nil {
			r.parameters[name] = *parameter.Default
		}
	}
	for name, value := range options.Parameters {
		if _, known := root.Parameters[name]; !known {
			return nil, fmt.Errorf("parameter %s is not one of the template's", name)
		}
		r.parameters[name] = value
	}
	return r, r.nameResources(&root.Resources, options.TablePrefix)
}

// nameResources gives every resource the name that a reference to it resolves to: its own name where the template gives
// one, else its logical id, after the prefix where it is a table.
func (r *resolver) nameResources(resources *yaml.Node, tablePrefix string) error {
	for _, entry := range mappingPairs(resources) {
		r.resourceNames[entry.key] = entry.key
		if kind := mappingValue(entry.value, "Type"); kind != nil {
			r.resourceTypes[entry.key] = kind.Value
		}
		if r.resourceTypes[entry.key] == "AWS::DynamoDB::Table" {
			r.resourceNames[entry.key] = tablePrefix + entry.key
		}
	}
	for _, entry := range mappingPairs(resources) {
		properties := mappingValue(entry.value, "Properties")
		for _, property := range []string{"TableName", "Name", "LogGroupName", "FunctionName"} {
			n := mappingValue(properties, property)
			if n == nil {
				continue
			}
			name, err := r.resolveText(n)
			if err != nil {
				return fmt.Errorf("%s: %w", entry.key, err)
			}
			r.resourceNames[entry.key] = name
		}
	}
	return nil
}

// resolveText resolves a scalar, !Ref, !GetAtt, !Sub or !If; nil gives "".
func (r *resolver) resolveText(n *yaml.Node) (string, error) {
	if n == nil {
		return "", nil
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 { // the long forms
		expanded := *n.Content[1]
		expanded.Tag = "!" + strings.TrimPrefix(n.Content[0].Value, "Fn::")
		return r.resolveText(&expanded)
	}
	if n.Tag == "!If" {
		return r.resolveIf(n)
	}
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("line %d: a text was expected", n.Line)
	}
	switch {
	case n.Tag == "!Ref":
		return r.resolveRef(n.Value, n.Line)
	case n.Tag == "!GetAtt":
		return r.resolveGetAtt(n.Value, n.Line)
	case n.Tag == "!Sub":
		return r.resolveSub(n.Value, n.Line)
	case strings.HasPrefix(n.Tag, "!!"):
		return n.Value, nil
	}
	return "", fmt.Errorf("line %d: %s is not understood", n.Line, n.Tag)
}

// resolveRef resolves a parameter, a pseudo parameter or a resource.
func (r *resolver) resolveRef(name string, line int) (string, error) {
	for _, values := range []map[string]string{r.parameters, r.pseudoParameters, r.resourceNames} {
		if value, known := values[name]; known {
			return value, nil
		}
	}
	return "", fmt.Errorf("line %d: %q refers to nothing, or to a parameter without a value", line, name)
}

// resolveGetAtt resolves Arn and StreamArn.
func (r *resolver) resolveGetAtt(reference string, line int) (string, error) {
	id, attribute, _ := strings.Cut(reference, ".")
	name, known := r.resourceNames[id]
	if !known {
		return "", fmt.Errorf("line %d: %q refers to nothing", line, reference)
	}
	arn := "arn:aws:" + strings.ToLower(strings.Split(r.resourceTypes[id], "::")[1]) + ":" + r.region + ":" + accountID + ":" + name
	switch attribute {
	case "Arn":
		return arn, nil
	case "StreamArn":
		return arn + "/stream", nil
	}
	return "", fmt.Errorf("line %d: the attribute of %q is not understood", line, reference)
}

// subPlaceholder is one ${...} of !Sub.
var subPlaceholder = regexp.MustCompile(`\$\{([^!}][^}]*)\}`)

func (r *resolver) resolveSub(text string, line int) (string, error) {
	var resolveErr error
	resolved := subPlaceholder.ReplaceAllStringFunc(text, func(match string) string {
		name := match[2 : len(match)-1]
		resolve := r.resolveRef
		if strings.Contains(name, ".") {
			resolve = r.resolveGetAtt
		}
		value, err := resolve(name, line)
		if err != nil && resolveErr == nil {
			resolveErr = err
		}
		return value
	})
	return resolved, resolveErr
}
