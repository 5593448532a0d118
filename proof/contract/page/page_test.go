package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
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
	_, rest, _ = strings.Cut(rest, options)
	set, _, _ := strings.Cut(rest, ";\n")
	var rendered any
	var settings struct{ DisableTelemetry bool }
	if err := cmp.Or(json.Unmarshal([]byte(embedded), &rendered), json.Unmarshal([]byte(set), &settings)); err != nil {
		t.Fatal(err)
	}
	want, wantErr := json.Marshal(document.Root())
	if got, err := json.Marshal(rendered); cmp.Or(wantErr, err) != nil || !bytes.Equal(got, want) {
		t.Error("docs/reference.html is not made from docs/openapi.yaml: run make reference")
	}
	if !settings.DisableTelemetry {
		t.Error("disableTelemetry is not set: the page would report its readers to Redocly")
	}
}
