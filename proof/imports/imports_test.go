package imports

import (
	"slices"
	"strings"
	"testing"
)

// wings returns the folders at the top of the tree, and which of them each may import. Every arrow runs down: a wing
// is above all that it imports. The rules bind files outside tests; a test may also import proof/kits and world.
func wings() map[string]string {
	return map[string]string{
		"shared":     "shared",
		"internal":   "internal shared",
		"functions":  "functions shared",
		"gatewayctl": "gatewayctl internal shared",
		"world":      "world internal shared",
		"local":      "local world internal shared",
		"cmd":        "local gatewayctl world internal shared",
		"proof":      "proof local gatewayctl functions world internal shared",
		"bench":      "bench proof local gatewayctl functions world internal shared",
		"deploy":     "deploy local world internal shared",
		"e2e":        "e2e deploy bench proof local world internal shared",
		"tools":      "tools deploy proof local world internal shared",
		"docs":       "", // samples that a merchant copies
	}
}

// TestImports checks the direction of all imports. depguard knows the rules of what ships; these also compare paths.
func TestImports(t *testing.T) {
	for _, s := range loadTree(t).Packages {
		for _, imported := range s.Imports {
			if reason := importViolation(s, imported); reason != "" {
				t.Errorf("%s imports %s: %s", s.Path, imported, reason)
			}
		}
	}
}

// importViolation returns why a package may not import another, "" if it may.
func importViolation(s *goPackage, imported string) string {
	target, own := strings.CutPrefix(imported, modulePath+"/")
	if !own {
		return ""
	}
	wing, _, _ := strings.Cut(s.Path, "/")
	below, known := wings()[wing]
	targetWing, _, _ := strings.Cut(target, "/")
	switch {
	case !known:
		return "the wing " + wing + " has no row in the table of wings"
	case !slices.Contains(strings.Fields(below), targetWing):
		return "imports run down: " + wing + " may import only " + below
	case wing == "functions" && targetWing == "functions" && functionFolder(s.Path) != functionFolder(target):
		return "a function does not import another function"
	default:
		return ""
	}
}

// functionFolder returns the function that a package belongs to: "functions/pay" of "functions/pay/bootstrap".
func functionFolder(below string) string {
	return strings.Join(strings.SplitN(below, "/", 3)[:2], "/")
}

// isStandardLibrary reports whether a package is of the standard library: its first element has no dot, and it is not
// ours.
func isStandardLibrary(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") && !isOwnPackage(imported)
}

// TestImportViolation proves the rules on planted imports.
func TestImportViolation(t *testing.T) {
	cases := []struct {
		from, to string
		allowed  bool
	}{
		{"shared/ledger", modulePath + "/shared/fault", true},
		{"shared/ledger", modulePath + "/proof/kits/ledgertest", false},
		{"shared/ledger", modulePath + "/internal/file", false},
		{"functions/pay/bootstrap", modulePath + "/functions/pay", true},
		{"functions/pay", modulePath + "/functions/payment", false},
		{"functions/pay", modulePath + "/world/lambda", false},
		{"gatewayctl", modulePath + "/functions/sweep", false},
		{"world/lambda", modulePath + "/gatewayctl", false},
		{"world/lambda", modulePath + "/local", false},
		{"local", modulePath + "/world/lambda", true},
		{"local", modulePath + "/proof/kits/localtest", false},
		{"proof/kits/ledgertest", modulePath + "/proof/kits/operatortest", true},
		{"proof/simulate", modulePath + "/e2e/harness", false},
		{"cmd/gatewayctl", modulePath + "/proof/kits/ledgertest", false},
		{"attic", modulePath + "/shared/fault", false},
		{"attic", "errors", true},
	}
	for _, c := range cases {
		if reason := importViolation(&goPackage{Path: c.from}, c.to); (reason == "") != c.allowed {
			t.Errorf("%s -> %s: %q, want allowed %v", c.from, c.to, reason, c.allowed)
		}
	}
}

// heavyPackages are packages that cost a deployed program size or start-up time. Only the SDK may link some of them.
var heavyPackages = []string{
	"encoding/gob", "expvar", "flag", "html/template", "net/http/httptest", "net/http/pprof", "regexp", "testing",
	"text/template",
	"github.com/aws/aws-lambda-go/events",
	"github.com/aws/aws-sdk-go-v2/config",
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue",
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression",
	"github.com/aws/aws-sdk-go-v2/service/cloudformation",
	"golang.org/x/term",
}

// TestNoHeavyPackages checks all packages that are linked into the deployed programs, those of other modules included.
func TestNoHeavyPackages(t *testing.T) {
	rows, err := listPackages(loadTree(t).Root, nil, "-deps", "-tags=lambda.norpc", "./functions/...")
	if err != nil {
		t.Fatal(err)
	}
	linked := false
	for _, row := range rows {
		linked = linked || row.ImportPath == "github.com/aws/aws-lambda-go/lambda"
		if strings.HasPrefix(row.ImportPath, "github.com/aws/") || isStandardLibrary(row.ImportPath) {
			continue
		}
		for _, imported := range row.Imports {
			if slices.Contains(heavyPackages, imported) {
				t.Errorf("%s imports %s, which makes every program larger or slower to start", row.ImportPath, imported)
			}
		}
	}
	if !linked {
		t.Error("no function links the Lambda runtime, so this is not the list of the deployed programs")
	}
}
