package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedPages are the pages whose names of the code are checked.
var namedPages = []string{
	"README.md", "CONTRIBUTING.md", architecturePage, securityPage, reliabilityPage,
	"docs/adding-an-operator.md", "docs/adding-a-country.md", decisionsPage, internalsPage,
}

var (
	// dottedName is a name of a package, or a method or a field of a type.
	dottedName = regexp.MustCompile(`^\w+\.[A-Z]\w*$`)
	// mixedName is a name of at least two words.
	mixedName = regexp.MustCompile(`^(?:[a-z]+[A-Z]|[A-Z]\w*[a-z][A-Z]|[A-Z][A-Z]+[a-z])\w*$`)
)

// TestNamesExist checks the names in inline code on the pages about the code. `x.Y` is a name of a package, or a method
// or a field of a type, which the tree declares. A name such as `buildChargeRequest` is declared too, or is a word of
// the templates, of the contract or of samconfig.toml.
func TestNamesExist(t *testing.T) {
	declared, checked := declaredNames(t), 0
	others := readFile(t, "template.yaml") + readFile(t, "deploy/alarms.yaml") + readFile(t, "docs/openapi.yaml") +
		readFile(t, "samconfig.toml")
	for _, name := range namedPages {
		for _, c := range findPage(t, name).codes {
			isDotted := dottedName.MatchString(c.text)
			if !isDotted && !mixedName.MatchString(c.text) {
				continue
			}
			checked++
			if !declared[c.text] && (isDotted || !strings.Contains(others, c.text)) {
				t.Errorf("%s:%d: nothing declares %s", name, c.line, c.text)
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d names were checked", checked)
	}
}

// declaredNames returns the names that the tree declares, each also behind its package and, if it is a method or a
// field, behind its type.
func declaredNames(t *testing.T) map[string]bool {
	t.Helper()
	declared := map[string]bool{}
	for _, root := range pathRoots {
		err := filepath.WalkDir(filepath.Join(rootDir, root), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, declaration := range file.Decls {
				addNames(declared, file.Name.Name, declaration)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return declared
}

// addNames adds what a declaration of a package declares.
func addNames(declared map[string]bool, in string, declaration ast.Decl) {
	add := func(owner string, names ...*ast.Ident) {
		for _, name := range names {
			declared[name.Name], declared[in+"."+name.Name], declared[owner+"."+name.Name] = true, true, true
		}
	}
	if function, isFunction := declaration.(*ast.FuncDecl); isFunction {
		owner := in
		if function.Recv != nil {
			owner = typeName("", function.Recv.List[0].Type)
		}
		add(owner, function.Name)
		return
	}
	for _, spec := range declaration.(*ast.GenDecl).Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			add(in, s.Names...)
		case *ast.TypeSpec:
			add(in, s.Name)
			ast.Inspect(s.Type, func(n ast.Node) bool {
				if field, isField := n.(*ast.Field); isField {
					add(s.Name.Name, field.Names...)
				}
				return true
			})
		}
	}
}
