package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

var (
	directive = regexp.MustCompile(`^//(go:|line |export |[a-z]+:\S+( // )?)`)
	// sentence is a text for people: two words or more, and no JSON, HTML or list.
	sentence = regexp.MustCompile(`^[^\[{<(]*[A-Za-z']{2,},? [A-Za-z']{2,}`)
)

// readGo takes the comments, the texts and the declared names of a Go file.
func readGo(name, text string) (*page, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	p := &page{name: name}
	lineOf := func(at token.Pos) int { return files.Position(at).Line }
	for _, group := range file.Comments {
		for _, comment := range group.List {
			addComment(p, lineOf(comment.Pos()), comment.Text)
		}
		p.end()
	}
	joined := map[ast.Node]bool{} // operands whose text the sum has taken
	ast.Inspect(file, func(n ast.Node) bool {
		for _, declared := range declaredBy(n) {
			declared.line = lineOf(declared.ident.Pos())
			p.names = append(p.names, declared)
		}
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				joined[n.Tag] = true
				tag, _ := strconv.Unquote(n.Tag.Value)
				p.addAlone(lineOf(n.Tag.Pos()), reflect.StructTag(tag).Get("help"))
			}
		case *ast.BinaryExpr:
			if first := addSum(p, n, joined, lineOf); first {
				p.end()
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !joined[n] {
				addString(p, lineOf(n.Pos()), n)
				p.end()
			}
		}
		return true
	})
	return p, nil
}

// addComment adds a comment without its markers; of a directive, only the reason behind it.
func addComment(p *page, line int, text string) {
	if directive.MatchString(text) {
		if _, reason, found := strings.Cut(text, " // "); found {
			p.addAlone(line, reason)
		}
		return
	}
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(text, "//"), "/*"), "*/")
	for at, part := range strings.Split(text, "\n") {
		p.add(line+at, strings.TrimPrefix(part, " "))
	}
}

// addSum adds the strings of a concatenation as one paragraph. It reports whether n is the outermost sum.
func addSum(p *page, n *ast.BinaryExpr, joined map[ast.Node]bool, lineOf func(token.Pos) int) bool {
	if n.Op != token.ADD || joined[n] {
		return false
	}
	var operands func(ast.Expr)
	operands = func(x ast.Expr) {
		switch x := x.(type) {
		case *ast.BinaryExpr:
			joined[x] = true
			operands(x.X)
			operands(x.Y)
		case *ast.BasicLit:
			joined[x] = true
			addString(p, lineOf(x.Pos()), x)
		}
	}
	operands(n)
	return true
}

// addString appends a string literal that is a text for people to the open paragraph.
func addString(p *page, line int, literal *ast.BasicLit) {
	text, err := strconv.Unquote(literal.Value)
	if err != nil || literal.Kind != token.STRING || !sentence.MatchString(text) {
		return
	}
	for at, part := range strings.Split(text, "\n") {
		if at > 0 {
			p.end()
		}
		if part = strings.Join(strings.Fields(part), " "); part != "" {
			p.join(line+at, notProse.ReplaceAllString(part, masked))
		}
		if literal.Value[0] != '`' {
			line -= at // an interpreted string is on one line
		}
	}
}
