package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Limits of size. Tests may have long tables in a function, but no longer files.
const (
	maxFileLines     = 400
	maxFunctionLines = 70 // between the braces, as funlen counts
)

// TestDocumented asks a doc comment of every exported type, function, method, constant and variable, which begins with
// the name and ends as a sentence does; and one package comment of every package.
func TestDocumented(t *testing.T) {
	enforce(t, findUndocumented, func(*goPackage) bool { return true })
}

// TestSizes bounds files and functions.
func TestSizes(t *testing.T) {
	enforce(t, findOversized, func(*goPackage) bool { return true })
}

// findOversized finds files and functions over the limits.
func findOversized(s *goPackage) []violation {
	var found []violation
	for _, f := range slices.Concat(s.Files, s.TestFiles) {
		if lines := bytes.Count(f.Text, []byte("\n")); lines > maxFileLines {
			found = append(found, violation{f.AST.Package, fmt.Sprintf("the file has %d lines, more than %d", lines, maxFileLines)})
		}
	}
	inspectFiles(s.Files, func(n ast.Node) {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			return
		}
		if lines := s.Fset.Position(f.Body.Rbrace).Line - s.Fset.Position(f.Body.Lbrace).Line - 1; lines > maxFunctionLines {
			found = append(found, violation{f.Pos(), fmt.Sprintf("%s has %d lines, more than %d", f.Name.Name, lines, maxFunctionLines)})
		}
	})
	return found
}

// findUndocumented finds exported names without a comment of their own or of their group.
func findUndocumented(s *goPackage) []violation {
	var found []violation
	packaged := false
	for _, f := range s.Files {
		packaged = packaged || f.AST.Doc != nil
		for _, declaration := range f.AST.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() {
					found = append(found, checkDocComment(d.Name, d.Doc, true)...)
				}
			case *ast.GenDecl:
				found = append(found, undocumentedInGroup(d)...)
			}
		}
	}
	if !packaged && len(s.Files) > 0 {
		found = append(found, violation{s.Files[0].AST.Package, "the package has no comment"})
	}
	return found
}

// undocumentedInGroup judges a declaration of types, constants or variables. Constants may share the comment of their group, or have
// one at the end of the line.
func undocumentedInGroup(d *ast.GenDecl) []violation {
	var found []violation
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil && !d.Lparen.IsValid() {
				doc = d.Doc
			}
			if spec.Name.IsExported() {
				found = append(found, checkDocComment(spec.Name, doc, true)...)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && spec.Doc == nil && spec.Comment == nil {
					found = append(found, checkDocComment(name, d.Doc, false)...)
				}
			}
		}
	}
	return found
}

// leadingArticles may stand before the name.
var leadingArticles = []string{"A ", "An ", "The "}

// checkDocComment asks that a comment is there, and with named that it begins with the name and ends with a full stop or a colon.
func checkDocComment(name *ast.Ident, doc *ast.CommentGroup, named bool) []violation {
	text := strings.TrimSpace(doc.Text())
	if text == "" {
		return []violation{{name.Pos(), name.Name + " has no doc comment"}}
	}
	for _, article := range leadingArticles {
		text = strings.TrimPrefix(text, article)
	}
	if named && !strings.HasPrefix(text, name.Name+" ") {
		return []violation{{name.Pos(), "the doc comment of " + name.Name + " does not begin with its name"}}
	}
	if named && !strings.ContainsAny(text, ".:?") {
		return []violation{{name.Pos(), "the doc comment of " + name.Name + " is no sentence"}}
	}
	return nil
}
