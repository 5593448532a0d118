// Package contract reads docs/openapi.yaml, the published contract of the API, and checks responses against it.
// Its tests compare the contract with the code in both directions.
//
// It is never deployed and generates no code. A schema means what JSON Schema 2020-12 says, with the extensions that
// the document itself explains.
//
// The package does not use pb33f/libopenapi-validator. That validator accepts header values that break their schema and
// headers that are not documented. It does not know our extensions and the 404 of an unknown route.
package contract

import (
	"cmp"
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
	d := &Document{}
	err = yaml.Unmarshal(text, &node)
	if err == nil {
		err = cmp.Or(refuseAnchors(&node), node.Decode(&d.root))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// refuseAnchors returns an error with the line of the first anchor or alias. Generators of clients do not read them.
func refuseAnchors(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return fmt.Errorf("line %d: replace the anchor or alias by $ref, which generators of clients read", node.Line)
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

// target returns the object of the document that a reference of the form #/a/b names.
func (d *Document) target(reference string) (Object, error) {
	path, local := strings.CutPrefix(reference, "#/")
	at := d.root
	for key := range strings.SplitSeq(path, "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		next, found := at[key].(Object)
		if !local || !found {
			return nil, fmt.Errorf("the reference %s does not name an object of the document", reference)
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
	var failed error
	inlined := mapObjects(part, func(copied Object) {
		reference, isReference := copied["$ref"].(string)
		if !isReference {
			return
		}
		delete(copied, "$ref")
		named, err := d.target(reference)
		var target any
		if err == nil {
			target, err = d.inline(named, depth+1)
		}
		failed = cmp.Or(failed, err)
		object, _ := target.(Object)
		for key, inner := range object {
			if _, beside := copied[key]; !beside {
				copied[key] = inner
			}
		}
	})
	return inlined, failed
}

// Operation is one operation of the API, with every reference replaced by its target.
type Operation struct {
	ID     string `yaml:"operationId"`
	Method string `yaml:"-"` // upper case
	Path   string `yaml:"-"` // as the document has it

	Parameters []Parameter
	// Body has the request body by media type; it is nil without a request body.
	Body map[string]Media `yaml:"-"`
	// Responses are keyed by status. The operations of the API have neither ranges of statuses nor a default.
	Responses map[string]Response
	// Raw is the whole operation.
	Raw Object `yaml:"-"`
}

// Parameter is a header, a path parameter or a query parameter. Example is "" if there is none.
// The name of a response header is its key.
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
	Headers map[string]string `yaml:"x-headers"`
}

// Response is the documented response of one status.
type Response struct {
	Headers map[string]Parameter
	Body    map[string]Media `yaml:"content"`
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
			if raw, has := item[method].(Object); has {
				o, err := newOperation(raw)
				if err != nil {
					return nil, fmt.Errorf("%s %s: %w", method, path, err)
				}
				o.Method, o.Path = strings.ToUpper(method), path
				found = append(found, o)
			}
		}
	}
	return found, nil
}

// newOperation decodes an operation without references. YAML keeps the integers of its schemas, JSON would not.
func newOperation(raw Object) (Operation, error) {
	encoded, err := yaml.Marshal(raw)
	if err != nil {
		return Operation{}, err
	}
	var decoded struct {
		Operation   `yaml:",inline"`
		RequestBody struct{ Content map[string]Media } `yaml:"requestBody"`
	}
	if err := yaml.Unmarshal(encoded, &decoded); err != nil {
		return Operation{}, err
	}
	decoded.Body, decoded.Raw = decoded.RequestBody.Content, raw
	return decoded.Operation, nil
}
