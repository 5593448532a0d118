package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// outside is one row of the packages of other modules that ours may import, and where.
type outside struct {
	Module string   // import path or its beginning
	Where  []string // folders of ours
	Why    string
}

// outsiders is the whole list: a package of another module that has no row here is an offence.
var outsiders = []outside{
	{"github.com/aws/aws-lambda-go/lambda", []string{"functions/*/bootstrap", "shared/apigw", "bench/hello"}, "the runtime's loop"},
	{"github.com/aws/aws-lambda-go/lambdacontext", []string{"functions/*/bootstrap", "shared/apigw"}, "the request id"},
	{"github.com/aws/aws-sdk-go-v2", []string{"shared/ledger/dynamo", "shared/merchant/dynamo", "shared/webhook/dynamo", "shared/limit/dynamo", "shared/secret/aws", "shared/awsclient",
		"functions/*/bootstrap", "cmd", "internal"}, "the stores, the secrets and what wires them"},
	{"github.com/aws/smithy-go", []string{"shared/ledger/dynamo", "shared/merchant/dynamo", "shared/limit/dynamo", "shared/secret/aws", "shared/awsclient",
		"cmd", "internal"}, "the SDK's errors"},
	{"code.dny.dev/ssrf", []string{"shared/outgoing"}, "the list of special addresses"},
	{"pgregory.net/rapid", []string{"internal/simulate", "internal/sandbox"}, "seeded histories; tests may use it everywhere"},
	{"go.yaml.in/yaml/v3", []string{"internal/template", "internal/contract", "deploy"}, "template.yaml, and docs/openapi.yaml"},
	{"github.com/santhosh-tekuri/jsonschema/v6", []string{"internal/contract"}, "JSON Schema 2020-12, for the published contract"},
	{"github.com/BurntSushi/toml", []string{"deploy"}, "samconfig.toml"},
	{"github.com/alecthomas/kong", []string{"internal/control"}, "gatewayctl's command line: typed, with no dependency of its own"},
}

// TestArrows keeps the direction of imports: functions -> shared -> standard library and SDK, and nothing that ships
// knows internal/ or cmd/.
func TestArrows(t *testing.T) {
	for _, s := range loaded(t).Packages {
		for _, imported := range s.Imports {
			if why := refuse(s, imported); why != "" {
				t.Errorf("%s imports %s: %s", s.Path, imported, why)
			}
		}
	}
}

// refuse says why a package may not import another, "" where it may.
func refuse(s *source, imported string) string {
	if !ours(imported) {
		return refuseOutside(s, imported)
	}
	target := strings.TrimPrefix(imported, module+"/")
	if !s.suite() && strings.HasSuffix(target, "test") && s.under("shared", "functions", "cmd") {
		return "a conformance suite is for tests alone"
	}
	if !s.under("shared", "functions") {
		return ""
	}
	switch {
	case below(target, "shared"):
		return ""
	case below(target, "functions") && s.under("functions"):
		if family(s.Path) == family(target) {
			return ""
		}
		return "a function does not know another function"
	case below(target, "functions"):
		return "imports run functions -> shared, never back"
	default:
		return "nothing that ships imports what does not"
	}
}

// family is the function a package belongs to: "functions/pay" of "functions/pay/bootstrap".
func family(below string) string {
	return strings.Join(strings.SplitN(below, "/", 3)[:2], "/")
}

// refuseOutside judges an import of the standard library or of another module.
func refuseOutside(s *source, imported string) string {
	if standard(imported) {
		return ""
	}
	known := false
	for _, row := range outsiders {
		if imported != row.Module && !strings.HasPrefix(imported, row.Module+"/") {
			continue
		}
		known = true
		if s.under(row.Where...) {
			return ""
		}
	}
	if known {
		return "this package is kept to a few folders (outsiders in imports_test.go)"
	}
	return "no row of outsiders in imports_test.go allows it"
}

// standard tells whether a package is of the standard library: its first element has no point, and it is not ours.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") && !ours(imported)
}

// TestRefuse proves the arrows on imports that must not be.
func TestRefuse(t *testing.T) {
	cases := []struct {
		from, to string
		allowed  bool
	}{
		{"shared/ledger", module + "/shared/fault", true},
		{"shared/ledger", module + "/functions/pay", false},
		{"shared/ledger", module + "/internal/sandbox", false},
		{"shared/ledger", module + "/cmd/gatewayctl", false},
		{"shared/ledger", module + "/shared/ledger/ledgertest", false},
		{"functions/pay/bootstrap", module + "/functions/pay", true},
		{"functions/pay", module + "/functions/payment", false},
		{"functions/pay", module + "/functions/sms", false},
		{"functions/pay", module + "/internal/template", false},
		{"functions/pay", "github.com/aws/aws-sdk-go-v2/aws", false},
		{"functions/pay", "github.com/aws/aws-lambda-go/lambda", false},
		{"functions/pay/bootstrap", "github.com/aws/aws-lambda-go/lambda", true},
		{"functions/pay/bootstrap", "github.com/aws/aws-lambda-go/events", false},
		{"shared/ledger", "github.com/aws/aws-sdk-go-v2/service/dynamodb", false},
		{"shared/ledger/dynamo", "github.com/aws/aws-sdk-go-v2/service/dynamodb", true},
		{"shared/money", "github.com/shopspring/decimal", false},
		{"shared/money", "math/bits", true},
		{"cmd/gatewayctl", module + "/internal/template", true},
	}
	for _, c := range cases {
		if why := refuse(&source{Path: c.from}, c.to); (why == "") != c.allowed {
			t.Errorf("%s -> %s: %q, want allowed %v", c.from, c.to, why, c.allowed)
		}
	}
}

// heavy are packages that cost a deployed program size or start-up time. The SDK may bring some of them; nobody else.
var heavy = []string{
	"encoding/gob", "expvar", "flag", "html/template", "net/http/httptest", "net/http/pprof", "regexp", "testing", "text/template",
	"github.com/aws/aws-lambda-go/events",
	"github.com/aws/aws-sdk-go-v2/config",
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue",
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression",
}

// TestHeavy looks at everything that is linked into the deployed programs.
func TestHeavy(t *testing.T) {
	rows, err := list(loaded(t).Top, "-deps", "-tags=lambda.norpc", "./functions/...")
	if err != nil {
		t.Fatal(err)
	}
	linked := false
	for _, row := range rows {
		linked = linked || row.ImportPath == "github.com/aws/aws-lambda-go/lambda"
		if strings.HasPrefix(row.ImportPath, "github.com/aws/") || standard(row.ImportPath) {
			continue
		}
		for _, imported := range row.Imports {
			if slices.Contains(heavy, imported) {
				t.Errorf("%s imports %s, which makes every program larger or slower to start", row.ImportPath, imported)
			}
		}
	}
	if !linked {
		t.Error("no function links the Lambda runtime: the list is not of the deployed programs")
	}
}

// TestSuites keeps the names of conformance suites apart from shipped packages: "test" at the end is how rules know them.
func TestSuites(t *testing.T) {
	for _, s := range loaded(t).Packages {
		if s.under("shared") && s.suite() && path.Base(s.Path) != path.Base(path.Dir(s.Path))+"test" {
			t.Errorf("%s: a suite is named after the package it stands under", s.Path)
		}
	}
}
