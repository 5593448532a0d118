package contract

import (
	"fmt"
	"regexp"
	"strings"
)

// ForRequest replaces the extensions of a schema without references by rules of JSON Schema.
// header has the request's headers by names in lower case, provisioned the values that the onboarding set.
//
// x-by-header becomes the schema of the header's value, x-any-case a pattern in any case, and x-provisioned the values
// of its name. An unknown value of the header adds nothing, because the header itself is invalid then.
func ForRequest(schema Object, header map[string]string, provisioned map[string][]string) Object {
	limited := limitProvisioned(schema, provisioned)
	bound, _ := binder{header, provisioned}.bind(limited).(Object)
	return bound
}

// binder replaces the extensions that depend on the request by rules of JSON Schema.
type binder struct {
	header      map[string]string // by names in lower case
	provisioned map[string][]string
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
		if key != "x-by-header" {
			copied[key] = b.bind(inner)
		}
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

func text(object Object, key string) string { value, _ := object[key].(string); return value }
func list(object Object, key string) []any  { value, _ := object[key].([]any); return value }
