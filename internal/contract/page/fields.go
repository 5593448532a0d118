package page

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"mobilegateway/internal/contract"
)

// field is one row of a table of fields.
type field struct {
	path     string
	schema   contract.Object
	required bool
}

// fields writes the table of an object's fields, inner ones by their path.
func (w *writer) fields(schema contract.Object) {
	rows := flatten(schema, "")
	if len(rows) == 0 {
		return
	}
	w.put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Fields\"><table>\n<tr><th scope=\"col\">Field</th><th scope=\"col\">Rule</th><th scope=\"col\">Meaning</th></tr>\n")
	for _, row := range rows {
		w.out.WriteString("<tr><th scope=\"row\"><code>" + strings.ReplaceAll(html.EscapeString(row.path), ".", ".<wbr>") + "</code></th><td>")
		w.out.WriteString(rules(row.schema, row.required) + "</td><td>" + inline(word(row.schema, "description")) + "</td></tr>\n")
	}
	w.put("</table></div>\n")
}

// flatten lists the fields of a schema, of all its branches; a field that several have is there once, with the rules of
// all.
func flatten(schema contract.Object, at string) []field {
	all := &gathered{properties: contract.Object{}, required: map[string]bool{}}
	all.gather(schema)
	properties, required := all.properties, all.required
	var rows []field
	for _, name := range all.order {
		property, _ := properties[name].(contract.Object)
		path := strings.TrimPrefix(at+"."+name, ".")
		rows = append(rows, field{path, property, required[name]})
		rows = append(rows, flatten(property, path)...)
		if items, has := property["items"].(contract.Object); has {
			rows = append(rows, flatten(items, path+"[]")...)
		}
	}
	return rows
}

// gathered are the properties of a schema and of what it is composed of, in the document's order.
type gathered struct {
	properties contract.Object
	required   map[string]bool
	order      []string
}

func (g *gathered) gather(schema contract.Object) {
	inner, _ := schema["properties"].(contract.Object)
	for _, several := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := schema[several].([]any)
		for _, branch := range branches {
			more, _ := branch.(contract.Object)
			g.gather(more)
		}
	}
	if other, has := schema["else"].(contract.Object); has {
		g.gather(other)
	}
	for _, name := range contract.PropertyNames(schema) {
		if _, known := g.properties[name]; !known {
			g.order = append(g.order, name)
		}
		g.properties[name] = merge(g.properties[name], inner[name])
	}
	names, _ := schema["required"].([]any)
	for _, name := range names {
		g.required[fmt.Sprint(name)] = true
	}
}

// merge adds the rules of a property to those that another branch has for it.
func merge(known, more any) any {
	before, isSchema := known.(contract.Object)
	after, alsoSchema := more.(contract.Object)
	if !isSchema || !alsoSchema {
		return more
	}
	merged := maps.Clone(before)
	maps.Copy(merged, after)
	for _, key := range []string{"properties", "x-order"} {
		if before[key] != nil && after[key] != nil {
			delete(merged, key)
		}
	}
	if before["properties"] != nil && after["properties"] != nil {
		both := &gathered{properties: contract.Object{}, required: map[string]bool{}}
		both.gather(before)
		both.gather(after)
		order := make([]any, len(both.order))
		for i, name := range both.order {
			order[i] = name
		}
		merged["properties"], merged["x-order"] = both.properties, order
	}
	return merged
}

// rules tells a schema's rules in words.
func rules(schema contract.Object, required bool) string {
	told := []string{"optional"}
	if required {
		told[0] = "<strong>required</strong>"
	}
	told = append(told, tell(schema)...)
	if rule, has := schema["x-by-header"].(contract.Object); has {
		told = append(told, byHeader(rule)...)
	}
	if name := word(schema, "x-provisioned"); name != "" {
		told = append(told, "of the onboarding ("+html.EscapeString(name)+")")
	}
	return strings.Join(told, "<br>")
}

// tell lists the rules of one schema, those of its branches included.
func tell(schema contract.Object) []string {
	var told []string
	add := func(format string, value any) {
		told = append(told, fmt.Sprintf(format, html.EscapeString(fmt.Sprint(value))))
	}
	if kind := schema["type"]; kind != nil && kind != "object" {
		add("%s", strings.Trim(strings.ReplaceAll(fmt.Sprint(kind), " ", " or "), "[]"))
	}
	for _, rule := range []struct{ key, format string }{
		{"const", "always <code>%s</code>"}, {"minItems", "at least %s"}, {"maxItems", "at most %s"}, {"maxLength", "at most %s characters"}, {"x-max-bytes", "at most %s bytes"},
		{"exclusiveMinimum", "more than %s"}, {"exclusiveMaximum", "less than %s"}, {"multipleOf", "a multiple of %s"}, {"format", "%s"},
	} {
		if value, has := schema[rule.key]; has {
			add(rule.format, value)
		}
	}
	if words, has := schema["enum"].([]any); has {
		var options []string
		for _, option := range words {
			options = append(options, "<code>"+html.EscapeString(fmt.Sprint(option))+"</code>")
		}
		told = append(told, "one of "+strings.Join(options, ", "))
	}
	if pattern := word(schema, "pattern"); pattern != "" && !strings.Contains(pattern, `\x00`) {
		if len(pattern) <= 60 {
			add("<code>%s</code>", pattern)
		} else {
			add("<details><summary>pattern</summary><code>%s</code></details>", pattern)
		}
	}
	for _, several := range []string{"oneOf", "anyOf"} {
		branches, _ := schema[several].([]any)
		var options []string
		for _, branch := range branches {
			inner, _ := branch.(contract.Object)
			if words := strings.Join(tell(inner), ", "); words != "" {
				options = append(options, words)
			}
		}
		if len(options) > 0 {
			told = append(told, strings.Join(options, "; or "))
		}
	}
	return told
}

// byHeader tells the rules that hang on a header's value.
func byHeader(rule contract.Object) []string {
	schemas, _ := rule["schemas"].(contract.Object)
	byRule := map[string][]string{}
	for _, value := range slices.Sorted(maps.Keys(schemas)) {
		schema, _ := schemas[value].(contract.Object)
		words := strings.Join(tell(schema), ", ")
		if names, has := schema["required"].([]any); has {
			words = "required: " + html.EscapeString(strings.Trim(fmt.Sprint(names), "[]"))
		}
		if words != "" {
			byRule[words] = append(byRule[words], value)
		}
	}
	var told []string
	for _, words := range slices.Sorted(maps.Keys(byRule)) {
		told = append(told, fmt.Sprintf("with %s %s: %s", html.EscapeString(word(rule, "name")), strings.Join(byRule[words], ", "), words))
	}
	return told
}
