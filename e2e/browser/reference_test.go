package browser

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/contract"
)

// TestReference renders docs/openapi.yaml as make reference does. It opens the page as a file, without a network, and
// reads every operation with its examples.
func TestReference(t *testing.T) {
	if os.Getenv("E2E_BROWSER") == "" {
		t.Skip("make e2e-browser installs the browser and runs this")
	}
	document, err := contract.Load("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "reference.html")
	render := exec.CommandContext(t.Context(), "../../proof/contract/page/render", page)
	if output, err := render.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	p := launchBrowser(t).newTab(t, "en")
	p.enableScripts(true)
	p.setWidth(1400)
	p.call("Network.enable", nil, nil)
	p.call("Network.emulateNetworkConditions",
		map[string]any{"offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}, nil)
	p.open("file://"+page, "Payment, Mobile Money and SMS")
	for _, o := range published(t, document) {
		tag := strings.ReplaceAll(strings.ToLower(o.Raw["tags"].([]any)[0].(string)), " ", "-")
		p.mustEvaluate(`location.hash = "#/` + tag + "/" + strings.ToLower(o.ID) + `"`)
		visible := func(text string) bool {
			return strings.Contains(p.mustEvaluate(`document.body.innerText.replaceAll("\u200b", "")`), text)
		}
		for _, text := range texts(o) {
			p.waitUntil(o.ID+" shows "+text, func() bool { return visible(text) })
		}
		for name, body := range bodies(o) {
			examples := slices.Collect(maps.Values(body.Examples))
			p.waitUntil(o.ID+" shows an example of its "+name, func() bool {
				p.mustEvaluate(selectPayload)
				return slices.ContainsFunc(examples, func(e contract.Example) bool {
					return !slices.ContainsFunc(leaves(e.Value), func(leaf string) bool { return !visible(leaf) })
				})
			})
		}
	}
	for _, consoleError := range p.browser.takeConsoleErrors(p.session) {
		t.Errorf("the browser reports an error: %s", consoleError)
	}
}

// selectPayload selects the payload instead of the curl command, which the page shows first: it opens the menu, and
// then presses its item.
const selectPayload = `(() => {
	const find = (selector, text) => [...document.querySelectorAll(selector)].find(e => e.innerText.trim() === text);
	(find("[role=menuitem]", "Payload") ?? find("[aria-haspopup=menu]", "curl"))?.click();
	return "";
})()`

// published lists the operations and the webhooks of the document.
func published(t *testing.T, document *contract.Document) []contract.Operation {
	t.Helper()
	operations, err := document.Operations()
	if err != nil {
		t.Fatal(err)
	}
	webhooks, err := document.Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	return append(operations, webhooks...)
}

// texts lists what the page must show of an operation: its summary, its parameters and every status.
func texts(o contract.Operation) []string {
	found := []string{o.Raw["summary"].(string)}
	for _, p := range o.Parameters {
		found = append(found, p.Name)
	}
	return append(found, slices.Sorted(maps.Keys(o.Responses))...)
}

// bodies lists the request body and the successful response of an operation.
func bodies(o contract.Operation) map[string]contract.Media {
	found := map[string]contract.Media{}
	for _, body := range o.Body {
		found["request"] = body
	}
	for status, response := range o.Responses {
		if body, has := response.Body["application/json"]; has && strings.HasPrefix(status, "2") {
			found["response"] = body
		}
	}
	return found
}

// leaves lists the strings in an example.
func leaves(value any) []string {
	var found []string
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, inner := range value {
			found = append(found, leaves(inner)...)
		}
	case map[string]any:
		for _, inner := range value {
			found = append(found, leaves(inner)...)
		}
	}
	return found
}
