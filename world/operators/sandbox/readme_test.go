package sandbox

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Every curl command of the README works unchanged, and every call of the control port has one.
func TestReadme(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl here")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("sandbox.go")
	if err != nil {
		t.Fatal(err)
	}
	r := newTestSandbox(t)
	r.pay("tpe", "DemoShop_1", "0700001003")
	server := httptest.NewServer(r.sandbox.Handler())
	defer server.Close()
	slot, called := "", ""
	for _, line := range regexp.MustCompile(`(?m)^curl (?:.*\\\n)*.*$`).FindAllString(string(text), -1) {
		shell := exec.CommandContext(t.Context(), "sh", "-c", line)
		shell.Env = append(os.Environ(), "SANDBOX="+server.URL, "SLOT="+slot)
		output, err := shell.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, output)
		}
		if strings.Contains(line, "POST \"$SANDBOX/sandbox/v1/slots\"") {
			slot = textBetween(string(output), `"id":"`, `"`)
		}
		method := "GET"
		if _, after, found := strings.Cut(line, " -X "); found {
			method, _, _ = strings.Cut(after, " ")
		}
		called += method + " " + regexp.MustCompile(`/sandbox/v1/[a-z]+`).FindString(line) + "\n"
	}
	for _, route := range regexp.MustCompile(`"([A-Z]+ /sandbox/v1/[a-z]+)`).FindAllStringSubmatch(string(source), -1) {
		contains(t, "README.md has no curl of", called, route[1]+"\n")
	}
}
