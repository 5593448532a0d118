package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/contract"
)

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
