package contract_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/contract"
	"mobilegateway/internal/template"
	"mobilegateway/shared/oneapi"
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

// TestValid holds the document against the OpenAPI Initiative's own schema of OpenAPI 3.1.
func TestValid(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	var source contract.Object
	if err := json.Unmarshal(text, &source); err != nil {
		t.Fatal(err)
	}
	schema, err := contract.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(load(t).Root()); err != nil {
		t.Error(err)
	}
}

// walk visits every object of a part of the document with its path.
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

// TestReferences finds references that lead nowhere, components that nothing needs, and keys beside a reference that
// would change a rule of what it names.
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
				t.Errorf("%s: %s stands beside the reference and in %s", path, key, reference)
			}
		}
	})
	components, _ := d.Root()["components"].(contract.Object)
	for kind, group := range components {
		for name := range group.(contract.Object) {
			if reference := "#/components/" + kind + "/" + name; !used[reference] && kind != "securitySchemes" {
				t.Errorf("nothing needs %s", reference)
			}
		}
	}
}

// TestSchemas compiles every schema of the document.
func TestSchemas(t *testing.T) {
	d := load(t)
	components := d.Root()["components"].(contract.Object)
	for name, schema := range components["schemas"].(contract.Object) {
		inlined, err := d.Inline(schema)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := contract.Compile(inlined.(contract.Object)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDescribed asks a description and an example of everything that a person reads about.
func TestDescribed(t *testing.T) {
	hooks, err := load(t).Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(operations(t), hooks...) {
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

// TestSchemaExamples holds each example against its schema.
func TestSchemaExamples(t *testing.T) {
	hooks, err := load(t).Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(operations(t), hooks...) {
		for _, p := range o.Parameters {
			if p.Example != "" {
				valid(t, o.ID+" "+p.Name, p.Schema, p.Example)
			}
		}
		for _, body := range o.Body {
			for name, example := range body.Examples {
				valid(t, o.ID+" request "+name, contract.Under(body.Schema, headersOf(o, example), nil), example.Value)
			}
		}
		for status, response := range o.Responses {
			for _, body := range response.Body {
				for name, example := range body.Examples {
					valid(t, o.ID+" "+status+" "+name, body.Schema, example.Value)
				}
			}
		}
	}
}

func valid(t *testing.T, what string, source contract.Object, value any) {
	t.Helper()
	schema, err := contract.Compile(source)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// headersOf are the headers of an example, by their names in lower case: the parameters' own, and what it changes.
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

// deployed reads the template.
func deployed(t *testing.T) *template.Template {
	t.Helper()
	found, err := template.Load(filepath.FromSlash("../../template.yaml"), template.Options{Parameters: map[string]string{"Stage": "test"}})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRoutes holds the document's routes and the deployed ones together, both ways. The one path parameter that has one
// valid value is written out in the document.
func TestRoutes(t *testing.T) {
	var documented, routed []string
	for _, o := range operations(t) {
		documented = append(documented, o.Method+" "+o.Path)
	}
	for _, route := range deployed(t).Routes {
		routed = append(routed, route.Method+" "+strings.Replace(route.Resource, "{endUserId}", "acr%3AOperatorAPIToken", 1))
	}
	slices.Sort(documented)
	slices.Sort(routed)
	if !slices.Equal(documented, routed) {
		t.Errorf("the document has\n%s\nthe template has\n%s", strings.Join(documented, "\n"), strings.Join(routed, "\n"))
	}
	for _, o := range operations(t) {
		for _, name := range regexp.MustCompile(`\{([^}]*)\}`).FindAllStringSubmatch(o.Path, -1) {
			if !slices.ContainsFunc(o.Parameters, func(p contract.Parameter) bool { return p.In == "path" && p.Required && p.Name == name[1] }) {
				t.Errorf("%s: the path parameter %s is not described", o.ID, name[1])
			}
		}
	}
}

// TestGatewayResponses holds what API Gateway answers by itself against the answers of every operation.
func TestGatewayResponses(t *testing.T) {
	// Nothing in the template makes API Gateway validate requests or look at media types.
	never := []string{"BAD_REQUEST_BODY", "BAD_REQUEST_PARAMETERS", "UNSUPPORTED_MEDIA_TYPE"}
	checker, err := contract.NewChecker(load(t))
	if err != nil {
		t.Fatal(err)
	}
	for kind, response := range deployed(t).GatewayResponses {
		if slices.Contains(never, kind) {
			continue
		}
		header := fromTheGateway()
		header.Set("Content-Type", "application/json")
		for name, value := range response.Headers {
			header.Set(name, value)
		}
		for _, o := range operations(t) {
			if err := checker.Answer(o.Method, o.Path, response.Status, header, []byte(response.Body)); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// errorExample is an example of an error answer.
type errorExample struct {
	where  string
	status string
	body   string
	header map[string]contract.Parameter
}

// errorExamples are all of them, of every operation.
func errorExamples(t *testing.T) []errorExample {
	t.Helper()
	var found []errorExample
	for _, o := range operations(t) {
		for status, response := range o.Responses {
			for _, body := range response.Body {
				for name, example := range body.Examples {
					value, isObject := example.Value.(contract.Object)
					if isObject && value["requestError"] != nil {
						encoded := encode(t, contract.Object{"requestError": value["requestError"]})
						found = append(found, errorExample{o.ID + " " + status + " " + name, status, encoded, response.Headers})
					}
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

// wireError is the shape of an error.
type wireError struct {
	RequestError map[oneapi.Exception]struct {
		MessageID string   `json:"messageId"`
		Text      string   `json:"text"`
		Variables []string `json:"variables"`
	} `json:"requestError"`
}

// same compares two JSON texts by their meaning.
func same(t testing.TB, got, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%v: %s", err, want)
	}
	return reflect.DeepEqual(a, b)
}

// TestSecuritySchemes asks that each scheme is used.
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

// TestExtensions asks that the document explains every extension that it has.
func TestExtensions(t *testing.T) {
	d := load(t)
	explained, _ := d.Root()["info"].(contract.Object)["description"].(string)
	walk(d.Root(), "#", func(path string, object contract.Object) {
		for key := range object {
			if strings.HasPrefix(key, "x-") && !strings.HasSuffix(path, "/headers") && !strings.Contains(explained, "`"+key+"`") {
				t.Errorf("%s: %s is not explained", path, key)
			}
		}
	})
}
