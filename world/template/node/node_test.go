package node_test

import (
	"testing"

	"go.yaml.in/yaml/v3"

	"mobilegateway/world/template/node"
)

// TestRepeatedParts: an alias and a merge key read as the part that they repeat, at every depth.
func TestRepeatedParts(t *testing.T) {
	const repeating, plain = `
A: &a {<<: &base {Type: T, Key: &key !If [X, {K: 1}, !Ref N]}, Properties: {P: *key}}
B: {<<: *base, Properties: {List: [*a, *key]}}
`, `
A: {Type: T, Key: !If [X, {K: 1}, !Ref N], Properties: {P: !If [X, {K: 1}, !Ref N]}}
B: {Type: T, Key: !If [X, {K: 1}, !Ref N], Properties: {List: [
  {Type: T, Key: !If [X, {K: 1}, !Ref N], Properties: {P: !If [X, {K: 1}, !Ref N]}}, !If [X, {K: 1}, !Ref N]]}}
`
	texts := map[string]string{}
	for name, text := range map[string]string{"repeating": repeating, "plain": plain} {
		var document yaml.Node
		if err := node.Decode([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		texts[name] = describe(&document)
	}
	if texts["repeating"] != texts["plain"] {
		t.Errorf("read as\n%s\nwant\n%s", texts["repeating"], texts["plain"])
	}
	var twice struct {
		A map[string]string `yaml:"A"`
	}
	if err := node.Decode([]byte("A: {<<: &base {Type: T}, Type: U}"), &twice); err == nil {
		t.Errorf("a key that is merged and written is read as %q", twice.A["Type"])
	}
}

// describe writes the kinds, tags and values of a node and of all below it.
func describe(n *yaml.Node) string {
	text := n.Tag + " " + n.Value + "("
	for _, item := range n.Content {
		text += describe(item) + ","
	}
	return text + ")"
}
