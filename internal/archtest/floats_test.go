package archtest

import (
	"go/ast"
	"go/types"
	"testing"
)

// TestNoFloats keeps floating-point numbers out of everything that ships, and so out of money's way: no value of a
// floating type, no literal, no parsing (decision "amount-form").
func TestNoFloats(t *testing.T) {
	enforce(t, findFloats, (*goPackage).isDeployed)
}

// findFloats finds every expression whose type is, or contains, a floating-point or complex number.
func findFloats(s *goPackage) []violation {
	var found []violation
	inspectFiles(s.Files, func(n ast.Node) {
		expression, ok := n.(ast.Expr)
		if !ok {
			return
		}
		if seen, ok := s.Info.Types[expression]; ok && containsFloat(seen.Type, 0) {
			found = append(found, violation{expression.Pos(), "a floating-point number: " + types.ExprString(expression)})
		}
	})
	return found
}

// maxTypeDepth bounds how far floating looks into a type; the tree's own types are all shallower, and may be recursive.
const maxTypeDepth = 6

// containsFloat tells whether a type holds floating-point numbers: itself, its elements, its results, or a struct of ours.
func containsFloat(of types.Type, at int) bool {
	if at > maxTypeDepth {
		return false
	}
	switch u := types.Unalias(of).(type) {
	case *types.Basic:
		return u.Info()&(types.IsFloat|types.IsComplex) != 0
	case *types.Pointer:
		return containsFloat(u.Elem(), at+1)
	case *types.Slice:
		return containsFloat(u.Elem(), at+1)
	case *types.Array:
		return containsFloat(u.Elem(), at+1)
	case *types.Map:
		return containsFloat(u.Key(), at+1) || containsFloat(u.Elem(), at+1)
	case *types.Signature:
		return containsFloat(u.Results(), at+1)
	case *types.Tuple:
		for i := range u.Len() {
			if containsFloat(u.At(i).Type(), at+1) {
				return true
			}
		}
	case *types.Struct:
		for i := range u.NumFields() {
			if containsFloat(u.Field(i).Type(), at+1) {
				return true
			}
		}
	case *types.Named:
		if u.Obj().Pkg() == nil || isOwnPackage(u.Obj().Pkg().Path()) {
			return containsFloat(u.Underlying(), at+1)
		}
		if basic, ok := u.Underlying().(*types.Basic); ok {
			return containsFloat(basic, at+1)
		}
	}
	return false
}
