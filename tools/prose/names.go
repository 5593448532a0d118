package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// nameRule is one row of names.txt: words that no declared name may have, and what to write instead.
type nameRule struct {
	words   []string // lower case
	whole   bool     // only the whole name counts, not one of its words
	kind    string   // "func" or "type" where only these count
	under   []string // folders where the row counts; none for the whole tree
	instead string
}

// readNames reads the table of names.
func readNames(file string) ([]nameRule, error) {
	rows, err := rowsOf(file, 3)
	if err != nil {
		return nil, err
	}
	var rules []nameRule
	for _, row := range rows {
		r := nameRule{words: strings.Fields(row[0]), instead: row[2]}
		for scope := range strings.FieldsSeq(row[1]) {
			switch scope {
			case "any":
			case "whole":
				r.whole = true
			case "func", "type":
				r.kind = scope
			default:
				r.under = append(r.under, scope+"/")
			}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// declaration is a name that a file declares.
type declaration struct {
	ident *ast.Ident
	kind  string // "func", "type", or "" for all else
	line  int
}

// declaredBy returns the names that a node of a Go file declares.
func declaredBy(n ast.Node) []declaration {
	switch n := n.(type) {
	case *ast.File:
		return []declaration{{ident: n.Name}}
	case *ast.FuncDecl:
		return []declaration{{ident: n.Name, kind: "func"}}
	case *ast.TypeSpec:
		return []declaration{{ident: n.Name, kind: "type"}}
	case *ast.ValueSpec:
		return declarations(n.Names)
	case *ast.Field:
		found := declarations(n.Names)
		if _, method := n.Type.(*ast.FuncType); method {
			for i := range found {
				found[i].kind = "func"
			}
		}
		return found
	case *ast.ImportSpec:
		if n.Name != nil {
			return []declaration{{ident: n.Name}}
		}
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return declarations(n.Lhs)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			return declarations([]ast.Expr{n.Key, n.Value})
		}
	case *ast.LabeledStmt:
		return []declaration{{ident: n.Label}}
	}
	return nil
}

// declarations keeps the identifiers among expressions.
func declarations[E ast.Expr](expressions []E) []declaration {
	var found []declaration
	for _, expression := range expressions {
		if ident, ok := ast.Expr(expression).(*ast.Ident); ok && ident != nil {
			found = append(found, declaration{ident: ident})
		}
	}
	return found
}

// camelWord is one word of a camel-case name, or a run of capitals.
var camelWord = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)

// checkNames compares the names that a file declares with the table.
func checkNames(rules []nameRule, p *page) []finding {
	var found []finding
	for _, d := range p.names {
		words := camelWord.FindAllString(d.ident.Name, -1)
		for i, word := range words {
			words[i] = strings.ToLower(word)
		}
		for _, r := range rules {
			if r.matches(p.name, d.kind, words) {
				found = append(found, finding{p.name, d.line, "name", d.ident.Name + ": use " + r.instead})
			}
		}
	}
	return found
}

// matches reports whether a name of these words breaks the rule.
func (r nameRule) matches(file, kind string, words []string) bool {
	if r.kind != "" && r.kind != kind {
		return false
	}
	inFolder := func(folder string) bool { return strings.HasPrefix(file, folder) }
	if len(r.under) > 0 && !slices.ContainsFunc(r.under, inFolder) {
		return false
	}
	if r.whole {
		return slices.Contains(r.words, strings.Join(words, ""))
	}
	banned := func(word string) bool { return slices.Contains(r.words, word) }
	return slices.ContainsFunc(words, banned) || slices.ContainsFunc(pairs(words), banned)
}

// pairs joins each word of a name with the next, for rows of two words such as giveBack.
func pairs(words []string) []string {
	var joined []string
	for i := 1; i < len(words); i++ {
		joined = append(joined, words[i-1]+words[i])
	}
	return joined
}
