package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

// TestDocumented asks a doc comment of every exported type, function, method, constant and variable, which begins with
// the name and ends as a sentence does; and one package comment of every package.
func TestDocumented(t *testing.T) {
	enforce(t, findUndocumented, func(*goPackage) bool { return true })
}

// undocumented finds exported names without a comment of their own or of their group.
func undocumented(s *source) []offence {
	var found []offence
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
