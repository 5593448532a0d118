package contract_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/contract"
)

// plain visits every schema of a part of the document that generators of clients make types of. What only narrows a value
// (if, then, else, not), examples and extensions are none.
func plain(part any, path string, visit func(path string, schema contract.Object)) {
	switch part := part.(type) {
	case contract.Object:
		visit(path, part)
		for key, inner := range part {
			narrows := slices.Contains([]string{"if", "then", "else", "not", "example", "examples", "value"}, key) && !strings.HasSuffix(path, "/properties")
			if extension := strings.HasPrefix(key, "x-") && key != "x-amzn-requestid"; !narrows && !extension {
				plain(inner, path+"/"+key, visit)
			}
		}
	case []any:
		for _, inner := range part {
			plain(inner, path+"/-", visit)
		}
	}
}

// TestPlain asks for a document that the common generators of clients can use: each of these forms made one of them refuse
// the document, leave out a type or write code that does not compile. `make contract` runs them.
func TestPlain(t *testing.T) {
	d := load(t)
	plain(d.Root(), "#", func(path string, schema contract.Object) {
		inner, _ := schema["properties"].(contract.Object)
		for name, property := range inner {
			if _, isSchema := property.(contract.Object); !isSchema {
				t.Errorf("%s: %s is no schema but %v", path, name, property)
			}
		}
		for _, rule := range []string{"enum", "const", "pattern", "minLength", "maxLength", "multipleOf"} {
			_, has := schema[rule]
			if _, named := schema["$ref"]; has && schema["type"] == nil && !named && !strings.HasSuffix(path, "/properties") {
				t.Errorf("%s has %s and no type", path, rule)
			}
		}
		for _, several := range []string{"oneOf", "anyOf"} {
			branches := asList(schema[several])
			if len(branches) > 0 && (schema["type"] != nil || schema["pattern"] != nil) {
				t.Errorf("%s has %s beside rules of its own", path, several)
			}
			for _, branch := range branches {
				if branch.(contract.Object)["type"] == "array" {
					t.Errorf("%s: %s has an array", path, several)
				}
			}
		}
		header := strings.Contains(path, "/parameters/") && strings.HasSuffix(path, "/schema")
		if _, has := schema["const"]; header && has && !strings.Contains(path, "/token/") {
			t.Errorf("%s: a header has const, not enum", path)
		}
		disjoint(t, d, path, asList(schema["allOf"]))
	})
}

// disjoint asks that no two parts of an allOf have a property of the same name.
func disjoint(t *testing.T, d *contract.Document, path string, parts []any) {
	t.Helper()
	owned := map[string]bool{}
	for _, part := range parts {
		inlined, err := d.Inline(part)
		if err != nil {
			t.Fatal(err)
		}
		mine := map[string]bool{}
		propertiesOf(inlined, mine)
		for name := range mine {
			if owned[name] {
				t.Errorf("%s: two parts of allOf have %s", path, name)
			}
			owned[name] = true
		}
	}
}

// propertiesOf collects the names of the properties of a schema and of the parts of its allOf.
func propertiesOf(part any, found map[string]bool) {
	schema, _ := part.(contract.Object)
	inner, _ := schema["properties"].(contract.Object)
	for name := range inner {
		found[name] = true
	}
	for _, more := range asList(schema["allOf"]) {
		propertiesOf(more, found)
	}
}

// TestAnchors asks that the document is read by programs that know no anchors of YAML.
func TestAnchors(t *testing.T) {
	for name, text := range map[string]string{"an anchor": "a: &x {b: 1}\n", "an alias": "a: &x {b: 1}\nc: *x\n"} {
		path := t.TempDir() + "/openapi.yaml"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := contract.Load(path); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}
