package imports

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// TestNoMutableVariables allows only package variables that are written once, where they are declared: tables, errors
// and embedded files. State belongs to values that a caller makes. The switch of the known-bad variants is the
// exception: the functions that read it have no other connection with their test, and no program that ships has it.
func TestNoMutableVariables(t *testing.T) {
	enforce(t, findMutable, func(s *goPackage) bool { return !s.inFolders("proof/simulate/knownbad/active") })
}

// findMutable finds declarations of package variables that can change, and writes to package variables.
func findMutable(s *goPackage) []violation {
	var found []violation
	for _, f := range s.Files {
		for _, declaration := range f.AST.Decls {
			if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.VAR {
				found = append(found, s.checkDeclaration(general)...)
			}
		}
	}
	inspect(s.Files, func(n ast.Node) {
		for _, written := range writtenExpressions(n) {
			if name := s.packageVariable(written); name != "" {
				found = append(found, violation{written.Pos(), "writes the package's variable " + name})
			}
		}
	})
	return found
}

// checkDeclaration checks one var declaration of a package.
func (s *goPackage) checkDeclaration(general *ast.GenDecl) []violation {
	var found []violation
	for _, spec := range general.Specs {
		values, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for _, name := range values.Names {
			object := s.Info.Defs[name]
			if name.Name == "_" || object == nil {
				continue
			}
			if reason := mutableKind(object.Type()); reason != "" {
				found = append(found, violation{name.Pos(), name.Name + " " + reason})
			}
			if len(values.Values) == 0 && !isEmbedded(general, values) {
				found = append(found, violation{name.Pos(), name.Name + " has no value where it is declared"})
			}
			if name.IsExported() && sharesMemory(object.Type()) {
				message := "importers can change " + name.Name + ": export a function"
				found = append(found, violation{name.Pos(), message})
			}
		}
	}
	return found
}

// isEmbedded reports whether the compiler fills a variable.
func isEmbedded(general *ast.GenDecl, values *ast.ValueSpec) bool {
	for _, group := range []*ast.CommentGroup{general.Doc, values.Doc} {
		if group == nil {
			continue
		}
		for _, line := range group.List {
			if strings.HasPrefix(line.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// mutableKind returns why a variable of a type is state, "" if it is not.
func mutableKind(of types.Type) string {
	if _, ok := of.Underlying().(*types.Chan); ok {
		return "is a channel: state belongs to a value"
	}
	if pointer, ok := of.(*types.Pointer); ok {
		of = pointer.Elem()
	}
	named, ok := types.Unalias(of).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	switch path := named.Obj().Pkg().Path(); path {
	case "sync", "sync/atomic", "bytes", "net/http", "math/rand", "math/rand/v2":
		return "is a " + path + "." + named.Obj().Name() + ": state belongs to a value"
	}
	return ""
}

// sharesMemory reports whether a copy of a value shares memory with it. Errors are interfaces and never written.
func sharesMemory(of types.Type) bool {
	switch of.Underlying().(type) {
	case *types.Map, *types.Slice, *types.Pointer:
		return true
	}
	return false
}

// writtenExpressions returns what a statement or expression writes to, or makes writable by its address.
func writtenExpressions(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"delete", "clear", "copy"}, f.Name) {
			return n.Args[:min(1, len(n.Args))]
		}
	}
	return nil
}

// packageVariable returns the name of the package variable that an expression is, or is a part of; "" if there is none.
func (s *goPackage) packageVariable(e ast.Expr) string {
	for {
		switch inner := e.(type) {
		case *ast.ParenExpr:
			e = inner.X
		case *ast.IndexExpr:
			e = inner.X
		case *ast.SliceExpr:
			e = inner.X
		case *ast.StarExpr:
			e = inner.X
		case *ast.SelectorExpr:
			if s.isPackageVariable(inner.Sel) {
				return inner.Sel.Name
			}
			e = inner.X
		case *ast.Ident:
			if s.isPackageVariable(inner) {
				return inner.Name
			}
			return ""
		default:
			return ""
		}
	}
}

// isPackageVariable reports whether a name is a variable of any package.
func (s *goPackage) isPackageVariable(name *ast.Ident) bool {
	v, ok := s.Info.Uses[name].(*types.Var)
	return ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}
