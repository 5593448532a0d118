package page_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mobilegateway/internal/contract"
	"mobilegateway/internal/contract/page"
)

// update is set by `go test ./internal/contract/page -update`: the page is written instead of compared.
var update = flag.Bool("update", false, "write docs/reference.html")

var (
	docs      = filepath.FromSlash("../../../docs")
	reference = filepath.Join(docs, "reference.html")
)

func rendered(t *testing.T) []byte {
	t.Helper()
	document, err := contract.Load(filepath.Join(docs, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := page.Render(document)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestCurrent fails where docs/reference.html is not what docs/openapi.yaml gives.
func TestCurrent(t *testing.T) {
	text := rendered(t)
	if *update {
		if err := os.WriteFile(reference, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.ReadFile(reference)
	if err != nil || !bytes.Equal(held, text) {
		t.Errorf("docs/reference.html is not made of docs/openapi.yaml as it stands: go test ./internal/contract/page -update (%v)", err)
	}
}

// TestSelfContained looks for whatever the page would have to fetch, and for links into it that lead nowhere.
func TestSelfContained(t *testing.T) {
	text := string(rendered(t))
	for _, forbidden := range []string{"<script", "<link", "<img", "<iframe", "@import", "url(", " src="} {
		if strings.Contains(text, forbidden) {
			t.Errorf("the page has %s", forbidden)
		}
	}
	for _, link := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		name, inside := strings.CutPrefix(link[1], "#")
		if !inside {
			if _, err := os.Stat(filepath.Join(docs, link[1])); err != nil {
				t.Errorf("the link %s leads nowhere", link[1])
			}
			continue
		}
		if strings.Count(text, ` id="`+name+`"`) != 1 {
			t.Errorf("the link #%s has no single place", name)
		}
	}
}

// TestComplete looks for every operation, parameter and error in the page.
func TestComplete(t *testing.T) {
	text := string(rendered(t))
	document, err := contract.Load(filepath.Join(docs, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	operations, err := document.Operations()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range operations {
		_, article, found := strings.Cut(text, `id="`+o.ID+`"`)
		article, _, _ = strings.Cut(article, "</article>")
		if !found || !strings.Contains(article, o.Path) {
			t.Errorf("%s is not in the page", o.ID)
		}
		for _, p := range o.Parameters {
			if !strings.Contains(article, "<code>"+p.Name+"</code>") {
				t.Errorf("%s: %s is not in the page", o.ID, p.Name)
			}
		}
		for status := range o.Responses {
			if !strings.Contains(article, "<b>"+status+"</b>") {
				t.Errorf("%s: %s is not in the page", o.ID, status)
			}
		}
	}
}
