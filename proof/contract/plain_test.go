package contract_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/contract"
)

// plain calls visit for every schema that generators of clients turn into types.
// It skips examples, extensions, and keywords that only narrow a value (if, then, else, not).
func plain(part any, path string, visit func(path string, schema contract.Object)) {
	switch part := part.(type) {
	case contract.Object:
		visit(path, part)
		for key, inner := range part {
			skipped := slices.Contains([]string{"if", "then", "else", "not", "example", "examples", "value"}, key)
			narrows := skipped && !strings.HasSuffix(path, "/properties")
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

// TestPlain fails for forms that common generators of clients cannot use. Each of these forms made a generator refuse
// the document, leave out a type or write code that does not compile. `make contract` runs the generators.
func TestPlain(t *testing.T) {
	d := load(t)
	plain(d.Root(), "#", func(path string, schema contract.Object) {
		inner, _ := schema["properties"].(contract.Object)
		for name, property := range inner {
			if _, isSchema := property.(contract.Object); !isSchema {
				t.Errorf("%s: %s is not a schema: %v", path, name, property)
			}
		}
		for _, rule := range []string{"enum", "const", "pattern", "minLength", "maxLength", "multipleOf"} {
			_, has := schema[rule]
			_, named := schema["$ref"]
			if has && schema["type"] == nil && !named && !strings.HasSuffix(path, "/properties") {
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

// disjoint requires that no two parts of an allOf have a property of the same name.
func disjoint(t *testing.T, d *contract.Document, path string, parts []any) {
	t.Helper()
	owned := map[string]bool{}
	for _, part := range parts {
		mine := map[string]bool{}
		propertiesOf(inline(t, d, part), mine)
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

// TestAnchors requires that Load refuses anchors and aliases of YAML.
func TestAnchors(t *testing.T) {
	for name, text := range map[string]string{"an anchor": "a: &x {b: 1}\n", "an alias": "a: &x {b: 1}\nc: *x\n"} {
		path := t.TempDir() + "/openapi.yaml"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := contract.Load(path); err == nil {
			t.Errorf("Load accepts %s", name)
		}
	}
}
