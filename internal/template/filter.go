package template

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Filter is one pattern of an event source: a record passes where every leaf of the pattern finds one of its values at
// the same place. Values are plain texts, numbers, true, false and null, and {"prefix":...}, {"exists":...},
// {"anything-but":[...]}; other operators are refused when the template is read.
type Filter struct{ pattern map[string]any }

// readFilters reads FilterCriteria's list.
func readFilters(list *yaml.Node) ([]Filter, error) {
	var filters []Filter
	if list == nil {
		return nil, nil
	}
	for _, n := range list.Content {
		text := child(n, "Pattern")
		if text == nil {
			return nil, fmt.Errorf("line %d: a filter without a pattern", n.Line)
		}
		filter, err := NewFilter(text.Value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", text.Line, err)
		}
		filters = append(filters, filter)
	}
	return filters, nil
}

// NewFilter parses a pattern.
func NewFilter(pattern string) (Filter, error) {
	var f Filter
	if err := json.Unmarshal([]byte(pattern), &f.pattern); err != nil {
		return Filter{}, fmt.Errorf("a filter pattern is not a JSON object: %w", err)
	}
	return f, check(f.pattern)
}

// check refuses what Passes could not judge.
func check(pattern map[string]any) error {
	for key, value := range pattern {
		switch v := value.(type) {
		case map[string]any:
			if err := check(v); err != nil {
				return err
			}
		case []any:
			for _, item := range v {
				operator, isOperator := item.(map[string]any)
				if isOperator && !understood(operator) {
					return fmt.Errorf("the filter operator at %q is not understood", key)
				}
			}
		default:
			return fmt.Errorf("the filter pattern's value at %q is not a list", key)
		}
	}
	return nil
}

func understood(operator map[string]any) bool {
	if len(operator) != 1 {
		return false
	}
	for name, operand := range operator {
		switch name {
		case "prefix":
			_, ok := operand.(string)
			return ok
		case "exists":
			_, ok := operand.(bool)
			return ok
		case "anything-but":
			_, ok := operand.([]any)
			return ok
		}
	}
	return false
}

// Passes tells whether a record, as decoded from JSON, passes the filter.
func (f Filter) Passes(record map[string]any) bool { return passes(f.pattern, record) }

func passes(pattern, record map[string]any) bool {
	for key, want := range pattern {
		got, present := record[key]
		switch w := want.(type) {
		case map[string]any:
			inner, _ := got.(map[string]any) // absent: only {"exists":false} can pass below
			if !passes(w, inner) {
				return false
			}
		case []any:
			if !anyOf(w, got, present) {
				return false
			}
		}
	}
	return true
}

// anyOf tells whether one of a leaf's values is met.
func anyOf(wanted []any, got any, present bool) bool {
	for _, want := range wanted {
		operator, isOperator := want.(map[string]any)
		if !isOperator {
			if present && got == want {
				return true
			}
			continue
		}
		if met(operator, got, present) {
			return true
		}
	}
	return false
}

func met(operator map[string]any, got any, present bool) bool {
	if exists, ok := operator["exists"].(bool); ok {
		return exists == present
	}
	if prefix, ok := operator["prefix"].(string); ok {
		text, isText := got.(string)
		return isText && strings.HasPrefix(text, prefix)
	}
	if others, ok := operator["anything-but"].([]any); ok {
		for _, other := range others {
			if got == other {
				return false
			}
		}
		return present
	}
	return false
}
