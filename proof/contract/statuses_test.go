package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/contract"
	"mobilegateway/shared/operator"
)

// TestOperators compares the operators that the document names with those of the table.
func TestOperators(t *testing.T) {
	d := load(t)
	for _, reference := range []string{"parameters/MnoName", "schemas/Source"} {
		found := inline(t, d, contract.Object{"$ref": "#/components/" + reference})
		if schema, isParameter := found["schema"].(contract.Object); isParameter {
			found = schema
		}
		if diff := cmp.Diff(operator.Names(), texts(found["enum"])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reference, diff)
		}
	}
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
		documented := texts(schema["enum"])
		for i, word := range documented {
			documented[i] = strings.ToLower(word)
		}
		slices.Sort(documented)
		slices.Sort(known[name])
		if len(documented) == 0 || !slices.Equal(documented, known[name]) {
			t.Errorf("%s: the code knows %v, the document %v", name, known[name], documented)
		}
	}
}

// texts returns the texts of a list.
func texts(value any) []string {
	var found []string
	for _, one := range asList(value) {
		found = append(found, one.(string))
	}
	return found
}
