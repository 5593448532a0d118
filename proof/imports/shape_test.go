package imports

import (
	"go/ast"
	"strings"
	"testing"
)

// TestDocumented requires a package comment for each package, and a doc comment for each exported name. The comment of
// a type, function or method is a sentence that begins with the name.
func TestDocumented(t *testing.T) {
	enforce(t, findUndocumented, func(*goPackage) bool { return true })
}

// findUndocumented finds exported names without a comment on them or on their group.
func findUndocumented(s *goPackage) []violation {
	var found []violation
	packaged := false
	for _, f := range s.Files {
		packaged = packaged || f.AST.Doc != nil
		for _, declaration := range f.AST.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() {
					found = append(found, checkComment(d.Name, d.Doc, true)...)
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

// undocumentedInGroup checks a declaration of types, constants or variables. Constants and variables may share the
// comment of their group, or have one at the end of the line.
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
				found = append(found, checkComment(spec.Name, doc, true)...)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && spec.Doc == nil && spec.Comment == nil {
					found = append(found, checkComment(name, d.Doc, false)...)
				}
			}
		}
	}
	return found
}

// leadingArticles may precede the name.
var leadingArticles = []string{"A ", "An ", "The "}

// checkComment requires a comment, and with named that it begins with the name and contains a sentence.
func checkComment(name *ast.Ident, doc *ast.CommentGroup, named bool) []violation {
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
		return []violation{{name.Pos(), "the doc comment of " + name.Name + " is not a sentence"}}
	}
	return nil
}
