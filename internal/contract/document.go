// Package contract reads docs/openapi.yaml, the published contract of the API, and holds requests and answers against
// it. Its tests hold the contract and the code together, in both directions.
//
// It is never deployed and generates no code. Its invariant: what it says of a schema is what JSON Schema 2020-12 says,
// with the four extensions that the document itself explains and nothing else.
package contract

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Object is a JSON object of the document.
type Object = map[string]any

// Document is an OpenAPI document, decoded.
type Document struct {
	root Object
}

// Load reads a document in YAML. An error names the file.
func Load(path string) (*Document, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := refuseAnchors(&node); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var root Object
	if err := node.Decode(&root); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Document{root: root}, nil
}

// errAnchor reports an anchor or an alias of YAML. Generators of clients do not read them; use $ref.
var errAnchor = errors.New("an anchor or an alias, which generators of clients do not read: use $ref")

// refuseAnchors returns an error with the line of the first anchor or alias.
func refuseAnchors(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return fmt.Errorf("line %d: %w", node.Line, errAnchor)
	}
	for _, inner := range node.Content {
		if err := refuseAnchors(inner); err != nil {
			return err
		}
	}
	return nil
}

// Root is the whole document; it must not be changed.
func (d *Document) Root() Object { return d.root }

// errReference says that a reference leads nowhere in this document.
var errReference = errors.New("a reference that leads nowhere")

// target finds what a reference of the form #/a/b names.
func (d *Document) target(reference string) (any, error) {
	path, local := strings.CutPrefix(reference, "#/")
	at := any(d.root)
	for key := range strings.SplitSeq(path, "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		object, _ := at.(Object)
		next, found := object[key]
		if !local || !found {
			return nil, fmt.Errorf("%w: %s", errReference, reference)
		}
		at = next
	}
	return at, nil
}

// Inline copies a part of the document with every reference replaced by what it names. Keys beside a reference are added
// to what it names and take the place of its annotations; the document has none that would contradict each other, which
// a test holds.
func (d *Document) Inline(part any) (any, error) { return d.inline(part, 0) }

// maxReferences bounds the chain of references: the document has no recursive schema.
const maxReferences = 16

func (d *Document) inline(part any, depth int) (any, error) {
	if depth > maxReferences {
		return nil, errors.New("references in a circle")
	}
	switch part := part.(type) {
	case []any:
		copied := make([]any, len(part))
		for i, inner := range part {
			var err error
			if copied[i], err = d.inline(inner, depth); err != nil {
				return nil, err
			}
		}
		return copied, nil
	case Object:
		return d.inlineObject(part, depth)
	default:
		return part, nil
	}
}

func (d *Document) inlineObject(part Object, depth int) (any, error) {
	copied := Object{}
	if reference, isReference := part["$ref"].(string); isReference {
		named, err := d.target(reference)
		if err != nil {
			return nil, err
		}
		inlined, err := d.inline(named, depth+1)
		if err != nil {
			return nil, err
		}
		object, isObject := inlined.(Object)
		if !isObject {
			return nil, fmt.Errorf("%w: %s is no object", errReference, reference)
		}
		copied = object
	}
	for key, inner := range part {
		if key == "$ref" {
			continue
		}
		inlined, err := d.inline(inner, depth)
		if err != nil {
			return nil, err
		}
		copied[key] = inlined
	}
	return copied, nil
}

// Operation is one operation of the API, with every reference replaced.
type Operation struct {
	// ID is the operationId, Method upper case, Path as the document has it.
	ID, Method, Path string
	Parameters       []Parameter
	// Body is the media types of the request body, nil where there is none. BodyRequired says that it must be there.
	Body         map[string]Media
	BodyRequired bool
	// Responses are the answers by status; the document of the API has no ranges and no default.
	Responses map[string]Response
	// Raw is the whole operation.
	Raw Object
}

// Parameter is a header, a path parameter or a query parameter.
type Parameter struct {
	Name, In string
	Required bool
	Schema   Object
	Example  string
}

// Media is a body of one media type.
type Media struct {
	Schema   Object
	Examples map[string]Example
}

// Example is a named example. Headers are those that differ from the parameters' own examples.
type Example struct {
	Value   any
	Headers map[string]string
}

// Response is one answer.
type Response struct {
	Headers map[string]Parameter
	Body    map[string]Media
}

// methods are the keys of a path item that are operations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// Operations are the API's operations, by path and method. Callbacks and webhooks are not among them.
func (d *Document) Operations() ([]Operation, error) {
	paths, _ := d.root["paths"].(Object)
	return d.operationsOf(paths)
}

// Webhooks are what the gateway posts to the merchant; the path is the webhook's name.
func (d *Document) Webhooks() ([]Operation, error) {
	hooks, _ := d.root["webhooks"].(Object)
	return d.operationsOf(hooks)
}

func (d *Document) operationsOf(paths Object) ([]Operation, error) {
	var found []Operation
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		inlined, err := d.Inline(paths[path])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		item, _ := inlined.(Object)
		for _, method := range methods {
			raw, has := item[method].(Object)
			if has {
				found = append(found, operation(path, method, raw))
			}
		}
	}
	return found, nil
}

func operation(path, method string, raw Object) Operation {
	o := Operation{ID: text(raw, "operationId"), Method: strings.ToUpper(method), Path: path, Raw: raw, Responses: map[string]Response{}}
	for _, item := range list(raw, "parameters") {
		p, _ := item.(Object)
		o.Parameters = append(o.Parameters, parameter(text(p, "name"), p))
	}
	if body, has := raw["requestBody"].(Object); has {
		o.Body = media(body)
		o.BodyRequired, _ = body["required"].(bool)
	}
	responses, _ := raw["responses"].(Object)
	for status, item := range responses {
		response, _ := item.(Object)
		r := Response{Body: media(response), Headers: map[string]Parameter{}}
		headers, _ := response["headers"].(Object)
		for name, item := range headers {
			header, _ := item.(Object)
			r.Headers[name] = parameter(name, header)
		}
		o.Responses[status] = r
	}
	return o
}

func parameter(name string, raw Object) Parameter {
	p := Parameter{Name: name, In: text(raw, "in")}
	p.Required, _ = raw["required"].(bool)
	p.Schema, _ = raw["schema"].(Object)
	if raw["example"] != nil {
		p.Example = fmt.Sprint(raw["example"])
	}
	return p
}

func media(holder Object) map[string]Media {
	content, _ := holder["content"].(Object)
	found := map[string]Media{}
	for name, item := range content {
		raw, _ := item.(Object)
		m := Media{Examples: map[string]Example{}}
		m.Schema, _ = raw["schema"].(Object)
		examples, _ := raw["examples"].(Object)
		for name, item := range examples {
			example, _ := item.(Object)
			headers, _ := example["x-headers"].(Object)
			e := Example{Value: example["value"], Headers: map[string]string{}}
			for name, value := range headers {
				e.Headers[name] = fmt.Sprint(value)
			}
			m.Examples[name] = e
		}
		found[name] = m
	}
	return found
}

func text(object Object, key string) string { value, _ := object[key].(string); return value }
func list(object Object, key string) []any  { value, _ := object[key].([]any); return value }
