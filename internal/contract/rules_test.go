package contract_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/contract"
)

// These tests read the code's rules from its sources: every call that reads a field of the body by its path or a header
// by its name. A rule that is in the code but not in the document fails here.

// codeRule is one field or header that the code reads.
type codeRule struct {
	operation string // the function: charge, pay, sms ...
	part      string
	method    string // Text, OptionalText, Header ...
	limit     int    // in characters; 0 for none
	at        string
}

// source is a type-checked package of a function.
type source struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// check parses and type-checks functions/<name>, with its imports from the build cache.
func check(t *testing.T, exports map[string]string, name string) *source {
	t.Helper()
	s := &source{fset: token.NewFileSet(), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	paths, err := filepath.Glob(filepath.Join("..", "..", "functions", name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(s.fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, parsed)
	}
	config := types.Config{Importer: importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})}
	if _, err := config.Check("mobilegateway/functions/"+name, s.fset, s.files, s.info); err != nil {
		t.Fatal(err)
	}
	return s
}

// exported lists the export data of every package that the functions import, by import path.
func exported(t *testing.T) map[string]string {
	t.Helper()
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./functions/...")
	command.Dir = filepath.Join("..", "..")
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var row struct{ ImportPath, Export string }
		err := decoder.Decode(&row)
		if errors.Is(err, io.EOF) {
			return exports
		}
		if err != nil {
			t.Fatal(err)
		}
		exports[row.ImportPath] = row.Export
	}
}

// callee returns the function or method of a call.
func (s *source) callee(call *ast.CallExpr) types.Object {
	switch function := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return s.info.Uses[function]
	case *ast.SelectorExpr:
		return s.info.Uses[function.Sel]
	}
	return nil
}

// readsRequests reports whether a function or method reads the body or a header of a request.
func readsRequests(object types.Object) bool {
	function, isFunction := object.(*types.Func)
	if !isFunction {
		return false
	}
	signature := function.Signature()
	named := func(variable *types.Var) string {
		if variable == nil {
			return ""
		}
		return variable.Type().String()
	}
	const reader = "*mobilegateway/shared/strictjson.Reader"
	if named(signature.Recv()) == reader {
		return true
	}
	if named(signature.Recv()) == "*mobilegateway/shared/apigw.Request" {
		return function.Name() == "Header"
	}
	for i := range signature.Params().Len() {
		if named(signature.Params().At(i)) == reader {
			return true
		}
	}
	return false
}

// text returns the value of a constant string.
func (s *source) text(expression ast.Expr) (string, bool) {
	value := s.info.Types[expression].Value
	if value == nil || value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(value), true
}

// number returns the value of a constant integer, or 0.
func (s *source) number(expression ast.Expr) int {
	value := s.info.Types[expression].Value
	if value == nil || value.Kind() != constant.Int {
		return 0
	}
	n, _ := constant.Int64Val(value)
	return int(n)
}

// rulesOf lists the fields and headers that the code of a function reads. If the path is a parameter of a helper, the
// helper's limit counts for each of its callers.
func rulesOf(t *testing.T, s *source, operation string) []codeRule {
	t.Helper()
	var found []codeRule
	limits := map[string]int{} // by helper whose path is a parameter
	for round := range 2 {
		for _, file := range s.files {
			for _, declaration := range file.Decls {
				function, isFunction := declaration.(*ast.FuncDecl)
				if !isFunction || function.Body == nil {
					continue
				}
				ast.Inspect(function.Body, func(node ast.Node) bool {
					call, isCall := node.(*ast.CallExpr)
					if !isCall || !readsRequests(s.callee(call)) {
						return true
					}
					method := s.callee(call).Name()
					rule := codeRule{operation: operation, method: method, limit: limits[method]}
					rule.at = s.fset.Position(call.Pos()).String()
					for _, argument := range call.Args {
						if text, isText := s.text(argument); isText && rule.part == "" {
							rule.part = text
						}
						rule.limit = max(rule.limit, s.number(argument))
					}
					if rule.part == "" {
						limits[function.Name.Name] = max(limits[function.Name.Name], rule.limit)
					} else if round == 1 {
						found = append(found, rule)
					}
					return true
				})
			}
		}
	}
	return found
}

// widerLimits lists limits of the code that no request reaches, because another rule comes first.
var widerLimits = map[string]string{
	"outboundSMSMessageRequest.address":                        "one value is valid",
	"outboundSMSMessageRequest.senderAddress":                  "tel:+ and 15 digits are less",
	"outboundSMSMessageRequest.outboundSMSTextMessage.message": "160 characters count after decoding",
	"status": "the values are known",
	"amountTransaction.paymentAmount.chargingInformation.currency": "the currencies are known",
}

// operationOf has the operation of each function.
var operationOf = map[string]string{"charge": "charge", "pay": "pay", "sms": "sendSms", "notif": "reportPayment",
	"receipt": "reportDelivery", "token": "issueToken"}

// TestRules requires that the document has every field and header that the code reads, with the code's limit.
// Only TestBodies checks paths that the code builds ("payload." and a name).
func TestRules(t *testing.T) {
	exports := exported(t)
	all := operationsByID(t)
	for folder, id := range operationOf {
		found := rulesOf(t, check(t, exports, folder), folder)
		if len(found) == 0 && folder != "receipt" && folder != "token" {
			t.Errorf("functions/%s reads nothing: update readsRequests to the code's readers", folder)
		}
		for _, rule := range found {
			schema, has := lookUp(t, all[id], rule.part)
			if !has {
				t.Errorf("%s: %s is not in the document", rule.at, rule.part)
				continue
			}
			if _, excused := widerLimits[rule.part]; excused || rule.limit == 0 {
				continue
			}
			limits := []int{}
			walk(schema, "", func(_ string, node contract.Object) {
				if limit, isNumber := node["maxLength"].(int); isNumber {
					limits = append(limits, limit)
				}
			})
			if !slices.Contains(limits, rule.limit) {
				t.Errorf("%s: %s has a limit of %d, the document of %v", rule.at, rule.part, rule.limit, limits)
			}
		}
	}
}

// lookUp finds a header, or a field of the body in any branch of its schema.
func lookUp(t *testing.T, o contract.Operation, name string) (contract.Object, bool) {
	t.Helper()
	for _, p := range o.Parameters {
		if strings.EqualFold(p.Name, name) {
			return p.Schema, true
		}
	}
	if strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Content-Type") {
		return contract.Object{}, true // the security schemes and the media types
	}
	for _, body := range o.Body {
		branches := []contract.Object{body.Schema}
		for _, branch := range []string{"then", "else"} {
			if more, has := body.Schema[branch].(contract.Object); has {
				branches = append(branches, more)
			}
		}
		for _, branch := range branches {
			if found, has := descend(branch, strings.Split(name, ".")); has {
				return found, true
			}
		}
	}
	return nil, false
}

func descend(schema contract.Object, keys []string) (contract.Object, bool) {
	if len(keys) == 0 {
		return schema, true
	}
	properties, _ := schema["properties"].(contract.Object)
	next, has := properties[keys[0]].(contract.Object)
	if !has {
		return nil, false
	}
	return descend(next, keys[1:])
}

// TestWords compares the operators' status values that the code knows with those of the document.
func TestWords(t *testing.T) {
	words := filepath.Join("..", "..", "shared", "operator", "status.go")
	parsed, err := parser.ParseFile(token.NewFileSet(), words, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		value, isValue := node.(*ast.ValueSpec)
		if !isValue || len(value.Values) != 1 {
			return true
		}
		table, _ := value.Values[0].(*ast.CompositeLit)
		for _, element := range table.Elts {
			if key, isText := element.(*ast.KeyValueExpr).Key.(*ast.BasicLit); isText {
				known[value.Names[0].Name] = append(known[value.Names[0].Name], strings.Trim(key.Value, `"`))
			}
		}
		return true
	})
	d := load(t)
	for name, reference := range map[string]string{
		"paymentStatuses":  "#/components/schemas/PaymentReportFields/properties/status",
		"deliveryStatuses": "#/components/schemas/DeliveryReportInfo/properties/deliveryStatus",
	} {
		schema := inline(t, d, contract.Object{"$ref": reference})
		var documented []string
		for _, word := range asList(schema["enum"]) {
			documented = append(documented, strings.ToLower(word.(string)))
		}
		slices.Sort(documented)
		slices.Sort(known[name])
		if len(documented) == 0 || !slices.Equal(documented, known[name]) {
			t.Errorf("%s: the code knows %v, the document %v", name, known[name], documented)
		}
	}
}
