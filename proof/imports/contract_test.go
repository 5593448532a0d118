package imports

import (
	"go/ast"
	"go/constant"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/contract"
)

// These tests read the code's rules from its sources: every call that reads a field of the body by its path or a header
// by its name. A rule that is in the code but not in the document fails here.

// codeRule is one field or header that the code reads.
type codeRule struct {
	part  string
	limit int // in characters; 0 for none
	at    string
}

// callee returns the function or method of a call.
func (s *goPackage) callee(call *ast.CallExpr) types.Object {
	switch function := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return s.Info.Uses[function]
	case *ast.SelectorExpr:
		return s.Info.Uses[function.Sel]
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

// number returns the value of a constant integer, or 0.
func (s *goPackage) number(expression ast.Expr) int {
	value := s.Info.Types[expression].Value
	if value == nil || value.Kind() != constant.Int {
		return 0
	}
	n, _ := constant.Int64Val(value)
	return int(n)
}

// rulesOf lists the fields and headers that the code of a function reads. If the path is a parameter of a helper, the
// helper's limit counts for each of its callers.
func rulesOf(s *goPackage) []codeRule {
	var found []codeRule
	limits := map[string]int{} // by helper whose path is a parameter
	for round := range 2 {
		for _, file := range s.Files {
			for _, declaration := range file.AST.Decls {
				function, isFunction := declaration.(*ast.FuncDecl)
				if !isFunction || function.Body == nil {
					continue
				}
				ast.Inspect(function.Body, func(node ast.Node) bool {
					call, isCall := node.(*ast.CallExpr)
					if !isCall || !readsRequests(s.callee(call)) {
						return true
					}
					rule := codeRule{limit: limits[s.callee(call).Name()], at: s.Fset.Position(call.Pos()).String()}
					for _, argument := range call.Args {
						if text := s.constantString(argument); text != "?" && rule.part == "" {
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
	"status":                                "the values are known",
	"deliveryInfoNotification.deliveryInfo": "the limit counts items",
	"amountTransaction.paymentAmount.chargingInformation.currency": "the currencies are known",
}

// operationOf has the operation of each function.
var operationOf = map[string]string{"charge": "charge", "pay": "pay", "sms": "sendSms", "notif": "reportPayment",
	"receipt": "reportDelivery", "token": "issueToken"}

// TestRules requires that the document has every field and header that the code reads, with the code's limit.
// Only TestBodyConstraints checks paths that the code builds ("payload." and a name).
func TestRules(t *testing.T) {
	document, err := contract.Load(filepath.Join(loadTree(t).Root, "docs", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := document.Operations()
	if err != nil {
		t.Fatal(err)
	}
	for folder, id := range operationOf {
		packages := loadTree(t).Packages
		source := slices.IndexFunc(packages, func(s *goPackage) bool { return s.Path == "functions/"+folder })
		operation := slices.IndexFunc(all, func(o contract.Operation) bool { return o.ID == id })
		if source < 0 || operation < 0 {
			t.Errorf("functions/%s or the operation %s is missing", folder, id)
			continue
		}
		found := rulesOf(packages[source])
		if len(found) == 0 && folder != "notif" && folder != "receipt" && folder != "token" {
			t.Errorf("functions/%s reads nothing: update readsRequests to the code's readers", folder)
		}
		for _, rule := range found {
			schema, has := documentedSchema(all[operation], rule.part)
			if !has {
				t.Errorf("%s: %s is not in the document", rule.at, rule.part)
				continue
			}
			if _, excused := widerLimits[rule.part]; excused || rule.limit == 0 {
				continue
			}
			if limits := maxLengths(schema); !slices.Contains(limits, rule.limit) {
				t.Errorf("%s: %s has a limit of %d, the document of %v", rule.at, rule.part, rule.limit, limits)
			}
		}
	}
}

// maxLengths lists the values of maxLength in a schema and the schemas below it.
func maxLengths(schema any) []int {
	var limits []int
	switch schema := schema.(type) {
	case []any:
		for _, inner := range schema {
			limits = append(limits, maxLengths(inner)...)
		}
	case contract.Object:
		if limit, isNumber := schema["maxLength"].(int); isNumber {
			limits = append(limits, limit)
		}
		for _, inner := range schema {
			limits = append(limits, maxLengths(inner)...)
		}
	}
	return limits
}

// documentedSchema finds a header, or a field of the body in any branch of its schema.
func documentedSchema(o contract.Operation, name string) (contract.Object, bool) {
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
