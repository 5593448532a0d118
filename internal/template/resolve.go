package template

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// account is the account number that resolved ARNs name.
const account = "000000000000"

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

// pair is one entry of a mapping.
type pair struct {
	key   string
	value *yaml.Node
}

// pairs lists a mapping's entries in the order of the file.
func pairs(n *yaml.Node) []pair {
	var list []pair
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, pair{key: n.Content[i].Value, value: n.Content[i+1]})
	}
	return list
}

// child finds an entry of a mapping; nil when there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	for _, p := range pairs(n) {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// resolver turns values with intrinsic functions into texts.
type resolver struct {
	parameters map[string]string
	pseudo     map[string]string
	types      map[string]string // resource types by logical id
	names      map[string]string // what Ref gives, by logical id
	conditions yaml.Node
	region     string
}

func newResolver(root *document, options Options) (*resolver, error) {
	if options.StackName == "" {
		options.StackName = "local"
	}
	if options.Region == "" {
		options.Region = "us-east-1"
	}
	r := &resolver{
		parameters: map[string]string{}, types: map[string]string{}, names: map[string]string{}, region: options.Region,
		conditions: root.Conditions,
		pseudo: map[string]string{
			"AWS::StackName": options.StackName, "AWS::Region": options.Region, "AWS::AccountId": account,
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
	for _, entry := range pairs(resources) {
		r.names[entry.key] = entry.key
		if kind := child(entry.value, "Type"); kind != nil {
			r.types[entry.key] = kind.Value
		}
		if r.types[entry.key] == "AWS::DynamoDB::Table" {
			r.names[entry.key] = tablePrefix + entry.key
		}
	}
	for _, entry := range pairs(resources) {
		properties := child(entry.value, "Properties")
		for _, property := range []string{"TableName", "Name", "LogGroupName", "FunctionName"} {
			n := child(properties, property)
			if n == nil {
				continue
			}
			name, err := r.text(n)
			if err != nil {
				return fmt.Errorf("%s: %w", entry.key, err)
			}
			r.names[entry.key] = name
		}
	}
	return nil
}

// text resolves a scalar, !Ref, !GetAtt, !Sub or !If; nil gives "".
func (r *resolver) text(n *yaml.Node) (string, error) {
	if n == nil {
		return "", nil
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 { // the long forms
		long := *n.Content[1]
		long.Tag = "!" + strings.TrimPrefix(n.Content[0].Value, "Fn::")
		return r.text(&long)
	}
	if n.Tag == "!If" {
		return r.choose(n)
	}
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("line %d: a text was expected", n.Line)
	}
	switch {
	case n.Tag == "!Ref":
		return r.ref(n.Value, n.Line)
	case n.Tag == "!GetAtt":
		return r.attribute(n.Value, n.Line)
	case n.Tag == "!Sub":
		return r.substitute(n.Value, n.Line)
	case strings.HasPrefix(n.Tag, "!!"):
		return n.Value, nil
	}
	return "", fmt.Errorf("line %d: %s is not understood", n.Line, n.Tag)
}

// ref resolves a parameter, a pseudo parameter or a resource.
func (r *resolver) ref(name string, line int) (string, error) {
	for _, values := range []map[string]string{r.parameters, r.pseudo, r.names} {
		if value, known := values[name]; known {
			return value, nil
		}
	}
	return "", fmt.Errorf("line %d: %q refers to nothing, or to a parameter without a value", line, name)
}

// attribute resolves Arn and StreamArn.
func (r *resolver) attribute(reference string, line int) (string, error) {
	id, attribute, _ := strings.Cut(reference, ".")
	name, known := r.names[id]
	if !known {
		return "", fmt.Errorf("line %d: %q refers to nothing", line, reference)
	}
	arn := "arn:aws:" + strings.ToLower(strings.Split(r.types[id], "::")[1]) + ":" + r.region + ":" + account + ":" + name
	switch attribute {
	case "Arn":
		return arn, nil
	case "StreamArn":
		return arn + "/stream", nil
	}
	return "", fmt.Errorf("line %d: the attribute of %q is not understood", line, reference)
}

// placeholder is one ${...} of !Sub.
var placeholder = regexp.MustCompile(`\$\{([^!}][^}]*)\}`)

func (r *resolver) substitute(text string, line int) (string, error) {
	var fault error
	resolved := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		name := match[2 : len(match)-1]
		resolve := r.ref
		if strings.Contains(name, ".") {
			resolve = r.attribute
		}
		value, err := resolve(name, line)
		if err != nil && fault == nil {
			fault = err
		}
		return value
	})
	return resolved, fault
}
