package template

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// resolveIf resolves !If [Condition, then, else].
func (r *resolver) resolveIf(n *yaml.Node) (string, error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 3 {
		return "", fmt.Errorf("line %d: !If needs a condition and two values", n.Line)
	}
	met, err := r.evaluateCondition(n.Content[0].Value, n.Line)
	if err != nil {
		return "", err
	}
	if met {
		return r.resolveText(n.Content[1])
	}
	return r.resolveText(n.Content[2])
}

// evaluateCondition tells whether a named condition holds.
func (r *resolver) evaluateCondition(name string, line int) (bool, error) {
	n := mappingValue(&r.conditions, name)
	if n == nil {
		return false, fmt.Errorf("line %d: there is no condition %q", line, name)
	}
	return r.evaluate(n)
}

// evaluate tells whether an expression does: !Equals of two texts, or !Not of one expression.
func (r *resolver) evaluate(n *yaml.Node) (bool, error) {
	if n.Kind == yaml.SequenceNode && n.Tag == "!Not" && len(n.Content) == 1 {
		inner, err := r.evaluate(n.Content[0])
		return !inner, err
	}
	if n.Kind == yaml.SequenceNode && n.Tag == "!Equals" && len(n.Content) == 2 {
		left, err := r.resolveText(n.Content[0])
		if err != nil {
			return false, err
		}
		right, err := r.resolveText(n.Content[1])
		return left == right, err
	}
	return false, fmt.Errorf("line %d: the condition %s is not understood", n.Line, strings.TrimPrefix(n.Tag, "!"))
}

// ownResource is what a reference is where no parameter names another: the last branch of !If [Condition, !Ref Parameter, own].
func ownResource(n *yaml.Node) *yaml.Node {
	if n != nil && n.Tag == "!If" && len(n.Content) == 3 && n.Content[1].Tag == "!Ref" {
		return n.Content[2]
	}
	return n
}
