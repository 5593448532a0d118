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
	keep(t, undocumented, func(*source) bool { return true })
}

// TestSizes bounds files and functions.
func TestSizes(t *testing.T) {
	keep(t, long, func(*source) bool { return true })
}

// long finds files and functions over the limits.
func long(s *source) []offence {
	var found []offence
	for _, f := range slices.Concat(s.Shipped, s.Tests) {
		if lines := bytes.Count(f.Text, []byte("\n")); lines > maxFileLines {
			found = append(found, offence{f.AST.Package, fmt.Sprintf("the file has %d lines, more than %d", lines, maxFileLines)})
		}
	}
	each(s.Shipped, func(n ast.Node) {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			return
		}
		if lines := s.Fset.Position(f.Body.Rbrace).Line - s.Fset.Position(f.Body.Lbrace).Line - 1; lines > maxFunctionLines {
			found = append(found, offence{f.Pos(), fmt.Sprintf("%s has %d lines, more than %d", f.Name.Name, lines, maxFunctionLines)})
		}
	})
	return found
}

// undocumented finds exported names without a comment of their own or of their group.
func undocumented(s *source) []offence {
	var found []offence
	packaged := false
	for _, f := range s.Shipped {
		packaged = packaged || f.AST.Doc != nil
		for _, declaration := range f.AST.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() {
					found = append(found, judge(d.Name, d.Doc, true)...)
				}
			case *ast.GenDecl:
				found = append(found, group(d)...)
			}
		}
	}
	if !packaged && len(s.Shipped) > 0 {
		found = append(found, offence{s.Shipped[0].AST.Package, "the package has no comment"})
	}
	return found
}

// group judges a declaration of types, constants or variables. Constants may share the comment of their group, or have
// one at the end of the line.
func group(d *ast.GenDecl) []offence {
	var found []offence
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil && !d.Lparen.IsValid() {
				doc = d.Doc
			}
			if spec.Name.IsExported() {
				found = append(found, judge(spec.Name, doc, true)...)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && spec.Doc == nil && spec.Comment == nil {
					found = append(found, judge(name, d.Doc, false)...)
				}
			}
		}
	}
	return found
}

// articles may stand before the name.
var articles = []string{"A ", "An ", "The "}

// judge asks that a comment is there, and with named that it begins with the name and ends with a full stop or a colon.
func judge(name *ast.Ident, doc *ast.CommentGroup, named bool) []offence {
	text := strings.TrimSpace(doc.Text())
	if text == "" {
		return []offence{{name.Pos(), name.Name + " has no doc comment"}}
	}
	for _, article := range articles {
		text = strings.TrimPrefix(text, article)
	}
	if named && !strings.HasPrefix(text, name.Name+" ") {
		return []offence{{name.Pos(), "the doc comment of " + name.Name + " does not begin with its name"}}
	}
	if named && !strings.ContainsAny(text, ".:?") {
		return []offence{{name.Pos(), "the doc comment of " + name.Name + " is no sentence"}}
	}
	return nil
}
