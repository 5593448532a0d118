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
	// When is the template's condition under which the statement is there; "" for always.
	When string
}

// addRole reads a role of IAM. Permissions stand in the role itself, where a reviewer sees them: managed policies are an
// error.
func (t *Template) addRole(id string, properties *yaml.Node) error {
	role := Role{LogicalID: id}
	if managed := child(properties, "ManagedPolicyArns"); managed != nil {
		return fmt.Errorf("line %d: managed policies are not understood", managed.Line)
	}
	policies := child(properties, "Policies")
	if policies == nil {
		return fmt.Errorf("a role without policies")
	}
	for _, policy := range policies.Content {
		statements := child(child(policy, "PolicyDocument"), "Statement")
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
		statement.When, n = n.Content[0].Value, n.Content[1]
	}
	for _, entry := range pairs(n) {
		var err error
		switch entry.key {
		case "Effect":
			if entry.value.Value != "Allow" {
				err = fmt.Errorf("line %d: only Allow is understood", entry.value.Line)
			}
		case "Action":
			statement.Actions, err = list(entry.value, plain)
		case "Resource":
			statement.Resources, err = list(entry.value, named)
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

// list reads one value or a sequence of them.
func list(n *yaml.Node, read func(*yaml.Node) (string, error)) ([]string, error) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode && n.Tag != "!If" {
		nodes = n.Content
	}
	var values []string
	for _, one := range nodes {
		value, err := read(one)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func plain(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || !strings.HasPrefix(n.Tag, "!!") {
		return "", fmt.Errorf("line %d: a plain text was expected", n.Line)
	}
	return n.Value, nil
}

// inside is a reference to a resource with what follows its ARN.
var inside = regexp.MustCompile(`^\$\{([A-Za-z0-9]+)(\.Arn|\.StreamArn)?\}(/[^$]+)?$`)

// named gives what a reference refers to, and not what it resolves to.
func named(n *yaml.Node) (string, error) {
	n = own(n)
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
	parts := inside.FindStringSubmatch(text)
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
		if n := child(properties, key); n != nil {
			return fmt.Errorf("line %d: %s of a function: its permissions stand in its role", n.Line, key)
		}
	}
	if n := child(properties, "Role"); n != nil {
		role, err := named(n)
		if err != nil {
			return err
		}
		f.Role = role
	}
	if n := child(child(properties, "LoggingConfig"), "LogGroup"); n != nil {
		group, err := named(n)
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
