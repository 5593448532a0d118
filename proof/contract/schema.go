package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaURL names a schema while it is compiled. Nothing is read from it.
const schemaURL = "contract:///schema"

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	source   Object
}

// Compile compiles a schema without references. The compiled schema also checks formats.
func Compile(source Object) (*Schema, error) {
	encoded, err := json.Marshal(source)
	if err != nil {
		return nil, err
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(schemaURL, whole); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled: compiled, source: source}, nil
}

// Validate checks a value, encoded as JSON, against the schema.
func (s *Schema) Validate(value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.ValidateJSON(encoded)
}

// ValidateJSON checks a JSON text against the schema.
func (s *Schema) ValidateJSON(body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if err := s.compiled.Validate(value); err != nil {
		return err
	}
	return checkBytes(s.source, value, "")
}

// checkBytes applies x-max-bytes to the properties of objects.
func checkBytes(schema Object, value any, path string) error {
	limit, limited := schema["x-max-bytes"].(int)
	if content, isText := value.(string); limited && isText && len(content) > limit {
		return fmt.Errorf("%s: %d bytes (%d characters), more than %d",
			path, len(content), utf8.RuneCountInString(content), limit)
	}
	properties, _ := schema["properties"].(Object)
	object, _ := value.(Object)
	for name, inner := range properties {
		property, isSchema := inner.(Object)
		if content, has := object[name]; has && isSchema {
			if err := checkBytes(property, content, path+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// ForMerchant returns the contract of one merchant: the whole document without references, with the merchant's base URL
// and the values that its onboarding set. It keeps x-by-header and x-any-case.
func (d *Document) ForMerchant(baseURL string, provisioned map[string][]string) (Object, error) {
	whole := Object{}
	for _, part := range []string{"openapi", "info", "security", "tags", "paths"} {
		inlined, err := d.Inline(d.root[part])
		if err != nil {
			return nil, err
		}
		whole[part] = limitProvisioned(inlined, provisioned)
	}
	components, _ := d.root["components"].(Object)
	whole["components"] = Object{"securitySchemes": components["securitySchemes"]}
	whole["servers"] = []any{Object{"url": baseURL}}
	return whole, nil
}

// limitProvisioned copies a part of the document, and limits each string with x-provisioned to the values of its name.
func limitProvisioned(part any, provisioned map[string][]string) any {
	return mapObjects(part, func(copied Object) {
		if name, _ := copied["x-provisioned"].(string); len(provisioned[name]) > 0 {
			limitValues(copied, name, provisioned[name])
		}
	})
}

// mapObjects copies a part of the document. It calls change with the copy of each object, inner objects first.
func mapObjects(part any, change func(copied Object)) any {
	switch part := part.(type) {
	case []any:
		copied := make([]any, len(part))
		for i, inner := range part {
			copied[i] = mapObjects(inner, change)
		}
		return copied
	case Object:
		copied := Object{}
		for key, inner := range part {
			copied[key] = mapObjects(inner, change)
		}
		change(copied)
		return copied
	default:
		return part
	}
}

// limitValues limits a string to the values that the onboarding set. order_prefix limits only the beginning.
func limitValues(schema Object, name string, values []string) {
	if name == "order_prefix" {
		schema["pattern"] = "^" + values[0] + "[0-9]+$"
		return
	}
	for _, rule := range []string{"type", "minLength", "maxLength", "pattern", "format", "allOf"} {
		delete(schema, rule)
	}
	options := make([]any, len(values))
	for i, value := range values {
		options[i] = value
	}
	schema["enum"] = options
}
