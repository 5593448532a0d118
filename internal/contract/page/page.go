// Package page writes the reference of the API: docs/reference.html, one static page made of docs/openapi.yaml alone.
//
// The page needs no script, no font and no server: it is read from the file as it stands. Its invariant: the same
// document gives the same bytes.
package page

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mobilegateway/internal/contract"
)

//go:embed style.css
var style string

// writer collects the page.
type writer struct {
	out    strings.Builder
	common map[string]bool // the headers of every answer
}

// put writes markup, with every value escaped.
func (w *writer) put(markup string, values ...any) {
	for i, value := range values {
		if text, isText := value.(string); isText {
			values[i] = html.EscapeString(text)
		}
	}
	fmt.Fprintf(&w.out, markup, values...)
}

var (
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	strongSpan = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// prose writes paragraphs with the little Markdown that the document has: code and strong words.
func (w *writer) prose(text string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		w.out.WriteString("<p>" + inline(paragraph) + "</p>\n")
	}
}

func inline(text string) string {
	escaped := html.EscapeString(strings.Join(strings.Fields(text), " "))
	return strongSpan.ReplaceAllString(codeSpan.ReplaceAllString(escaped, "<code>$1</code>"), "<strong>$1</strong>")
}

// Render writes the page.
func Render(d *contract.Document) ([]byte, error) {
	operations, err := d.Operations()
	if err != nil {
		return nil, err
	}
	hooks, err := d.Webhooks()
	if err != nil {
		return nil, err
	}
	info, _ := d.Root()["info"].(contract.Object)
	w := &writer{common: commonHeaders(operations)}
	w.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
	w.put("<title>%s</title>\n<style>\n", word(info, "title"))
	w.out.WriteString(style + "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">To the content</a>\n")
	all := append(operations, hooks...)
	slices.SortStableFunc(all, func(a, b contract.Operation) int { return strings.Compare(b.Method, a.Method) }) // POST first
	tags, _ := d.Root()["tags"].([]any)
	w.navigation(tags, all)
	w.put("<main id=\"content\">\n<header>\n<h1>%s</h1>\n", word(info, "title"))
	w.put("<p class=\"summary\">%s</p>\n</header>\n", word(info, "summary"))
	w.prose(word(info, "description"))
	w.security(d)
	w.headers(operations)
	for _, item := range tags {
		tag, _ := item.(contract.Object)
		w.put("<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", anchor(word(tag, "name")), anchor(word(tag, "name")), word(tag, "name"))
		w.prose(word(tag, "description"))
		for _, o := range all {
			if tagOf(o) == word(tag, "name") {
				w.operation(o, !strings.HasPrefix(o.Path, "/"))
			}
		}
		w.put("</section>\n")
	}
	w.put("<footer><p>Made from <a href=\"openapi.yaml\">openapi.yaml</a>.</p></footer>\n</main>\n</body>\n</html>\n")
	return []byte(w.out.String()), nil
}

func word(object contract.Object, key string) string { text, _ := object[key].(string); return text }

func anchor(name string) string {
	return "about-" + strings.ToLower(strings.ReplaceAll(name, " ", "-"))
}

func tagOf(o contract.Operation) string {
	tags, _ := o.Raw["tags"].([]any)
	if len(tags) == 0 {
		return ""
	}
	return fmt.Sprint(tags[0])
}

// navigation lists the operations under their tags.
func (w *writer) navigation(tags []any, all []contract.Operation) {
	w.put("<nav aria-label=\"Operations\">\n")
	for _, item := range tags {
		tag, _ := item.(contract.Object)
		w.put("<h2><a href=\"#%s\">%s</a></h2>\n<ul>\n", anchor(word(tag, "name")), word(tag, "name"))
		for _, o := range all {
			if tagOf(o) == word(tag, "name") {
				w.put("<li><a href=\"#%s\">%s</a></li>\n", o.ID, word(o.Raw, "summary"))
			}
		}
		w.put("</ul>\n")
	}
	w.put("</nav>\n")
}

// security writes the ways to authenticate.
func (w *writer) security(d *contract.Document) {
	components, _ := d.Root()["components"].(contract.Object)
	schemes, _ := components["securitySchemes"].(contract.Object)
	w.put("<h2 id=\"authentication\">Authentication</h2>\n<dl>\n")
	for _, name := range slices.Sorted(maps.Keys(schemes)) {
		scheme, _ := schemes[name].(contract.Object)
		w.put("<dt><code>Authorization: %s</code></dt><dd>", strings.ToUpper(word(scheme, "scheme")[:1])+word(scheme, "scheme")[1:])
		w.out.WriteString(inline(word(scheme, "description")) + "</dd>\n")
	}
	w.put("</dl>\n")
}

// commonHeaders are the headers that stand on every answer of every operation.
func commonHeaders(operations []contract.Operation) map[string]bool {
	answers, of := 0, map[string]int{}
	for _, o := range operations {
		for _, r := range o.Responses {
			answers++
			for name, header := range r.Headers {
				if header.Required {
					of[name]++
				}
			}
		}
	}
	maps.DeleteFunc(of, func(_ string, n int) bool { return n < answers })
	common := map[string]bool{}
	for name := range of {
		common[name] = true
	}
	return common
}

// headers writes the headers of every answer once.
func (w *writer) headers(operations []contract.Operation) {
	if len(w.common) == 0 {
		return
	}
	responses, _ := operations[0].Raw["responses"].(contract.Object)
	w.put("<h2 id=\"headers\">On every answer</h2>\n<dl>\n")
	for _, name := range slices.Sorted(maps.Keys(w.common)) {
		w.put("<dt><code>%s</code></dt><dd>", name)
		for _, response := range responses { // the same in each
			raw, _ := response.(contract.Object)
			all, _ := raw["headers"].(contract.Object)
			header, _ := all[name].(contract.Object)
			w.out.WriteString(inline(word(header, "description")) + "</dd>\n")
			break
		}
	}
	w.put("</dl>\n")
}

// operation writes one operation; a webhook has no path of ours.
func (w *writer) operation(o contract.Operation, webhook bool) {
	w.put("<article aria-labelledby=\"%s\">\n<h3 id=\"%s\">%s</h3>\n", o.ID, o.ID, word(o.Raw, "summary"))
	path := o.Path
	if webhook {
		path = "your address"
	}
	w.put("<p class=\"route\"><b>%s</b> <code>%s</code></p>\n", o.Method, path)
	w.prose(word(o.Raw, "description"))
	if schemes, has := o.Raw["security"].([]any); has && len(schemes) == 0 {
		w.put("<p>Without <code>Authorization</code>.</p>\n")
	}
	w.parameters(o)
	for _, mediaType := range slices.Sorted(maps.Keys(o.Body)) {
		body := o.Body[mediaType]
		w.put("<h4>Body <code>%s</code>%s</h4>\n", mediaType, map[bool]string{false: ", optional"}[o.BodyRequired])
		w.fields(body.Schema)
		w.examples("Example", body.Examples)
	}
	w.put("<h4>Answers</h4>\n")
	responses, _ := o.Raw["responses"].(contract.Object)
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		raw, _ := responses[status].(contract.Object)
		w.response(status, word(raw, "description"), o.Responses[status])
	}
	w.put("</article>\n")
}

// parameters writes the path, query and header parameters.
func (w *writer) parameters(o contract.Operation) {
	if len(o.Parameters) == 0 {
		return
	}
	raw, _ := o.Raw["parameters"].([]any)
	w.put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Parameters of %s\"><table>\n<tr><th scope=\"col\">Parameter</th><th scope=\"col\">In</th>"+
		"<th scope=\"col\">Rule</th><th scope=\"col\">Meaning</th></tr>\n", o.ID)
	for i, p := range o.Parameters {
		described, _ := raw[i].(contract.Object)
		w.put("<tr><th scope=\"row\"><code>%s</code></th><td>%s</td><td>", p.Name, p.In)
		w.out.WriteString(rules(p.Schema, p.Required) + "</td><td>" + inline(word(described, "description")))
		if p.Example != "" {
			w.put(" <span class=\"example\">Example: <code>%s</code></span>", p.Example)
		}
		w.put("</td></tr>\n")
	}
	w.put("</table></div>\n")
}

// response writes one answer.
func (w *writer) response(status, description string, r contract.Response) {
	w.put("<div class=\"answer\"><p><b>%s</b> ", status)
	w.out.WriteString(inline(description) + "</p>\n")
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if w.common[name] {
			continue // told once for all
		}
		w.put("<p class=\"header\"><code>%s</code>%s</p>\n", name, map[bool]string{true: ", always", false: ", at times"}[r.Headers[name].Required])
	}
	for _, mediaType := range slices.Sorted(maps.Keys(r.Body)) {
		body := r.Body[mediaType]
		if strings.HasPrefix(status, "2") {
			w.put("<details><summary>Fields</summary>\n")
			w.fields(body.Schema)
			w.put("</details>\n")
		}
		w.examples("Example", body.Examples)
	}
	w.put("</div>\n")
}

// examples writes bodies, each behind its name.
func (w *writer) examples(title string, examples map[string]contract.Example) {
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		text, err := json.MarshalIndent(examples[name].Value, "", "  ")
		if err != nil {
			continue // what YAML decoded is encoded as well
		}
		w.put("<details><summary>%s: %s</summary>\n", title, name)
		for _, header := range slices.Sorted(maps.Keys(examples[name].Headers)) {
			w.put("<p class=\"header\"><code>%s: %s</code></p>\n", header, examples[name].Headers[header])
		}
		readable := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text))
		w.put("<pre tabindex=\"0\">%s</pre></details>\n", readable)
	}
}
