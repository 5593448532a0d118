package dynamodb

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expression is a parsed expression of any kind. It is immutable.
type expression struct {
	names, values []string // "#name" and ":value" that it mentions
	condition     predicate
	updates       []assignment
	paths         []string          // of a projection
	equalities    map[string]string // the paths that are compared with "=", and their ":value"
	ranges        [][2]string       // the two ":value" of each BETWEEN
}

type (
	predicate func(*scope) bool
	operand   func(*scope) types.AttributeValue // nil if the attribute is absent
)

// assignment sets an attribute.
type assignment struct {
	path  string
	value operand
}

// scope has what an expression is evaluated with. err keeps the first error.
type scope struct {
	item   Item
	names  map[string]string
	values Item
	err    error
}

// name returns the attribute's name of a path.
func (s *scope) name(path string) string {
	if path[0] == '#' {
		return s.names[path]
	}
	return path
}

func (s *scope) fail(message string) {
	if s.err == nil {
		s.err = validationError(message)
	}
}

// matches evaluates a condition; nil is true.
func (e *expression) matches(s *scope, item Item) bool {
	if e == nil {
		return true
	}
	s.item = item
	return e.condition(s)
}

// update returns a changed copy of an item. Every operand reads the old item.
func (e *expression) update(s *scope, old, key Item) (next Item, changed []string, err error) {
	s.item = old
	next = make(Item, len(old)+len(e.updates)+len(key))
	maps.Copy(next, old)
	maps.Copy(next, key)
	for _, a := range e.updates {
		name := s.name(a.path)
		changed = append(changed, name)
		value := a.value(s)
		if value == nil {
			s.fail("The provided expression refers to an attribute that does not exist in the item")
		}
		next[name] = value
	}
	return next, changed, s.err
}

// checkUpdates refuses an update of a key, and two updates of one attribute.
func (e *expression) checkUpdates(s *scope, keyAttribute string) error {
	var seen []string
	for _, a := range e.updates {
		name := s.name(a.path)
		if name == keyAttribute {
			return validationError("Cannot update attribute " + name + ". This attribute is part of the key")
		}
		if slices.Contains(seen, name) {
			return validationError("Two document paths overlap with each other: " + name)
		}
		seen = append(seen, name)
	}
	return nil
}

// project returns the attributes of item that a projection names; nil selects all. item has attributes of version. The
// result is a copy if it has binary attributes; the values of all others never change.
func (e *expression) project(s *scope, version *stored, item Item) Item {
	if e == nil && len(version.binary) == 0 {
		return item
	}
	if e == nil {
		return version.copyBinary(maps.Clone(item))
	}
	selected := make(Item, len(e.paths))
	for _, path := range e.paths {
		if value := item[s.name(path)]; value != nil {
			selected[s.name(path)] = value
		}
	}
	return version.copyBinary(selected)
}

// source is the text of an expression in a request, nil for none.
type source struct {
	kind string
	text *string
}

// bind parses the expressions of a request, and checks its names and values against them. Without a text the parsed
// expression is nil.
func (db *Database) bind(
	names map[string]string, values Item, sources ...source,
) (s *scope, expressions []*expression, err error) {
	s = &scope{names: names, values: values}
	if _, _, err := checkValues(values); err != nil {
		return nil, nil, err
	}
	for _, from := range sources {
		e, err := db.parse(from)
		if err == nil && e != nil {
			err = e.checkDefined(s)
		}
		if err != nil {
			return nil, nil, err
		}
		expressions = append(expressions, e)
	}
	used := func(list func(*expression) []string, name string) bool {
		return slices.ContainsFunc(expressions, func(e *expression) bool {
			return e != nil && slices.Contains(list(e), name)
		})
	}
	for name := range names {
		if !used(func(e *expression) []string { return e.names }, name) {
			return nil, nil, unusedError("ExpressionAttributeNames", name)
		}
	}
	for value := range values {
		if !used(func(e *expression) []string { return e.values }, value) {
			return nil, nil, unusedError("ExpressionAttributeValues", value)
		}
	}
	return s, expressions, nil
}

func unusedError(parameter, name string) error {
	return validationError("Value provided in " + parameter + " unused in expressions: " + name)
}

// checkDefined refuses undefined names and values, and a BETWEEN whose bounds are reversed or of different types.
func (e *expression) checkDefined(s *scope) error {
	for _, name := range e.names {
		if _, defined := s.names[name]; !defined {
			return validationError("An expression attribute name used in the document path is not defined: " + name)
		}
	}
	for _, value := range e.values {
		if s.values[value] == nil {
			return validationError("An expression attribute value used in expression is not defined: " + value)
		}
	}
	for _, bounds := range e.ranges {
		order, comparable := compareValues(s.values[bounds[0]], s.values[bounds[1]])
		if !comparable || order > 0 {
			return validationError(
				"The BETWEEN operator requires upper bound to be greater than or equal to lower bound")
		}
	}
	return nil
}
