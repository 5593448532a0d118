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

// place is the name of a schema while it is compiled; nothing is read there.
const place = "contract:///schema"

// Schema is a compiled schema. It is safe for parallel use.
type Schema struct {
	compiled *jsonschema.Schema
	source   Object
}

// Compile makes a schema of one without references. Formats are checked.
func Compile(source Object) (*Schema, error) {
	whole, err := canonical(source)
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(place, whole); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(place)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled: compiled, source: source}, nil
}

// canonical gives a value the types that the validator knows.
func canonical(value any) (any, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
}

// Validate holds a value, as JSON, against the schema.
func (s *Schema) Validate(value any) error {
	whole, err := canonical(value)
	if err != nil {
		return err
	}
	if err := s.compiled.Validate(whole); err != nil {
		return err
	}
	return bytesFit(s.source, whole, "")
}

// ValidateJSON holds a JSON text against the schema.
func (s *Schema) ValidateJSON(body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if err := s.compiled.Validate(value); err != nil {
		return err
	}
	return bytesFit(s.source, value, "")
}

// bytesFit applies x-max-bytes to the properties of objects.
func bytesFit(schema Object, value any, path string) error {
	if limit, has := number(schema["x-max-bytes"]); has {
		if content, isText := value.(string); isText && len(content) > limit {
			return fmt.Errorf("%s: %d bytes (%d characters), more than %d", path, len(content), utf8.RuneCountInString(content), limit)
		}
	}
	properties, _ := schema["properties"].(Object)
	object, _ := value.(Object)
	for name, inner := range properties {
		property, isSchema := inner.(Object)
		if content, has := object[name]; has && isSchema {
			if err := bytesFit(property, content, path+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// number reads a whole number of the document.
func number(value any) (int, bool) {
	switch value := value.(type) {
	case int:
		return value, true
	case json.Number:
		n, err := value.Int64()
		return int(n), err == nil
	default:
		return 0, false
	}
}

// binder puts into schemas what only a request or an onboarding knows.
type binder struct {
	header      map[string]string // by names in lower case
	provisioned map[string][]string
	whole       bool // rules of x-by-header and x-any-case stay as they are, for a reader who knows the header later
}

// Under gives a schema without references under the headers of a request: x-by-header becomes what stands under the
// header's value, x-any-case a pattern in any case, and with provisioned values x-provisioned becomes the values that the
// onboarding gave. An unknown header value adds nothing: the header itself is wrong then.
func Under(schema Object, header map[string]string, provisioned map[string][]string) Object {
	bound, _ := binder{header: header, provisioned: provisioned}.bind(schema).(Object)
	return bound
}

// Bound is the contract of one merchant: the whole document without references, with the values that its onboarding gave
// in the place of x-provisioned, and its base URL. What x-by-header and x-any-case say still stands there.
func (d *Document) Bound(baseURL string, provisioned map[string][]string) (Object, error) {
	whole := Object{}
	for _, part := range []string{"openapi", "info", "security", "tags", "paths"} {
		inlined, err := d.Inline(d.root[part])
		if err != nil {
			return nil, err
		}
		whole[part] = binder{provisioned: provisioned, whole: true}.bind(inlined)
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
		if b.whole || key != "x-by-header" {
			copied[key] = b.bind(inner)
		}
	}
	if name := text(value, "x-provisioned"); len(b.provisioned[name]) > 0 {
		give(copied, name, b.provisioned[name])
	}
	if b.whole {
		return copied
	}
	if free, _ := value["x-any-case"].(bool); free {
		copied["pattern"] = anyCase(list(value, "enum"))
		copied["type"] = "string"
		delete(copied, "enum")
	}
	if rule, has := value["x-by-header"].(Object); has {
		if more := b.chosen(rule); len(more) > 0 {
			copied["allOf"] = append(append([]any{}, list(copied, "allOf")...), more)
		}
	}
	return copied
}

// chosen is the schema that stands under a header's value, compared without regard to case.
func (b binder) chosen(rule Object) Object {
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

// give narrows a text to the values that the onboarding gave; order_prefix gives the beginning alone.
func give(schema Object, name string, values []string) {
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

// anyCase is a pattern of some words in any case.
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
