package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// externalImport is one row of the packages of other modules that ours may import, and where.
type externalImport struct {
	Module   string   // import path or its beginning
	Packages []string // folders of ours
	Reason   string
}

// allowedExternalImports is the whole list: a package of another module that has no row here is an offence.
var allowedExternalImports = []externalImport{
	{"github.com/aws/aws-lambda-go/lambda", []string{"functions/*/bootstrap", "shared/apigw", "bench/hello"}, "the runtime's loop"},
	{"github.com/aws/aws-lambda-go/events", []string{"internal/local/apigateway"}, "API Gateway's event"},
	{"github.com/aws/aws-lambda-go/lambdacontext", []string{"functions/*/bootstrap", "shared/apigw"}, "the request id"},
	{"github.com/aws/aws-sdk-go-v2", []string{"shared/ledger/dynamo", "shared/merchant/dynamo", "shared/webhook/dynamo", "shared/limit/dynamo", "shared/secret/aws", "shared/awsclient",
		"functions/*/bootstrap", "cmd", "internal"}, "the stores, the secrets and what wires them"},
	{"github.com/aws/smithy-go", []string{"shared/ledger/dynamo", "shared/merchant/dynamo", "shared/limit/dynamo", "shared/secret/aws", "shared/awsclient",
		"cmd", "internal"}, "the SDK's errors"},
	{"code.dny.dev/ssrf", []string{"shared/outgoing"}, "the list of special addresses"},
	{"github.com/standard-webhooks/standard-webhooks/libraries", []string{"internal/local/inbox"}, "verifies signatures"},
	{"pgregory.net/rapid", []string{"internal/simulate", "internal/sandbox"}, "seeded histories; tests may use it everywhere"},
	{"github.com/google/go-cmp", []string{"internal", "shared/*test", "shared/*/*test"}, "differences in failing tests"},
	{"go.yaml.in/yaml/v3", []string{"internal/template", "internal/contract", "deploy"}, "template.yaml, and docs/openapi.yaml"},
	{"github.com/santhosh-tekuri/jsonschema/v6", []string{"internal/contract"}, "JSON Schema 2020-12, for the published contract"},
	{"github.com/BurntSushi/toml", []string{"deploy"}, "samconfig.toml"},
	{"github.com/alecthomas/kong", []string{"internal/gatewayctl"}, "gatewayctl's command line: typed, with no dependency of its own"},
}

// TestImportDirection keeps the direction of imports: functions -> shared -> standard library and SDK, and nothing that ships
// knows internal/ or cmd/.
func TestImportDirection(t *testing.T) {
	for _, s := range loadTree(t).Packages {
		for _, imported := range s.Imports {
			if reason := importViolation(s, imported); reason != "" {
				t.Errorf("%s imports %s: %s", s.Path, imported, reason)
			}
		}
	}
}

// importViolation says why a package may not import another, "" where it may.
func importViolation(s *goPackage, imported string) string {
	if !isOwnPackage(imported) {
		return externalImportViolation(s, imported)
	}
	target := strings.TrimPrefix(imported, modulePath+"/")
	if !s.isConformanceSuite() && strings.HasSuffix(target, "test") && s.inFolders("shared", "functions", "cmd") {
		return "a conformance suite is for tests alone"
	}
	if !s.inFolders("shared", "functions") {
		return ""
	}
	switch {
	case pathMatches(target, "shared"):
		return ""
	case pathMatches(target, "functions") && s.inFolders("functions"):
		if functionFolder(s.Path) == functionFolder(target) {
			return ""
		}
		return "a function does not know another function"
	case pathMatches(target, "functions"):
		return "imports run functions -> shared, never back"
	default:
		return "nothing that ships imports what does not"
	}
}

// functionFolder is the function a package belongs to: "functions/pay" of "functions/pay/bootstrap".
func functionFolder(below string) string {
	return strings.Join(strings.SplitN(below, "/", 3)[:2], "/")
}

// externalImportViolation judges an import of the standard library or of another module.
func externalImportViolation(s *goPackage, imported string) string {
	if isStandardLibrary(imported) {
		return ""
	}
	known := false
	for _, row := range allowedExternalImports {
		if imported != row.Module && !strings.HasPrefix(imported, row.Module+"/") {
			continue
		}
		known = true
		if s.inFolders(row.Packages...) {
			return ""
		}
	}
	if known {
		return "this package is kept to a few folders (outsiders in imports_test.go)"
	}
	return "no row of outsiders in imports_test.go allows it"
}

// isStandardLibrary tells whether a package is of the standard library: its first element has no point, and it is not ours.
func isStandardLibrary(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") && !isOwnPackage(imported)
}

// TestImportViolation proves the arrows on imports that must not be.
func TestImportViolation(t *testing.T) {
	cases := []struct {
		from, to string
		allowed  bool
	}{
		{"shared/ledger", modulePath + "/shared/fault", true},
		{"shared/ledger", modulePath + "/functions/pay", false},
		{"shared/ledger", modulePath + "/internal/sandbox", false},
		{"shared/ledger", modulePath + "/cmd/gatewayctl", false},
		{"shared/ledger", modulePath + "/shared/ledger/ledgertest", false},
		{"functions/pay/bootstrap", modulePath + "/functions/pay", true},
		{"functions/pay", modulePath + "/functions/payment", false},
		{"functions/pay", modulePath + "/functions/sms", false},
		{"functions/pay", modulePath + "/internal/template", false},
		{"functions/pay", "github.com/aws/aws-sdk-go-v2/aws", false},
		{"functions/pay", "github.com/aws/aws-lambda-go/lambda", false},
		{"functions/pay/bootstrap", "github.com/aws/aws-lambda-go/lambda", true},
		{"functions/pay/bootstrap", "github.com/aws/aws-lambda-go/events", false},
		{"shared/ledger", "github.com/aws/aws-sdk-go-v2/service/dynamodb", false},
		{"shared/ledger/dynamo", "github.com/aws/aws-sdk-go-v2/service/dynamodb", true},
		{"shared/money", "github.com/shopspring/decimal", false},
		{"shared/money", "math/bits", true},
		{"cmd/gatewayctl", modulePath + "/internal/template", true},
	}
	for _, c := range cases {
		if reason := importViolation(&goPackage{Path: c.from}, c.to); (reason == "") != c.allowed {
			t.Errorf("%s -> %s: %q, want allowed %v", c.from, c.to, reason, c.allowed)
		}
	}
}

// heavyPackages are packages that cost a deployed program size or start-up time. The SDK may bring some of them; nobody else.
var heavyPackages = []string{
	"encoding/gob", "expvar", "flag", "html/template", "net/http/httptest", "net/http/pprof", "regexp", "testing", "text/template",
	"github.com/aws/aws-lambda-go/events",
	"github.com/aws/aws-sdk-go-v2/config",
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue",
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression",
}

// TestNoHeavyPackages looks at everything that is linked into the deployed programs.
func TestNoHeavyPackages(t *testing.T) {
	rows, err := listPackages(loadTree(t).Root, "-deps", "-tags=lambda.norpc", "./functions/...")
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
		t.Error("no function links the Lambda runtime: the list is not of the deployed programs")
	}
}

// TestConformanceSuiteNames keeps the names of conformance suites apart from shipped packages: "test" at the end is how rules know them.
func TestConformanceSuiteNames(t *testing.T) {
	for _, s := range loadTree(t).Packages {
		if s.inFolders("shared") && s.isConformanceSuite() && path.Base(s.Path) != path.Base(path.Dir(s.Path))+"test" {
			t.Errorf("%s: a suite is named after the package it stands under", s.Path)
		}
	}
}
