// Package roles reads the permissions of the functions in template.yaml. No program needs them: tests compare them with
// the calls that the functions make.
package roles

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"mobilegateway/world/template"
	"mobilegateway/world/template/node"
)

// Template is what a template says about permissions. Each list is in the order of the file.
type Template struct {
	Functions []Function
	Roles     []Role
}

// Function is a function with the logical ids of its role and of its log group; "" if the template leaves them to AWS.
type Function struct {
	template.Function
	Role, LogGroup string
}

// Role is an IAM role that functions run under.
type Role struct {
	LogicalID  string
	Statements []Statement
}

// Statement allows actions on resources. A statement that denies is an error of the template.
type Statement struct {
	Actions []string
	// Resources are logical ids, followed by what the ARN has after the resource's name: LedgerTable,
	// LedgerTable/index/due, LedgerTable/stream. A parameter is its own name, and "*" is every resource.
	Resources []string
	// Condition is the template's condition for the statement; "" for always.
	Condition string
	// Kinds are the kinds of items that the statement allows (dynamodb:LeadingKeys): charge for "charge#*". None allows
	// every item.
	Kinds []string
	// Requires are the statement's other conditions of IAM, each as its operator, its key and its values.
	Requires []string
}

// Load reads a template file. Its error names the file and, if it can, the line.
func Load(path string) (*Template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	t, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Parse reads a template's text.
func Parse(text []byte) (*Template, error) {
	whole, err := template.Parse(text, template.Options{})
	if err != nil {
		return nil, err
	}
	var root struct {
		Resources yaml.Node `yaml:"Resources"`
	}
	if err := node.Decode(text, &root); err != nil {
		return nil, err
	}
	t, r := &Template{}, &reader{}
	for _, f := range whole.Functions {
		t.Functions = append(t.Functions, r.readFunction(f, node.At(&root.Resources, f.LogicalID, "Properties")))
	}
	for id, resource := range node.Entries(&root.Resources) {
		if kind := node.At(resource, "Type"); kind != nil && kind.Value == "AWS::IAM::Role" {
			t.Roles = append(t.Roles, r.readRole(id, node.At(resource, "Properties")))
		}
	}
	return t, r.Err
}

// Role finds a role by its logical id; nil if there is none.
func (t *Template) Role(logicalID string) *Role {
	i := slices.IndexFunc(t.Roles, func(role Role) bool { return role.LogicalID == logicalID })
	if i < 0 {
		return nil
	}
	return &t.Roles[i]
}

// reader reads the permissions. Parse checks its error once.
type reader struct{ node.FirstError }

// readFunction reads what a function has. Its permissions must be in its role.
func (r *reader) readFunction(f template.Function, properties *yaml.Node) Function {
	for _, key := range []string{"Policies", "PermissionsBoundary"} {
		if n := node.At(properties, key); n != nil {
			r.Fail(n, "a function has %s: put its permissions into its role", key)
		}
	}
	return Function{f, r.resourceAt(properties, "Role"), r.resourceAt(properties, "LoggingConfig", "LogGroup")}
}

// readRole reads an IAM role. Its permissions must be in the role itself, where a reviewer sees them.
func (r *reader) readRole(id string, properties *yaml.Node) Role {
	role := Role{LogicalID: id}
	if managed := node.At(properties, "ManagedPolicyArns"); managed != nil {
		r.Fail(managed, "managed policies are not supported: put the permissions into the role")
	}
	policies := node.At(properties, "Policies")
	if policies == nil {
		r.Fail(properties, "a role without policies")
	}
	for _, policy := range node.Items(policies) {
		statements := node.At(policy, "PolicyDocument", "Statement")
		if statements == nil {
			r.Fail(policy, "a policy without statements")
		}
		for _, n := range node.Items(statements) {
			role.Statements = append(role.Statements, r.readStatement(n))
		}
	}
	return role
}

// readStatement reads a statement, or !If [Condition, statement, !Ref AWS::NoValue].
func (r *reader) readStatement(n *yaml.Node) Statement {
	var statement Statement
	if n.Tag == "!If" && len(n.Content) == 3 {
		if other := n.Content[2]; other.Tag != "!Ref" || other.Value != "AWS::NoValue" {
			r.Fail(other, "the other branch of a statement is not !Ref AWS::NoValue")
		}
		statement.Condition, n = n.Content[0].Value, n.Content[1]
	}
	for name, element := range node.Entries(n) {
		switch name {
		case "Effect":
			if element.Value != "Allow" {
				r.Fail(element, "only Allow is supported")
			}
		case "Action":
			statement.Actions = readList(element, r.plainText)
		case "Resource":
			statement.Resources = readList(element, r.resource)
		case "Condition":
			r.readConditions(element, &statement)
		case "Sid":
		default:
			r.Fail(element, "%s is not supported", name)
		}
	}
	if len(statement.Actions) == 0 || len(statement.Resources) == 0 {
		r.Fail(n, "a statement without an action or a resource")
	}
	return statement
}

// leadingKeys is the condition on the partition keys of a call's items. ForAllValues is true for a call without a key,
// but each action that the roles allow under it has one.
const leadingKeys = "ForAllValues:StringLike dynamodb:LeadingKeys"

// kindPattern is a pattern of all keys of one kind.
var kindPattern = regexp.MustCompile(`^([a-z]+)#\*$`)

// readConditions reads the conditions of IAM. All of them must be true for a call.
func (r *reader) readConditions(n *yaml.Node, to *Statement) {
	for operator, keys := range node.Entries(n) {
		for key, values := range node.Entries(keys) {
			name, texts := operator+" "+key, readList(values, func(n *yaml.Node) string { return n.Value })
			if name != leadingKeys {
				to.Requires = append(to.Requires, name+" "+strings.Join(texts, " "))
				continue
			}
			for _, pattern := range texts {
				kind := kindPattern.FindStringSubmatch(pattern)
				if kind == nil {
					r.Fail(values, "the pattern %q is not supported: write the kind and #*", pattern)
					return
				}
				to.Kinds = append(to.Kinds, kind[1])
			}
		}
	}
}

// readList reads one value or a sequence of them.
func readList(n *yaml.Node, read func(*yaml.Node) string) []string {
	nodes := []*yaml.Node{n}
	if n.Tag == "!!seq" {
		nodes = n.Content
	}
	var values []string
	for _, item := range nodes {
		values = append(values, read(item))
	}
	return values
}

func (r *reader) plainText(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || !strings.HasPrefix(n.Tag, "!!") {
		r.Fail(n, "a plain text was expected")
	}
	return n.Value
}

// resourceReference is a reference to a resource with what follows its ARN.
var resourceReference = regexp.MustCompile(`^\$\{([A-Za-z0-9]+)(\.Arn|\.StreamArn)?\}(/[^$]+)?$`)

// resource returns the resource that a reference names, in the form of Statement.Resources.
func (r *reader) resource(n *yaml.Node) string {
	n = node.OwnResource(n)
	text := n.Value
	switch {
	case n.Tag == "!Ref", text == "*":
		return text
	case n.Tag == "!GetAtt":
		text = "${" + text + "}"
	case n.Tag == "!Sub" && n.Kind == yaml.SequenceNode && len(n.Content) == 2:
		return r.substituted(n.Content[0].Value, n.Content[1])
	case n.Tag != "!Sub":
		r.Fail(n, "a resource is a reference or \"*\"")
		return ""
	}
	parts := resourceReference.FindStringSubmatch(text)
	if parts == nil {
		r.Fail(n, "the resource %q is not supported", n.Value)
		return ""
	}
	if parts[2] == ".StreamArn" {
		parts[1] += "/stream"
	}
	return parts[1] + parts[3]
}

// ownLogs is the ARN of all log groups whose names begin with the stack's name, without what follows that name.
const ownLogs = "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/${AWS::StackName}"

// substituted returns the resource of !Sub [text, {Name: reference}]. A function's log group has the function's name.
func (r *reader) substituted(text string, references *yaml.Node) string {
	for name, reference := range node.Entries(references) {
		operation, isLog := strings.CutSuffix(strings.TrimPrefix(text, "${"+name+"}/"), ":*")
		if isLog && reference.Value == ownLogs && operation != "" {
			return strings.ToUpper(operation[:1]) + operation[1:] + "LogGroup"
		}
		text = strings.ReplaceAll(text, "${"+name+"}", r.resource(reference))
	}
	return text
}

// resourceAt is resource of the value below nested mappings; "" if it is missing.
func (r *reader) resourceAt(n *yaml.Node, keys ...string) string {
	n = node.At(n, keys...)
	if n == nil {
		return ""
	}
	return r.resource(n)
}
