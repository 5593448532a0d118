package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
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

// binder replaces the extensions of schemas by rules of JSON Schema.
type binder struct {
	header       map[string]string // by names in lower case
	provisioned  map[string][]string
	merchantOnly bool // keeps x-by-header and x-any-case, for a reader that sees the header later
}

// ForRequest replaces the extensions of a schema without references by rules of JSON Schema.
// header has the request's headers by names in lower case, provisioned the values that the onboarding set.
//
// x-by-header becomes the schema of the header's value, x-any-case a pattern in any case, and x-provisioned the values
// of its name. An unknown value of the header adds nothing, because the header itself is invalid then.
func ForRequest(schema Object, header map[string]string, provisioned map[string][]string) Object {
	bound, _ := binder{header: header, provisioned: provisioned}.bind(schema).(Object)
	return bound
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
		whole[part] = binder{provisioned: provisioned, merchantOnly: true}.bind(inlined)
	}
	components, _ := d.root["components"].(Object)
	whole["components"] = Object{"securitySchemes": components["securitySchemes"]}
	whole["servers"] = []any{Object{"url": baseURL}}
	return whole, nil
}

func (b binder) bind(value any) any {
	switch value := value.(type) {
	case []any:
		copied := make([]any, len(value))
		for i, inner := range value {
			copied[i] = b.bind(inner)
		}
		return copied
	case Object:
		return b.object(value)
	default:
		return value
	}
}

func (b binder) object(value Object) Object {
	copied := Object{}
	for key, inner := range value {
		if b.merchantOnly || key != "x-by-header" {
			copied[key] = b.bind(inner)
		}
	}
	if name := text(value, "x-provisioned"); len(b.provisioned[name]) > 0 {
		limitValues(copied, name, b.provisioned[name])
	}
	if b.merchantOnly {
		return copied
	}
	if free, _ := value["x-any-case"].(bool); free {
		copied["pattern"] = anyCase(list(value, "enum"))
		copied["type"] = "string"
		delete(copied, "enum")
	}
	if rule, has := value["x-by-header"].(Object); has {
		if more := b.schemaByHeader(rule); len(more) > 0 {
			copied["allOf"] = append(append([]any{}, list(copied, "allOf")...), more)
		}
	}
	return copied
}

// schemaByHeader returns the schema of the header's value, compared without regard to case. It is nil if there is none.
func (b binder) schemaByHeader(rule Object) Object {
	value := b.header[strings.ToLower(text(rule, "name"))]
	if absent := b.provisioned[text(rule, "absent")]; value == "" && len(absent) == 1 {
		value = absent[0]
	}
	schemas, _ := rule["schemas"].(Object)
	for name, schema := range schemas {
		if strings.EqualFold(name, value) {
			found, _ := b.bind(schema).(Object)
			return found
		}
	}
	return nil
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

// anyCase returns a pattern that matches the words in any case.
func anyCase(words []any) string {
	var pattern strings.Builder
	for i, word := range words {
		if i > 0 {
			pattern.WriteByte('|')
		}
		for _, letter := range fmt.Sprint(word) {
			upper, lower := strings.ToUpper(string(letter)), strings.ToLower(string(letter))
			if upper == lower {
				pattern.WriteString(regexp.QuoteMeta(lower))
			} else {
				pattern.WriteString("[" + upper + lower + "]")
			}
		}
	}
	return "^(" + pattern.String() + ")$"
}
