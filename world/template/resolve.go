package template

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"mobilegateway/world/template/node"
)

// document is the template as it is written.
type document struct {
	Parameters map[string]struct {
		Default *string `yaml:"Default"`
	} `yaml:"Parameters"`
	Globals struct {
		Function yaml.Node `yaml:"Function"`
	} `yaml:"Globals"`
	Mappings   yaml.Node `yaml:"Mappings"`
	Conditions yaml.Node `yaml:"Conditions"`
	Resources  yaml.Node `yaml:"Resources"`
}

// resolver resolves values with intrinsic functions. A reader checks its error once per resource.
type resolver struct {
	node.FirstError
	references    map[string]string // Template.References
	resourceTypes map[string]string // by logical id
	mappings      yaml.Node
	conditions    yaml.Node
}

func newResolver(root *document, options Options) (*resolver, error) {
	r := &resolver{
		references: map[string]string{}, resourceTypes: map[string]string{},
		mappings: root.Mappings, conditions: root.Conditions,
	}
	for name, parameter := range root.Parameters {
		if parameter.Default != nil {
			r.references[name] = *parameter.Default
		}
	}
	for name, value := range options.Parameters {
		if _, known := root.Parameters[name]; !known {
			return nil, fmt.Errorf("the template has no parameter %s", name)
		}
		r.references[name] = value
	}
	for name, value := range map[string]string{
		"StackName": cmp.Or(options.StackName, "local"), "AccountId": "000000000000",
		"Region": cmp.Or(options.Region, "us-east-1"), "Partition": "aws", "URLSuffix": "amazonaws.com",
		"NoValue": "", // a property with it is missing, and so is one without a text
	} {
		r.references["AWS::"+name] = value
	}
	return r, r.nameResources(&root.Resources, options.TablePrefix)
}

// nameResources sets what a reference to each resource resolves to. That is the name in the template, else the logical
// id, with the prefix if it is a table.
func (r *resolver) nameResources(resources *yaml.Node, tablePrefix string) error {
	for id, resource := range node.Entries(resources) {
		r.references[id] = id
		if kind := node.At(resource, "Type"); kind != nil {
			r.resourceTypes[id] = kind.Value
		}
		if r.resourceTypes[id] == "AWS::DynamoDB::Table" {
			r.references[id] = tablePrefix + id
		}
	}
	for id, resource := range node.Entries(resources) {
		for _, property := range []string{"TableName", "Name", "LogGroupName", "FunctionName"} {
			if n := node.At(resource, "Properties", property); n != nil {
				r.references[id] = r.text(n)
			}
		}
		if r.Err != nil {
			return fmt.Errorf("%s: %w", id, r.Err)
		}
	}
	return nil
}

// text resolves a scalar, !Ref, !Sub, !FindInMap or !If to its text; nil is "".
func (r *resolver) text(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	switch {
	case n.Tag == "!If":
		return r.text(r.branch(n))
	case n.Tag == "!FindInMap":
		return r.text(r.mapped(n))
	case n.Kind != yaml.ScalarNode:
		r.Fail(n, "a text was expected")
	case n.Tag == "!Ref":
		return r.reference(n, n.Value)
	case n.Tag == "!Sub":
		return r.substitute(n)
	case strings.HasPrefix(n.Tag, "!!"):
		return n.Value
	default:
		r.Fail(n, "%s is not supported", n.Tag)
	}
	return ""
}

// number resolves a number; a missing one is the fallback.
func (r *resolver) number(n *yaml.Node, fallback float64) float64 {
	text := r.text(n)
	if text == "" {
		return fallback
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		r.Fail(n, "%q is not a number", text)
	}
	return value
}

// reference resolves the name of a parameter, a pseudo parameter or a resource.
func (r *resolver) reference(n *yaml.Node, name string) string {
	value, known := r.references[name]
	if !known {
		r.Fail(n, "%q refers to nothing, or to a parameter without a value", name)
	}
	return value
}

// subPlaceholder is one ${...} of !Sub.
var subPlaceholder = regexp.MustCompile(`\$\{([^!}][^}]*)\}`)

func (r *resolver) substitute(n *yaml.Node) string {
	return subPlaceholder.ReplaceAllStringFunc(n.Value, func(match string) string {
		return r.reference(n, match[2:len(match)-1])
	})
}

// branch selects the value of !If [Condition, then, else].
func (r *resolver) branch(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 3 {
		r.Fail(n, "!If needs a condition and two values")
		return nil
	}
	condition := node.At(&r.conditions, n.Content[0].Value)
	if condition == nil {
		r.Fail(n, "there is no condition %q", n.Content[0].Value)
		return nil
	}
	if r.isTrue(condition) {
		return n.Content[1]
	}
	return n.Content[2]
}

// mapped selects the value of !FindInMap [Mapping, key, key].
func (r *resolver) mapped(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 3 {
		r.Fail(n, "!FindInMap needs a mapping and two keys")
		return nil
	}
	keys := make([]string, len(n.Content))
	for i, key := range n.Content {
		keys[i] = r.text(key)
	}
	value := node.At(&r.mappings, keys...)
	if value == nil {
		r.Fail(n, "there is no mapping %s", strings.Join(keys, "/"))
	}
	return value
}

// isTrue evaluates a condition: !Equals of two texts, !Not of one condition, !And or !Or of several, or !Condition.
func (r *resolver) isTrue(n *yaml.Node) bool {
	isFalse := func(n *yaml.Node) bool { return !r.isTrue(n) }
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!Condition" && node.At(&r.conditions, n.Value) != nil:
		return r.isTrue(node.At(&r.conditions, n.Value))
	case n.Kind == yaml.SequenceNode && n.Tag == "!Or":
		return slices.ContainsFunc(n.Content, r.isTrue)
	case n.Kind == yaml.SequenceNode && n.Tag == "!And":
		return !slices.ContainsFunc(n.Content, isFalse)
	case n.Kind == yaml.SequenceNode && n.Tag == "!Not" && len(n.Content) == 1:
		return !r.isTrue(n.Content[0])
	case n.Kind == yaml.SequenceNode && n.Tag == "!Equals" && len(n.Content) == 2:
		return r.text(n.Content[0]) == r.text(n.Content[1])
	}
	r.Fail(n, "the condition %s is not supported", n.Tag)
	return false
}
