package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// TestImports checks the rules on imports that depguard cannot express, because they compare two paths: a function does
// not import another function, and only tests import a conformance suite.
func TestImports(t *testing.T) {
	for _, s := range loaded(t).Packages {
		for _, imported := range s.Imports {
			if reason := importViolation(s, imported); reason != "" {
				t.Errorf("%s imports %s: %s", s.Path, imported, reason)
			}
		}
	}
}

// refuse returns why a package may not import another, "" if it may.
func refuse(s *source, imported string) string {
	target, own := strings.CutPrefix(imported, module+"/")
	switch {
	case !own:
		return ""
	case !s.suite() && strings.HasSuffix(target, "test") && s.under("shared", "functions", "cmd"):
		return "only tests import a conformance suite"
	case s.under("functions") && below(target, "functions") && family(s.Path) != family(target):
		return "a function does not import another function"
	default:
		return ""
	}
}

// family returns the function that a package belongs to: "functions/pay" of "functions/pay/bootstrap".
func family(below string) string {
	return strings.Join(strings.SplitN(below, "/", 3)[:2], "/")
}

// standard reports whether a package is of the standard library: its first element has no dot, and it is not ours.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") && !isOwnPackage(imported)
}

// TestRefuse proves the rules on planted imports.
func TestRefuse(t *testing.T) {
	cases := []struct {
		from, to string
		allowed  bool
	}{
		{"shared/ledger", module + "/shared/fault", true},
		{"shared/ledger", module + "/shared/ledger/ledgertest", false},
		{"shared/ledger/ledgertest", module + "/shared/operator/operatortest", true},
		{"functions/pay/bootstrap", module + "/functions/pay", true},
		{"functions/pay", module + "/functions/payment", false},
		{"functions/pay", module + "/functions/sms", false},
		{"cmd/gatewayctl", module + "/internal/template", true},
		{"cmd/gatewayctl", module + "/shared/ledger/ledgertest", false},
	}
	for _, c := range cases {
		if reason := importViolation(&goPackage{Path: c.from}, c.to); (reason == "") != c.allowed {
			t.Errorf("%s -> %s: %q, want allowed %v", c.from, c.to, reason, c.allowed)
		}
	}
}

// heavy are packages that cost a deployed program size or start-up time. Only the SDK may link some of them.
var heavy = []string{
	"encoding/gob", "expvar", "flag", "html/template", "net/http/httptest", "net/http/pprof", "regexp", "testing",
	"text/template",
	"github.com/aws/aws-lambda-go/events",
	"github.com/aws/aws-sdk-go-v2/config",
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue",
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression",
}

// TestHeavy checks all packages that are linked into the deployed programs, those of other modules included.
func TestHeavy(t *testing.T) {
	rows, err := list(loaded(t).Top, "-deps", "-tags=lambda.norpc", "./functions/...")
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

// TestSuites checks the names of conformance suites: other rules recognise a suite by the ending "test".
func TestSuites(t *testing.T) {
	for _, s := range loaded(t).Packages {
		if s.under("shared") && s.suite() && path.Base(s.Path) != path.Base(path.Dir(s.Path))+"test" {
			t.Errorf("%s: name a suite after the package that it tests, and place it below that package", s.Path)
		}
	}
}
