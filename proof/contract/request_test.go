package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ForRequest replaces the extensions of a schema without references by rules of JSON Schema.
// header has the request's headers by names in lower case, provisioned the values that the onboarding set.
//
// x-by-header becomes the schema of the header's value, x-any-case a pattern in any case, and x-provisioned the values
// of its name. An unknown value of the header adds nothing, because the header itself is invalid then.
func ForRequest(schema Object, header map[string]string, provisioned map[string][]string) Object {
	b := binder{header, provisioned}
	bound, _ := mapObjects(limitProvisioned(schema, provisioned), b.bind).(Object)
	return bound
}

// binder replaces the extensions that depend on the request by rules of JSON Schema.
type binder struct {
	header      map[string]string // by names in lower case
	provisioned map[string][]string
}

// bind replaces the extensions of a schema whose inner schemas are bound already.
func (b binder) bind(schema Object) {
	if free, _ := schema["x-any-case"].(bool); free {
		schema["pattern"] = anyCase(list(schema, "enum"))
		schema["type"] = "string"
		delete(schema, "enum")
	}
	if rule, has := schema["x-by-header"].(Object); has {
		delete(schema, "x-by-header")
		if more := b.schemaByHeader(rule); len(more) > 0 {
			schema["allOf"] = append(slices.Clone(list(schema, "allOf")), more)
		}
	}
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
			found, _ := schema.(Object)
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
