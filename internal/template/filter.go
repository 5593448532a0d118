package template

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Filter is one pattern of an event source. A record matches if each leaf of the pattern lists the value that the
// record has at the same place. Leaves are lists of texts, numbers, true, false and null; operators are not supported.
type Filter struct{ pattern map[string]any }

// NewFilter parses a pattern.
func NewFilter(pattern string) (Filter, error) {
	var f Filter
	if err := json.Unmarshal([]byte(pattern), &f.pattern); err != nil {
		return Filter{}, fmt.Errorf("a filter pattern is not a JSON object: %w", err)
	}
	return f, validatePattern(f.pattern)
}

// validatePattern rejects what Matches does not support.
func validatePattern(pattern map[string]any) error {
	for key, value := range pattern {
		switch v := value.(type) {
		case map[string]any:
			if err := validatePattern(v); err != nil {
				return err
			}
		case []any:
			isOperator := func(item any) bool { _, isObject := item.(map[string]any); return isObject }
			if slices.ContainsFunc(v, isOperator) {
				return fmt.Errorf("the filter operator at %q is not supported: use plain values", key)
			}
		default:
			return fmt.Errorf("the filter pattern's value at %q is not a list", key)
		}
	}
	return nil
}

// Matches reports whether a record, as decoded from JSON, matches the filter.
func (f Filter) Matches(record map[string]any) bool { return matchesPattern(f.pattern, record) }

func matchesPattern(pattern, record map[string]any) bool {
	for key, want := range pattern {
		actual, present := record[key]
		if allowed, isLeaf := want.([]any); isLeaf {
			if !present || !slices.Contains(allowed, actual) {
				return false
			}
			continue
		}
		inner, isObject := actual.(map[string]any)
		if !isObject || !matchesPattern(want.(map[string]any), inner) {
			return false
		}
	}
	return true
}
