package page

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mobilegateway/proof/contract"
)

// definition precedes the document in the page; options precedes the settings of Redoc.
const (
	definition = "const __redoc_definition = "
	options    = "const __redoc_options = "
)

// TestCurrent fails when docs/reference.html shows another document than docs/openapi.yaml, or may use the network.
func TestCurrent(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	page, err := os.ReadFile(filepath.Join(docs, "reference.html"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := contract.Load(filepath.Join(docs, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), definition)
	embedded, rest, _ := strings.Cut(rest, ";\n")
	if !reflect.DeepEqual(decode(t, embedded), values(t, document.Root())) {
		t.Error("docs/reference.html is not made from docs/openapi.yaml: run make reference")
	}
	_, rest, _ = strings.Cut(rest, options)
	set, _, _ := strings.Cut(rest, ";\n")
	if telemetry := decode(t, set).(map[string]any)["disableTelemetry"]; telemetry != true {
		t.Errorf("disableTelemetry is %v: the page would report its readers to Redocly", telemetry)
	}
}

// values turns a document into the types that a JSON text decodes to.
func values(t *testing.T, document contract.Object) any {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(text))
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %.80q", err, text)
	}
	return value
}
