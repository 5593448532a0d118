package archtest

import (
	"go/ast"
	"go/types"
	"testing"
)

// TestNoFloats keeps floating-point numbers out of everything that ships, and so out of money's way: no value of a
// floating type, no literal, no parsing (decision "amount-form").
func TestNoFloats(t *testing.T) {
	keep(t, floats, (*source).ships)
}

// floats finds every expression whose type is, or contains, a floating-point or complex number.
func floats(s *source) []offence {
	var found []offence
	each(s.Shipped, func(n ast.Node) {
		expression, ok := n.(ast.Expr)
		if !ok {
			return
		}
		if seen, ok := s.Info.Types[expression]; ok && floating(seen.Type, 0) {
			found = append(found, offence{expression.Pos(), "a floating-point number: " + types.ExprString(expression)})
		}
	})
	return found
}

// depth bounds how far floating looks into a type; the tree's own types are all shallower, and may be recursive.
const depth = 6

// floating tells whether a type holds floating-point numbers: itself, its elements, its results, or a struct of ours.
func floating(of types.Type, at int) bool {
	if at > depth {
		return false
	}
	switch u := types.Unalias(of).(type) {
	case *types.Basic:
		return u.Info()&(types.IsFloat|types.IsComplex) != 0
	case *types.Pointer:
		return floating(u.Elem(), at+1)
	case *types.Slice:
		return floating(u.Elem(), at+1)
	case *types.Array:
		return floating(u.Elem(), at+1)
	case *types.Map:
		return floating(u.Key(), at+1) || floating(u.Elem(), at+1)
	case *types.Signature:
		return floating(u.Results(), at+1)
	case *types.Tuple:
		for i := range u.Len() {
			if floating(u.At(i).Type(), at+1) {
				return true
			}
		}
	case *types.Struct:
		for i := range u.NumFields() {
			if floating(u.Field(i).Type(), at+1) {
				return true
			}
		}
	case *types.Named:
		if u.Obj().Pkg() == nil || ours(u.Obj().Pkg().Path()) {
			return floating(u.Underlying(), at+1)
		}
		if basic, ok := u.Underlying().(*types.Basic); ok {
			return floating(basic, at+1)
		}
	}
	return false
}
