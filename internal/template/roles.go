package template

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Role is a role of its own that functions run under.
type Role struct {
	LogicalID  string
	Statements []Statement
}

// Statement allows actions on resources. There are no others: one that denies is an error.
type Statement struct {
	Actions []string
	// Resources are by logical id, with what follows a resource's own name behind it: LedgerTable,
	// LedgerTable/index/due, LedgerTable/stream. A parameter stands for itself, and "*" for everything.
	Resources []string
	// Condition is the template's condition under which the statement is there; "" for always.
	Condition string
}

// addRole reads a role of IAM. Permissions stand in the role itself, where a reviewer sees them: managed policies are an
// error.
func (t *Template) addRole(id string, properties *yaml.Node) error {
	role := Role{LogicalID: id}
	if managed := mappingValue(properties, "ManagedPolicyArns"); managed != nil {
		return fmt.Errorf("line %d: managed policies are not understood", managed.Line)
	}
	policies := mappingValue(properties, "Policies")
	if policies == nil {
		return fmt.Errorf("a role without policies")
	}
	for _, policy := range policies.Content {
		statements := mappingValue(mappingValue(policy, "PolicyDocument"), "Statement")
		if statements == nil {
			return fmt.Errorf("line %d: a policy without statements", policy.Line)
		}
		for _, n := range statements.Content {
			statement, err := readStatement(n)
			if err != nil {
				return err
			}
			role.Statements = append(role.Statements, statement)
		}
	}
	t.Roles = append(t.Roles, role)
	return nil
}

// readStatement reads a statement, or !If [Condition, statement, !Ref AWS::NoValue].
func readStatement(n *yaml.Node) (Statement, error) {
	var statement Statement
	if n.Tag == "!If" && len(n.Content) == 3 {
		if other := n.Content[2]; other.Tag != "!Ref" || other.Value != "AWS::NoValue" {
			return statement, fmt.Errorf("line %d: the other branch of a statement is not !Ref AWS::NoValue", other.Line)
		}
		statement.Condition, n = n.Content[0].Value, n.Content[1]
	}
	for _, entry := range mappingPairs(n) {
		var err error
		switch entry.key {
		case "Effect":
			if entry.value.Value != "Allow" {
				err = fmt.Errorf("line %d: only Allow is understood", entry.value.Line)
			}
		case "Action":
			statement.Actions, err = readList(entry.value, readPlainText)
		case "Resource":
			statement.Resources, err = readList(entry.value, referencedResource)
		case "Sid", "Condition": // a condition only takes away
		default:
			err = fmt.Errorf("line %d: %s is not understood", entry.value.Line, entry.key)
		}
		if err != nil {
			return statement, err
		}
	}
	if len(statement.Actions) == 0 || len(statement.Resources) == 0 {
		return statement, fmt.Errorf("line %d: a statement without an action or a resource", n.Line)
	}
	return statement, nil
}

// readList reads one value or a sequence of them.
func readList(n *yaml.Node, read func(*yaml.Node) (string, error)) ([]string, error) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode && n.Tag != "!If" {
		nodes = n.Content
	}
	var values []string
	for _, item := range nodes {
		value, err := read(item)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func readPlainText(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || !strings.HasPrefix(n.Tag, "!!") {
		return "", fmt.Errorf("line %d: a plain text was expected", n.Line)
	}
	return n.Value, nil
}

// resourceReference is a reference to a resource with what follows its ARN.
var resourceReference = regexp.MustCompile(`^\$\{([A-Za-z0-9]+)(\.Arn|\.StreamArn)?\}(/[^$]+)?$`)

// referencedResource gives what a reference refers to, and not what it resolves to.
func referencedResource(n *yaml.Node) (string, error) {
	n = ownResource(n)
	text := n.Value
	switch n.Tag {
	case "!Ref":
		return text, nil
	case "!GetAtt":
		text = "${" + text + "}"
	case "!Sub":
	default:
		if text == "*" {
			return text, nil
		}
		return "", fmt.Errorf("line %d: a resource is a reference or \"*\"", n.Line)
	}
	parts := resourceReference.FindStringSubmatch(text)
	if parts == nil {
		return "", fmt.Errorf("line %d: %q is not understood as a resource", n.Line, n.Value)
	}
	if parts[2] == ".StreamArn" {
		parts[1] += "/stream"
	}
	return parts[1] + parts[3], nil
}

// readRole reads under which role a function runs and where its log goes.
func (f *Function) readRole(properties *yaml.Node) error {
	for _, key := range []string{"Policies", "PermissionsBoundary"} {
		if n := mappingValue(properties, key); n != nil {
			return fmt.Errorf("line %d: %s of a function: its permissions stand in its role", n.Line, key)
		}
	}
	if n := mappingValue(properties, "Role"); n != nil {
		role, err := referencedResource(n)
		if err != nil {
			return err
		}
		f.Role = role
	}
	if n := mappingValue(mappingValue(properties, "LoggingConfig"), "LogGroup"); n != nil {
		group, err := referencedResource(n)
		if err != nil {
			return err
		}
		f.LogGroup = group
	}
	return nil
}

// Role finds a role by its logical id; nil when there is none.
func (t *Template) Role(logicalID string) *Role {
	for i := range t.Roles {
		if t.Roles[i].LogicalID == logicalID {
			return &t.Roles[i]
		}
	}
	return nil
}
