package knownbad

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// moduleRoot is the top of the tree, seen from this package.
const moduleRoot = "../../.."

// activeImport is the import that the overlay adds to each of its files.
const activeImport = "\n\nimport knownbadactive \"mobilegateway/proof/simulate/knownbad/active\"\n"

// insertion replaces a part of a file's text.
type insertion struct {
	start, end int
	text       string
}

// apply applies insertions, which do not overlap, to a text whose first byte is at base.
func apply(text string, base int, insertions []insertion) string {
	slices.SortFunc(insertions, func(a, b insertion) int { return b.start - a.start })
	for _, i := range insertions {
		text = text[:i.start-base] + i.text + text[i.end-base:]
	}
	return text
}

// sourceFile is one file of the overlay.
type sourceFile struct {
	text       string
	tree       *ast.File
	insertions []insertion
	copies     []string
}

func parseSource(name string) (*sourceFile, error) {
	text, err := os.ReadFile(filepath.Join(moduleRoot, name))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &sourceFile{text: string(text), tree: tree}, nil
}

// offset converts a position of the tree. The file set has only this file, so positions count from 1.
func offset(at token.Pos) int { return int(at) - 1 }

// locate returns where an edit applies, and the function around it.
func (f *sourceFile) locate(e edit) (insertion, *ast.FuncDecl, error) {
	if count := strings.Count(f.text, e.original); count != 1 {
		return insertion{}, nil, fmt.Errorf("%s has the original text %d times, want once: %s", e.file, count,
			e.original)
	}
	start := strings.Index(f.text, e.original)
	end := start + len(e.original)
	for _, declaration := range f.tree.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Body != nil && offset(function.Body.Lbrace) < start && end <= offset(function.Body.Rbrace) {
			return insertion{start, end, e.bad}, function, nil
		}
	}
	return insertion{}, nil, fmt.Errorf("%s: the original text is not in the body of a function: %s", e.file,
		e.original)
}

// addVariant adds a bad copy of a function, and lets the function call it while the variant is active.
func (f *sourceFile) addVariant(variant string, number int, function *ast.FuncDecl, edits []insertion) {
	start, end := offset(function.Pos()), offset(function.End())
	badName := fmt.Sprintf("knownBad%d%s", number, function.Name.Name)
	rename := insertion{offset(function.Name.Pos()), offset(function.Name.End()), badName}
	f.copies = append(f.copies, apply(f.text[start:end], start, append(edits, rename)))

	call := badName + "(" + strings.Join(f.parameterNames(function.Type.Params.List, "argument"), ", ") + ")"
	if function.Recv != nil {
		call = f.parameterNames(function.Recv.List, "receiver")[0] + "." + call
	}
	statement := "return " + call
	if function.Type.Results == nil {
		statement = call + "; return"
	}
	body := offset(function.Body.Lbrace) + 1
	f.insertions = append(f.insertions, insertion{
		body, body, fmt.Sprintf("\n\tif knownbadactive.Is(%q) {\n\t\t%s\n\t}\n", variant, statement),
	})
}

// parameterNames returns the names of parameters, as arguments of a call. It names those without a name.
func (f *sourceFile) parameterNames(fields []*ast.Field, prefix string) []string {
	var names []string
	give := func(start, end int, space string) {
		name := fmt.Sprintf("%s%d", prefix, len(names))
		names = append(names, name)
		named := insertion{start, end, name + space}
		if !slices.Contains(f.insertions, named) { // another row of this function has named it
			f.insertions = append(f.insertions, named)
		}
	}
	for _, field := range fields {
		if len(field.Names) == 0 {
			give(offset(field.Type.Pos()), offset(field.Type.Pos()), " ")
		}
		for _, name := range field.Names {
			if name.Name == "_" {
				give(offset(name.Pos()), offset(name.End()), "")
				continue
			}
			names = append(names, name.Name)
		}
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			names[len(names)-1] += "..."
		}
	}
	return names
}

// render is the text of the file in the overlay.
func (f *sourceFile) render() string {
	end := offset(f.tree.Name.End())
	insertions := append(f.insertions, insertion{end, end, activeImport})
	return apply(f.text, 0, insertions) + "\n" + strings.Join(f.copies, "\n\n") + "\n"
}

// buildOverlay applies all variants to the tree, and returns the texts of the changed files by name.
func buildOverlay(table []variant) (map[string]string, error) {
	files := map[string]*sourceFile{}
	for number, v := range table {
		edits := map[*ast.FuncDecl][]insertion{}
		owners := map[*ast.FuncDecl]*sourceFile{}
		var functions []*ast.FuncDecl
		for _, e := range v.edits {
			if files[e.file] == nil {
				parsed, err := parseSource(e.file)
				if err != nil {
					return nil, err
				}
				files[e.file] = parsed
			}
			at, function, err := files[e.file].locate(e)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.name, err)
			}
			if edits[function] == nil {
				functions = append(functions, function)
			}
			edits[function], owners[function] = append(edits[function], at), files[e.file]
		}
		for _, function := range functions {
			owners[function].addVariant(v.name, number, function, edits[function])
		}
	}
	texts := map[string]string{}
	for name, file := range files {
		texts[name] = file.render()
	}
	return texts, nil
}

// writeOverlay writes the files of an overlay into a folder, and returns the file for the -overlay flag.
func writeOverlay(folder string, texts map[string]string) (string, error) {
	replace := map[string]string{}
	for name, text := range texts {
		original, err := filepath.Abs(filepath.Join(moduleRoot, name))
		if err != nil {
			return "", err
		}
		replacement := filepath.Join(folder, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(replacement, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[original] = replacement
	}
	encoded, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, encoded, 0o600)
}

// TestVariantsApply fails for a variant whose original text is not exactly once in the source as it is now. It counts
// the variants that the simulator must find.
func TestVariantsApply(t *testing.T) {
	const least = 30
	required := map[string]bool{}
	names := map[string]bool{}
	for _, v := range variants {
		if _, err := buildOverlay([]variant{v}); err != nil {
			t.Error(err)
		}
		if names[v.name] || v.name == "" || v.breaks == "" || len(v.invariants) == 0 {
			t.Errorf("%s: a variant needs a name of its own, a description and an invariant", v.name)
		}
		names[v.name] = true
		if v.excluded == "" {
			required[v.name] = true
		}
	}
	if len(required) < least {
		t.Errorf("the simulator must find %d variants, want at least %d", len(required), least)
	}
	for _, name := range requiredVariants {
		if !required[name] {
			t.Errorf("the table has no variant %q that the simulator must find", name)
		}
	}
}
