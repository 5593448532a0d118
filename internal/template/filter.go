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
		text := mappingValue(n, "Pattern")
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
	return f, validatePattern(f.pattern)
}

// validatePattern refuses what Passes could not judge.
func validatePattern(pattern map[string]any) error {
	for key, value := range pattern {
		switch v := value.(type) {
		case map[string]any:
			if err := validatePattern(v); err != nil {
				return err
			}
		case []any:
			for _, item := range v {
				operator, isOperator := item.(map[string]any)
				if isOperator && !isSupportedOperator(operator) {
					return fmt.Errorf("the filter operator at %q is not understood", key)
				}
			}
		default:
			return fmt.Errorf("the filter pattern's value at %q is not a list", key)
		}
	}
	return nil
}

func isSupportedOperator(operator map[string]any) bool {
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

// Matches tells whether a record, as decoded from JSON, passes the filter.
func (f Filter) Matches(record map[string]any) bool { return matchesPattern(f.pattern, record) }

func matchesPattern(pattern, record map[string]any) bool {
	for key, want := range pattern {
		actual, present := record[key]
		switch w := want.(type) {
		case map[string]any:
			inner, _ := actual.(map[string]any) // absent: only {"exists":false} can pass below
			if !matchesPattern(w, inner) {
				return false
			}
		case []any:
			if !matchesAny(w, actual, present) {
				return false
			}
		}
	}
	return true
}

// matchesAny tells whether one of a leaf's values is met.
func matchesAny(allowedValues []any, actual any, present bool) bool {
	for _, want := range allowedValues {
		operator, isOperator := want.(map[string]any)
		if !isOperator {
			if present && actual == want {
				return true
			}
			continue
		}
		if matchesOperator(operator, actual, present) {
			return true
		}
	}
	return false
}

func matchesOperator(operator map[string]any, actual any, present bool) bool {
	if exists, ok := operator["exists"].(bool); ok {
		return exists == present
	}
	if prefix, ok := operator["prefix"].(string); ok {
		text, isText := actual.(string)
		return isText && strings.HasPrefix(text, prefix)
	}
	if others, ok := operator["anything-but"].([]any); ok {
		for _, other := range others {
			if actual == other {
				return false
			}
		}
		return present
	}
	return false
}
