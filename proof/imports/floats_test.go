package imports

import (
	"go/ast"
	"go/types"
	"testing"
)

// TestNoFloats forbids floating-point values, literals and parsing in what ships: amounts of money must be exact
// (decision "amount-form").
func TestNoFloats(t *testing.T) {
	enforce(t, findFloats, (*goPackage).isDeployed)
}

// findFloats finds each expression whose type is, or contains, a floating-point or complex number.
func findFloats(s *goPackage) []violation {
	var found []violation
	inspect(s.Files, func(n ast.Node) {
		expression, ok := n.(ast.Expr)
		if !ok {
			return
		}
		if seen, ok := s.Info.Types[expression]; ok && containsFloat(seen.Type, 0) {
			message := "a floating-point number: " + types.ExprString(expression)
			found = append(found, violation{expression.Pos(), message})
		}
	})
	return found
}

// maxDepth limits how deep floating looks into a type, because types may be recursive. All types of the tree are less
// deep.
const maxDepth = 6

// containsFloat reports whether a type contains floating-point numbers: as itself, in its elements, in its results, or
// in a struct of ours.
func containsFloat(of types.Type, at int) bool {
	if at > maxDepth {
		return false
	}
	switch u := types.Unalias(of).(type) {
	case *types.Basic:
		return u.Info()&(types.IsFloat|types.IsComplex) != 0
	case *types.Map:
		return containsFloat(u.Key(), at+1) || containsFloat(u.Elem(), at+1)
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		return containsFloat(u.Elem(), at+1)
	case *types.Signature:
		return containsFloat(u.Results(), at+1)
	case *types.Tuple:
		for value := range u.Variables() {
			if containsFloat(value.Type(), at+1) {
				return true
			}
		}
	case *types.Struct:
		for field := range u.Fields() {
			if containsFloat(field.Type(), at+1) {
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
