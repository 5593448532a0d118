package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// toolFolder has the packages of gatewayctl's commands.
const toolFolder = "gatewayctl"

// toolSource is the source of gatewayctl: its structs and functions by "package.Name". Methods of one name in a package
// are together.
type toolSource struct {
	structs map[string]*ast.StructType
	runs    map[string]*ast.FuncDecl // the method Run of a type
	calls   map[string][]string      // what a function calls, also by a value: "package.Name"
}

// readToolSource parses the packages of gatewayctl without their tests.
func readToolSource(t *testing.T) toolSource {
	t.Helper()
	source := toolSource{map[string]*ast.StructType{}, map[string]*ast.FuncDecl{}, map[string][]string{}}
	files, err := filepath.Glob(filepath.Join(rootDir, toolFolder, "*", "*.go"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files of gatewayctl: %v", len(files), err)
	}
	files = append(files, filepath.Join(rootDir, toolFolder, "gatewayctl.go"))
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		source.add(parsed)
	}
	return source
}

// add adds the declarations of a file.
func (s toolSource) add(file *ast.File) {
	in := file.Name.Name + "."
	for _, declaration := range file.Decls {
		function, isFunction := declaration.(*ast.FuncDecl)
		if isFunction {
			s.calls[in+function.Name.Name] = append(s.calls[in+function.Name.Name], calledNames(in, function)...)
			if function.Recv != nil && function.Name.Name == "Run" {
				s.runs[in+typeName("", function.Recv.List[0].Type)] = function
			}
			continue
		}
		for _, spec := range declaration.(*ast.GenDecl).Specs {
			if named, isType := spec.(*ast.TypeSpec); isType {
				if fields, isStruct := named.Type.(*ast.StructType); isStruct {
					s.structs[in+named.Name.Name] = fields
				}
			}
		}
	}
}

// calledNames returns the names that the body of a function calls, each as if it were of the same package.
func calledNames(in string, function *ast.FuncDecl) (names []string) {
	ast.Inspect(function.Body, func(n ast.Node) bool {
		if call, isCall := n.(*ast.CallExpr); isCall {
			switch called := call.Fun.(type) {
			case *ast.Ident:
				names = append(names, in+called.Name)
			case *ast.SelectorExpr:
				names = append(names, in+called.Sel.Name)
			}
		}
		return true
	})
	return names
}

// typeName returns the name of a type, with its package.
func typeName(in string, expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return typeName(in, e.X)
	case *ast.SelectorExpr:
		return e.X.(*ast.Ident).Name + "." + e.Sel.Name
	case *ast.Ident:
		return in + e.Name
	}
	return ""
}

// reaches reports whether a function calls Session's method of this name, itself or by functions of its package. The
// search does not follow Session's other methods.
func (s toolSource) reaches(function, method string, seen map[string]bool) bool {
	in, name, _ := strings.Cut(function, ".")
	if name == method {
		return true
	}
	if seen[function] || name == "Run" && len(seen) > 0 || in == "session" {
		return false
	}
	seen[function] = true
	return slices.ContainsFunc(s.calls[function], func(called string) bool { return s.reaches(called, method, seen) })
}

// capitalised is a word of a name: RotateToken has two.
var capitalised = regexp.MustCompile(`[A-Z][a-z]*`)

// walk calls visit for each command below the fields of a struct, with the type that runs it.
func (s toolSource) walk(in, above string, fields *ast.StructType, visit func(command, runner string)) {
	for _, field := range fields.Fields.List {
		var tag reflect.StructTag
		if field.Tag != nil {
			tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
		}
		name, command := typeName(in, field.Type), above
		_, isCommand := tag.Lookup("cmd")
		if isCommand {
			words := strings.ToLower(strings.Join(capitalised.FindAllString(field.Names[0].Name, -1), "-"))
			if given := tag.Get("name"); given != "" {
				words = given
			}
			command = strings.TrimSpace(above + " " + words)
		}
		below, isStruct := field.Type.(*ast.StructType)
		if !isStruct {
			below, isStruct = s.structs[name]
		}
		package_, _, _ := strings.Cut(name+".", ".")
		switch {
		case isCommand && s.runs[name] != nil:
			visit(command, name)
		case isStruct && (isCommand || len(field.Names) == 0):
			s.walk(package_+".", command, below, visit)
		}
	}
}

// pageCommands returns the commands of a cell: "`a`, `b`: `c`, `d`" are a c, a d, b c and b d.
func pageCommands(cell string) (commands []string) {
	first, second, isProduct := strings.Cut(cell, ": ")
	for _, above := range code.FindAllStringSubmatch(first, -1) {
		if !isProduct {
			commands = append(commands, above[1])
		}
		for _, below := range code.FindAllStringSubmatch(second, -1) {
			commands = append(commands, above[1]+" "+below[1])
		}
	}
	return commands
}

// TestChangesAreDocumented compares the architecture page's table of what a command leaves behind with the commands
// that change something: those that reach Session.Execute, or Session.Audited itself.
func TestChangesAreDocumented(t *testing.T) {
	source, want, got := readToolSource(t), map[string]bool{}, map[string]bool{}
	grammar := source.structs["gatewayctl.commandLine"]
	source.walk("gatewayctl.", "", grammar, func(command, runner string) {
		in, _, _ := strings.Cut(runner, ".")
		calls := calledNames(in+".", source.runs[runner])
		reaches := func(method string) bool {
			return slices.ContainsFunc(calls, func(called string) bool {
				return source.reaches(called, method, map[string]bool{"": true})
			})
		}
		executes := reaches("Execute") || reaches("ExecuteAndShow")
		if executes || reaches("Audited") {
			want[command] = executes // without it the command is audited without --yes too
		}
	})
	rows := tableRows(t, architecturePage, "What does each CLI change leave behind?")[1:]
	for _, row := range rows {
		for _, command := range pageCommands(row[0]) {
			got[command] = !strings.Contains(row[1], "`"+command+"` also without `--yes`")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 20 {
		t.Errorf("%v change something (-code +page):\n%s", slices.Sorted(maps.Keys(want)), diff)
	}
}
