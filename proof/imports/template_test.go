package imports

import (
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/settings"
	"mobilegateway/world/template"
)

// loadTemplate loads template.yaml.
func loadTemplate(t *testing.T) *template.Template {
	t.Helper()
	options := template.Options{StackName: "imports", Region: "eu-west-1"}
	found, err := template.Load(filepath.Join(loadTree(t).Root, "template.yaml"), options)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestFunctionsAreDeployed compares the functions of template.yaml with the programs below functions/.
func TestFunctionsAreDeployed(t *testing.T) {
	var inTemplate, inTree []string
	for _, f := range loadTemplate(t).Functions {
		inTemplate = append(inTemplate, f.Name)
		if want := "functions/" + f.Name + "/bootstrap"; strings.Trim(f.CodeURI, "/") != want {
			t.Errorf("%s is built from %s, not from %s/", f.LogicalID, f.CodeURI, want)
		}
	}
	folders, err := filepath.Glob(filepath.Join(loadTree(t).Root, "functions", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		inTree = append(inTree, filepath.Base(folder))
		if _, err := os.Stat(filepath.Join(folder, "bootstrap", "main.go")); err != nil {
			t.Errorf("functions/%s has no bootstrap/main.go: %v", filepath.Base(folder), err)
		}
	}
	compareLists(t, "functions", inTemplate, inTree)
}

// TestRoutesAreDeployed compares the routes of each function in template.yaml with those that its handler declares.
func TestRoutesAreDeployed(t *testing.T) {
	inTemplate, inCode := map[string][]string{}, map[string][]string{}
	found := loadTemplate(t)
	names := map[string]string{}
	for _, f := range found.Functions {
		names[f.LogicalID] = f.Name
	}
	for _, r := range found.Routes {
		inTemplate[names[r.Function]] = append(inTemplate[names[r.Function]], r.Method+" "+r.Resource)
	}
	for _, s := range loadTree(t).Packages {
		if s.inFolders("functions") && !s.isBootstrap() {
			name := strings.Split(s.Path, "/")[1]
			inCode[name] = append(inCode[name], findRoutes(s)...)
		}
	}
	for name := range names {
		compareLists(t, "routes of "+names[name], inTemplate[names[name]], inCode[names[name]])
	}
	if len(found.Routes) == 0 {
		t.Error("template.yaml has no route")
	}
}

// findRoutes returns the values of apigw.Route in a package. Their methods and resources are constants.
func findRoutes(s *goPackage) []string {
	var found []string
	inspect(s.Files, func(n ast.Node) {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return
		}
		named, ok := types.Unalias(s.Info.Types[literal].Type).(*types.Named)
		if !ok || named.Obj().Pkg() == nil || named.String() != modulePath+"/shared/apigw.Route" {
			return
		}
		method, resource := literalField(literal, "Method"), literalField(literal, "Resource")
		found = append(found, s.constantString(method)+" "+s.constantString(resource))
	})
	return found
}

// literalField returns the value of a key in a composite literal.
func literalField(literal *ast.CompositeLit, name string) ast.Expr {
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}

// constantString returns the value of a constant string, "?" for another expression.
func (s *goPackage) constantString(e ast.Expr) string {
	if e != nil {
		if value := s.Info.Types[e].Value; value != nil && value.Kind() == constant.String {
			return constant.StringVal(value)
		}
	}
	return "?"
}

// platformVariables are the variables of template.yaml that only the platform reads, with the reader.
var platformVariables = map[string]string{
	"GOMAXPROCS":   "the Go runtime",
	"GOGC":         "the Go runtime",
	"SSL_CERT_DIR": "crypto/x509",
}

// forbiddenVariables are the settings that a deployment must not set, with the reason.
var forbiddenVariables = map[string]string{
	settings.AllowLoopback:   "only for the local run",
	settings.Speed:           "only for the local run",
	settings.WarmConnections: "only for measuring",
	"AWS_EXECUTION_ENV":      "Lambda sets it",

	"AWS_ENDPOINT_URL":          "set where the services are not AWS's",
	"AWS_ENDPOINT_URL_DYNAMODB": "set where DynamoDB is not AWS's",
}

// TestVariablesAreDeployed compares the variables of each function in template.yaml with those that its program reads,
// and their values with the defaults of shared/settings.
func TestVariablesAreDeployed(t *testing.T) {
	calls := callGraph(loadTree(t).Packages)
	defaults := settings.FromEnv(func(string) string { return "" })
	for _, f := range loadTemplate(t).Functions {
		var given []string
		for name, value := range f.Environment {
			if platformVariables[name] != "" {
				continue
			}
			given = append(given, name)
			if fallback := defaults.Text(name); fallback != "" && value != fallback {
				t.Errorf("%s: %s is %q in template.yaml, and %q by default", f.Name, name, value, fallback)
			}
		}
		read := calls.settingsOf("functions/" + f.Name + "/bootstrap")
		maps.DeleteFunc(read, func(name string, _ bool) bool { return forbiddenVariables[name] != "" })
		compareLists(t, "variables of "+f.Name, given, slices.Collect(maps.Keys(read)))
	}
}

// settingsGraph lists the functions and the names of settings that each function mentions. Its keys are full function
// names.
type settingsGraph struct {
	references map[string][]string
	settings   map[string][]string
}

// callGraph reads the functions, their bootstraps and the packages that wire them.
func callGraph(packages []*goPackage) *settingsGraph {
	g := &settingsGraph{map[string][]string{}, map[string][]string{}}
	for _, s := range packages {
		if !s.inFolders("functions", "shared/wiring", "shared/settings") {
			continue
		}
		for _, f := range s.Files {
			for _, declaration := range f.AST.Decls {
				if function, ok := declaration.(*ast.FuncDecl); ok && s.Info.Defs[function.Name] != nil {
					g.addFunction(s, function)
				}
			}
		}
	}
	return g
}

// addFunction adds what one function mentions. The key of a bootstrap's functions is the path of the bootstrap.
func (g *settingsGraph) addFunction(s *goPackage, function *ast.FuncDecl) {
	name := s.Path
	if defined, ok := s.Info.Defs[function.Name].(*types.Func); ok && !s.isBootstrap() {
		name = defined.FullName()
	}
	ast.Inspect(function, func(n ast.Node) bool {
		used, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		switch object := s.Info.Uses[used].(type) {
		case *types.Func:
			g.references[name] = append(g.references[name], object.FullName())
		case *types.Const:
			setting := object.Pkg() != nil && object.Pkg().Path() == modulePath+"/shared/settings"
			if setting && object.Val().Kind() == constant.String {
				g.settings[name] = append(g.settings[name], constant.StringVal(object.Val()))
			}
		}
		return true
	})
}

// settingsOf returns the settings that a bootstrap reads, directly or in functions that it calls.
func (g *settingsGraph) settingsOf(start string) map[string]bool {
	names, seen := map[string]bool{}, map[string]bool{}
	var visit func(string)
	visit = func(function string) {
		if seen[function] {
			return
		}
		seen[function] = true
		for _, name := range g.settings[function] {
			names[name] = true
		}
		for _, called := range g.references[function] {
			visit(called)
		}
	}
	visit(start)
	return names
}

// compareLists fails the test for each name that is in one list only.
func compareLists(t *testing.T, what string, inTemplate, inCode []string) {
	t.Helper()
	for _, name := range inTemplate {
		if !slices.Contains(inCode, name) {
			t.Errorf("%s: %s is in template.yaml, not in the code", what, name)
		}
	}
	for _, name := range inCode {
		if !slices.Contains(inTemplate, name) {
			t.Errorf("%s: %s is in the code, not in template.yaml", what, name)
		}
	}
}
