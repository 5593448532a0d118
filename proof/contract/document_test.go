package contract_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/contract"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/world/template"
)

// load reads the published document.
func load(t testing.TB) *contract.Document {
	t.Helper()
	d, err := contract.Load(filepath.FromSlash("../../docs/openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func operations(t testing.TB) []contract.Operation {
	t.Helper()
	found, err := load(t).Operations()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// operationsByID returns the operations by their operationId.
func operationsByID(t testing.TB) map[string]contract.Operation {
	t.Helper()
	found := map[string]contract.Operation{}
	for _, o := range operations(t) {
		found[o.ID] = o
	}
	return found
}

// webhooks returns the requests that the gateway posts to the merchant.
func webhooks(t testing.TB) []contract.Operation {
	t.Helper()
	found, err := load(t).Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// inline returns an object of the document without references.
func inline(t testing.TB, d *contract.Document, part any) contract.Object {
	t.Helper()
	inlined, err := d.Inline(part)
	if err != nil {
		t.Fatal(err)
	}
	return inlined.(contract.Object)
}

// TestValid checks the document against the OpenAPI Initiative's schema of OpenAPI 3.1.
func TestValid(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	var source contract.Object
	if err := json.Unmarshal(text, &source); err != nil {
		t.Fatal(err)
	}
	checkExample(t, "the document", source, load(t).Root())
}

// walk calls visit for every object of a part of the document.
func walk(part any, path string, visit func(path string, object contract.Object)) {
	switch part := part.(type) {
	case contract.Object:
		visit(path, part)
		for key, inner := range part {
			walk(inner, path+"/"+key, visit)
		}
	case []any:
		for _, inner := range part {
			walk(inner, path+"/-", visit)
		}
	}
}

// TestReferences fails for a reference without a target, for an unused component, and for a key beside a reference that
// changes a rule of the target.
func TestReferences(t *testing.T) {
	d := load(t)
	used := map[string]bool{}
	walk(d.Root(), "#", func(path string, object contract.Object) {
		reference, has := object["$ref"].(string)
		if !has {
			return
		}
		used[reference] = true
		named, err := d.Inline(contract.Object{"$ref": reference})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		for key := range object {
			if _, twice := named.(contract.Object)[key]; twice && key != "description" {
				t.Errorf("%s: %s is beside the reference and in %s: remove one", path, key, reference)
			}
		}
	})
	components, _ := d.Root()["components"].(contract.Object)
	for kind, group := range components {
		for name := range group.(contract.Object) {
			if reference := "#/components/" + kind + "/" + name; !used[reference] && kind != "securitySchemes" {
				t.Errorf("nothing refers to %s: remove it", reference)
			}
		}
	}
}

// TestSchemas compiles every schema of the document.
func TestSchemas(t *testing.T) {
	d := load(t)
	components := d.Root()["components"].(contract.Object)
	for name, schema := range components["schemas"].(contract.Object) {
		t.Run(name, func(t *testing.T) { compiled(t, inline(t, d, schema)) })
	}
}

// TestDescribed requires a description of every operation and an example of every parameter and body.
func TestDescribed(t *testing.T) {
	for _, o := range append(operations(t), webhooks(t)...) {
		for _, key := range []string{"operationId", "summary", "description"} {
			if text, _ := o.Raw[key].(string); text == "" {
				t.Errorf("%s %s has no %s", o.Method, o.Path, key)
			}
		}
		for _, p := range o.Parameters {
			if p.Example == "" && p.Required {
				t.Errorf("%s: parameter %s has no example", o.ID, p.Name)
			}
		}
		for name, body := range o.Body {
			if len(body.Examples) == 0 {
				t.Errorf("%s: the body %s has no example", o.ID, name)
			}
		}
		for status, response := range o.Responses {
			for name, body := range response.Body {
				if len(body.Examples) == 0 {
					t.Errorf("%s %s: the body %s has no example", o.ID, status, name)
				}
			}
		}
	}
}

// TestSchemaExamples checks each example against its schema.
func TestSchemaExamples(t *testing.T) {
	for _, o := range append(operations(t), webhooks(t)...) {
		for _, p := range o.Parameters {
			if p.Example != "" {
				checkExample(t, o.ID+" "+p.Name, p.Schema, p.Example)
			}
		}
		for _, body := range o.Body {
			for name, example := range body.Examples {
				schema := contract.ForRequest(body.Schema, headersOf(o, example), nil)
				checkExample(t, o.ID+" request "+name, schema, example.Value)
			}
		}
		for status, response := range o.Responses {
			for _, body := range response.Body {
				for name, example := range body.Examples {
					checkExample(t, o.ID+" "+status+" "+name, body.Schema, example.Value)
				}
			}
		}
	}
}

func checkExample(t *testing.T, what string, source contract.Object, value any) {
	t.Helper()
	if err := compiled(t, source).Validate(value); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// headersOf returns the headers of an example by names in lower case: the examples of the required parameters, and the
// example's own headers over them.
func headersOf(o contract.Operation, example contract.Example) map[string]string {
	headers := map[string]string{}
	for _, p := range o.Parameters {
		if p.In == "header" && p.Required {
			headers[strings.ToLower(p.Name)] = p.Example
		}
	}
	for name, value := range example.Headers {
		headers[strings.ToLower(name)] = value
	}
	return headers
}

// deployed reads template.yaml.
func deployed(t *testing.T) *template.Template {
	t.Helper()
	options := template.Options{Parameters: map[string]string{"Stage": "test"}}
	found, err := template.Load(filepath.FromSlash("../../template.yaml"), options)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRoutes compares the document's routes with those of template.yaml, both ways.
// The document has the one valid value of endUserId in the path.
func TestRoutes(t *testing.T) {
	var documented, routed []string
	for _, o := range operations(t) {
		documented = append(documented, o.Method+" "+o.Path)
	}
	for _, route := range deployed(t).Routes {
		path := strings.Replace(route.Resource, "{endUserId}", "acr%3AOperatorAPIToken", 1)
		routed = append(routed, route.Method+" "+path)
	}
	slices.Sort(documented)
	slices.Sort(routed)
	if !slices.Equal(documented, routed) {
		t.Errorf("the document has\n%s\nthe template has\n%s",
			strings.Join(documented, "\n"), strings.Join(routed, "\n"))
	}
	for _, o := range operations(t) {
		for _, name := range regexp.MustCompile(`\{([^}]*)\}`).FindAllStringSubmatch(o.Path, -1) {
			described := func(p contract.Parameter) bool { return p.In == "path" && p.Required && p.Name == name[1] }
			if !slices.ContainsFunc(o.Parameters, described) {
				t.Errorf("%s: the path parameter %s is not described", o.ID, name[1])
			}
		}
	}
}

// TestGatewayResponses checks the responses of API Gateway itself against the responses of every operation.
func TestGatewayResponses(t *testing.T) {
	// Nothing in the template makes API Gateway validate requests or check media types.
	never := []string{"BAD_REQUEST_BODY", "BAD_REQUEST_PARAMETERS", "UNSUPPORTED_MEDIA_TYPE"}
	contractChecker := checker(t)
	for kind, response := range deployed(t).GatewayResponses {
		if slices.Contains(never, kind) {
			continue
		}
		header := gatewayHeader()
		header.Set("Content-Type", "application/json")
		for name, value := range response.Headers {
			header.Set(name, value)
		}
		for _, o := range operations(t) {
			err := contractChecker.CheckResponse(o.Method, o.Path, response.Status, header, []byte(response.Body))
			if err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// errorExample is an example of an error response.
type errorExample struct {
	where, status string
	body          contract.Object
	exception     operationtest.Exception
	header        map[string]contract.Parameter
}

// errorExamples lists the error examples of every operation.
func errorExamples(t *testing.T) []errorExample {
	t.Helper()
	var found []errorExample
	for _, o := range operations(t) {
		for status, response := range o.Responses {
			for _, body := range response.Body {
				for name, example := range body.Examples {
					value, isObject := example.Value.(contract.Object)
					if !isObject || value["requestError"] == nil {
						continue
					}
					wire := contract.Object{"requestError": value["requestError"]}
					where := o.ID + " " + status + " " + name
					e, isError := operationtest.Response{Body: encode(t, wire)}.Exception()
					if !isError {
						t.Fatalf("%s is not an error of the API: %v", where, wire)
					}
					found = append(found, errorExample{where, status, wire, e, response.Headers})
				}
			}
		}
	}
	return found
}

func encode(t testing.TB, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func decode(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// TestSecuritySchemes requires that each scheme is used.
func TestSecuritySchemes(t *testing.T) {
	d := load(t)
	schemes := d.Root()["components"].(contract.Object)["securitySchemes"].(contract.Object)
	used := map[string]bool{}
	walk(d.Root(), "#", func(_ string, object contract.Object) {
		for _, item := range asList(object["security"]) {
			for name := range item.(contract.Object) {
				used[name] = true
			}
		}
	})
	if want, got := slices.Sorted(maps.Keys(schemes)), slices.Sorted(maps.Keys(used)); !slices.Equal(want, got) {
		t.Errorf("the schemes are %v, used are %v", want, got)
	}
}

func asList(value any) []any { found, _ := value.([]any); return found }

// TestExtensions requires that the document explains each of its extensions.
func TestExtensions(t *testing.T) {
	d := load(t)
	explained, _ := d.Root()["info"].(contract.Object)["description"].(string)
	walk(d.Root(), "#", func(path string, object contract.Object) {
		for key := range object {
			extension := strings.HasPrefix(key, "x-") && !strings.HasSuffix(path, "/headers")
			if extension && !strings.Contains(explained, "`"+key+"`") {
				t.Errorf("%s: %s is not explained", path, key)
			}
		}
	})
}
