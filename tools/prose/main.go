// Package main prints the texts and the declared names of Go files for check.py, one JSON object a line.
//
//	git ls-files '*.go' | go run ./tools/prose
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"reflect"
	"strconv"
)

// item is a group of comments, a concatenation of strings, a help text, or a declared name.
type item struct {
	File  string `json:"file"`
	Kind  string `json:"kind"` // "comments", "strings", "help", "func", "type", or "name" for all other names
	Texts []text `json:"texts"`
}

// text is a comment with its markers, a string without its quotes, or a name.
type text struct {
	Line int    `json:"line"`
	Text string `json:"text"`
	Raw  bool   `json:"raw"` // in back quotes
}

func main() {
	if err := printItems(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// printItems prints the items of the files whose names are the lines of the input.
func printItems(names io.Reader, out io.Writer) error {
	encoder := json.NewEncoder(out)
	lines := bufio.NewScanner(names)
	for lines.Scan() {
		items, err := read(lines.Text(), nil)
		if err != nil {
			return err
		}
		for _, i := range items {
			if err := encoder.Encode(i); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// reader collects the items of one file.
type reader struct {
	name  string
	files *token.FileSet
	items []item
	read  map[ast.Node]bool // expressions whose strings are collected
}

// read returns the items of a file. A source that is not nil replaces the file's content.
func read(name string, source any) ([]item, error) {
	r := &reader{name: name, files: token.NewFileSet(), read: map[ast.Node]bool{}}
	file, err := parser.ParseFile(r.files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, group := range file.Comments {
		var texts []text
		for _, comment := range group.List {
			texts = append(texts, r.text(comment, comment.Text))
		}
		r.add("comments", texts...)
	}
	ast.Inspect(file, r.visit)
	return r.items, nil
}

func (r *reader) add(kind string, texts ...text) {
	if len(texts) > 0 {
		r.items = append(r.items, item{r.name, kind, texts})
	}
}

func (r *reader) text(n ast.Node, content string) text {
	return text{Line: r.files.Position(n.Pos()).Line, Text: content}
}

// visit collects the names that a node declares, and its strings. The path of an import is not a string for people.
func (r *reader) visit(n ast.Node) bool {
	kind, names := declaredBy(n)
	for _, name := range names {
		r.add(kind, r.text(name, name.Name))
	}
	switch n := n.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.Field:
		if n.Tag != nil {
			r.read[n.Tag] = true
			tag, _ := strconv.Unquote(n.Tag.Value)
			if help := reflect.StructTag(tag).Get("help"); help != "" {
				r.add("help", r.text(n.Tag, help))
			}
		}
	case ast.Expr:
		r.add("strings", r.strings(n)...)
	}
	return true
}

// strings returns the strings of a literal or a concatenation, each only once.
func (r *reader) strings(n ast.Expr) []text {
	if r.read[n] {
		return nil
	}
	r.read[n] = true
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.ADD {
			return append(r.strings(n.X), r.strings(n.Y)...)
		}
	case *ast.BasicLit:
		if content, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
			found := r.text(n, content)
			found.Raw = n.Value[0] == '`'
			return []text{found}
		}
	}
	return nil
}

// declaredBy returns the kind of the names that a node declares, and the names.
func declaredBy(n ast.Node) (kind string, names []*ast.Ident) {
	switch n := n.(type) {
	case *ast.File:
		return "name", identifiers(n.Name)
	case *ast.FuncDecl:
		return "func", identifiers(n.Name)
	case *ast.TypeSpec:
		return "type", identifiers(n.Name)
	case *ast.ValueSpec:
		return "name", n.Names
	case *ast.Field:
		if _, method := n.Type.(*ast.FuncType); method {
			return "func", n.Names
		}
		return "name", n.Names
	case *ast.ImportSpec:
		return "name", identifiers(n.Name)
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return "name", identifiers(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			return "name", identifiers(n.Key, n.Value)
		}
	case *ast.LabeledStmt:
		return "name", identifiers(n.Label)
	}
	return "", nil
}

// identifiers returns the expressions that are identifiers.
func identifiers[E ast.Expr](expressions ...E) []*ast.Ident {
	var found []*ast.Ident
	for _, expression := range expressions {
		if ident, ok := ast.Expr(expression).(*ast.Ident); ok && ident != nil {
			found = append(found, ident)
		}
	}
	return found
}
