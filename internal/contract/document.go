// Package contract reads docs/openapi.yaml, the published contract of the API, and checks responses against it.
// Its tests compare the contract with the code in both directions.
//
// It is never deployed and generates no code. A schema means what JSON Schema 2020-12 says, with the extensions that
// the document itself explains.
//
// The package does not use pb33f/libopenapi-validator. That validator accepts header values that break their schema and
// headers that are not documented. It knows neither our extensions nor the 404 of an unknown route.
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

// Root returns the whole document. Callers must not change it.
func (d *Document) Root() Object { return d.root }

// errReference reports a reference whose target is not in the document.
var errReference = errors.New("the target of the reference is not in the document")

// target returns the part of the document that a reference of the form #/a/b names.
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

// Inline copies a part of the document and replaces every reference by its target.
// Keys beside a reference are added to the target; they replace the target's annotations.
// TestReferences checks that they replace no rule.
func (d *Document) Inline(part any) (any, error) { return d.inline(part, 0) }

// maxReferences limits the chain of references. The document has no recursive schema.
const maxReferences = 16

func (d *Document) inline(part any, depth int) (any, error) {
	if depth > maxReferences {
		return nil, errors.New("the references form a cycle: break it")
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
			return nil, fmt.Errorf("%w: %s is not an object", errReference, reference)
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

// Operation is one operation of the API, with every reference replaced by its target.
type Operation struct {
	// ID is the operationId, Method upper case, Path as the document has it.
	ID, Method, Path string
	Parameters       []Parameter
	// Body has the request body by media type; it is nil without a request body.
	Body         map[string]Media
	BodyRequired bool
	// Responses are keyed by status. The operations of the API have neither ranges of statuses nor a default.
	Responses map[string]Response
	// Raw is the whole operation.
	Raw Object
}

// Parameter is a header, a path parameter or a query parameter. Example is "" if there is none.
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

// Example is an example of a body. Headers has the headers that differ from the examples of the parameters.
type Example struct {
	Value   any
	Headers map[string]string
}

// Response is the documented response of one status.
type Response struct {
	Headers map[string]Parameter
	Body    map[string]Media
}

// methods lists the keys of a path item that are operations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// Operations lists the operations of the API by path and method, without callbacks and webhooks.
func (d *Document) Operations() ([]Operation, error) {
	paths, _ := d.root["paths"].(Object)
	return d.operationsOf(paths)
}

// Webhooks lists the requests that the gateway posts to the merchant. The path is the name of the webhook.
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
				found = append(found, newOperation(path, method, raw))
			}
		}
	}
	return found, nil
}

func newOperation(path, method string, raw Object) Operation {
	o := Operation{
		ID: text(raw, "operationId"), Method: strings.ToUpper(method), Path: path, Raw: raw,
		Responses: map[string]Response{},
	}
	for _, item := range list(raw, "parameters") {
		p, _ := item.(Object)
		o.Parameters = append(o.Parameters, newParameter(text(p, "name"), p))
	}
	if body, has := raw["requestBody"].(Object); has {
		o.Body = bodies(body)
		o.BodyRequired, _ = body["required"].(bool)
	}
	responses, _ := raw["responses"].(Object)
	for status, item := range responses {
		response, _ := item.(Object)
		r := Response{Body: bodies(response), Headers: map[string]Parameter{}}
		headers, _ := response["headers"].(Object)
		for name, item := range headers {
			header, _ := item.(Object)
			r.Headers[name] = newParameter(name, header)
		}
		o.Responses[status] = r
	}
	return o
}

func newParameter(name string, raw Object) Parameter {
	p := Parameter{Name: name, In: text(raw, "in")}
	p.Required, _ = raw["required"].(bool)
	p.Schema, _ = raw["schema"].(Object)
	if raw["example"] != nil {
		p.Example = fmt.Sprint(raw["example"])
	}
	return p
}

// bodies returns the bodies of a request or a response by media type.
func bodies(holder Object) map[string]Media {
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
