// Package node reads the YAML nodes of template.yaml, without its anchors. A nil node is a missing value, and has
// nothing below it.
package node

import (
	"fmt"
	"iter"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Decode decodes a template's text. The nodes of the result have no alias and no merge key, as if each repeated part
// were written out. It supports a merge key of one mapping, whose keys the other mapping must not have.
func Decode(text []byte, into any) error {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	return expand(&document).Decode(into)
}

// expand replaces the aliases and merge keys below a node by what they repeat. It returns the node, or the node that an
// alias repeats.
func expand(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias // an earlier node, and so an expanded one
	}
	var content []*yaml.Node
	for i, item := range n.Content {
		item = expand(item)
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Tag == "!!merge" {
			content = append(content[:len(content)-1], item.Content...)
		} else {
			content = append(content, item)
		}
	}
	n.Content, n.Anchor = content, ""
	return n
}

// FirstError keeps the first error of a reader, so that its caller checks once. The reader's results after it have no
// meaning.
type FirstError struct{ Err error }

// Fail records an error at the line of a node, unless there is one already.
func (e *FirstError) Fail(n *yaml.Node, format string, args ...any) {
	if e.Err == nil {
		e.Err = fmt.Errorf("line %d: %w", n.Line, fmt.Errorf(format, args...))
	}
}

// Entries yields a mapping's keys and values in the order of the file; nil has none.
func Entries(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for entry := range slices.Chunk(n.Content, 2) {
			if !yield(entry[0].Value, entry[1]) {
				return
			}
		}
	}
}

// At returns the value below nested mappings, one key for each; nil if a key is missing.
func At(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var value *yaml.Node
		for name, found := range Entries(n) {
			if name == key {
				value = found
			}
		}
		n = value
	}
	return n
}

// Items lists the items of a sequence; nil has none.
func Items(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	return n.Content
}

// MakesData is the condition of the resources that template.yaml makes only if no other stack has them.
const MakesData = "MakesData"

// OwnResource returns the template's own resource, which is used if no parameter names another one. That is the last
// branch of !If [Condition, !Ref Parameter, own], and the first of !If [MakesData, own, other]. It returns another node
// as it is.
func OwnResource(n *yaml.Node) *yaml.Node {
	switch {
	case n == nil || n.Tag != "!If" || len(n.Content) != 3:
		return n
	case n.Content[0].Value == MakesData:
		return n.Content[1]
	case n.Content[1].Tag == "!Ref":
		return n.Content[2]
	}
	return n
}
