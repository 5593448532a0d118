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

// scope has what an expression is evaluated with.
type scope struct {
	item   Item
	names  map[string]string
	values Item
}

// name returns the attribute's name of a path.
func (s *scope) name(path string) string {
	if path[0] == '#' {
		return s.names[path]
	}
	return path
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
func (e *expression) update(s *scope, old, key Item) (next Item, changed []string) {
	s.item = old
	next = make(Item, len(old)+len(e.updates)+len(key))
	maps.Copy(next, old)
	maps.Copy(next, key)
	for _, a := range e.updates {
		name := s.name(a.path)
		changed = append(changed, name)
		value := a.value(s)
		if value == nil {
			refuse("the update of %s refers to an attribute that the item does not have", name)
		}
		next[name] = value
	}
	return next, changed
}

// checkUpdates refuses an update of a key, and two updates of one attribute.
func (e *expression) checkUpdates(s *scope, keyAttribute string) {
	var seen []string
	for _, a := range e.updates {
		name := s.name(a.path)
		if name == keyAttribute || slices.Contains(seen, name) {
			refuse("the update of %s, a part of the key or updated twice", name)
		}
		seen = append(seen, name)
	}
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
func (db *Database) bind(names map[string]string, values Item, sources ...source) (*scope, []*expression) {
	s, expressions := &scope{names: names, values: values}, make([]*expression, len(sources))
	checkValues(values)
	var mentioned []string
	for i, from := range sources {
		if e := db.parse(from); e != nil {
			e.checkDefined(s)
			expressions[i], mentioned = e, slices.Concat(mentioned, e.names, e.values)
		}
	}
	for name := range names {
		if !slices.Contains(mentioned, name) {
			refuse("no expression has the name %s", name)
		}
	}
	for value := range values {
		if !slices.Contains(mentioned, value) {
			refuse("no expression has the value %s", value)
		}
	}
	return s, expressions
}

// checkDefined refuses undefined names and values, and a BETWEEN whose bounds are reversed or of different types.
func (e *expression) checkDefined(s *scope) {
	for _, name := range e.names {
		if _, defined := s.names[name]; !defined {
			refuse("the name %s is not defined", name)
		}
	}
	for _, value := range e.values {
		if s.values[value] == nil {
			refuse("the value %s is not defined", value)
		}
	}
	for _, bounds := range e.ranges {
		order, comparable := compareValues(s.values[bounds[0]], s.values[bounds[1]])
		if !comparable || order > 0 {
			refuse("the lower bound %s of a BETWEEN is above %s", bounds[0], bounds[1])
		}
	}
}
