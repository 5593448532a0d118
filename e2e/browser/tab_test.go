package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pageTimeout limits the waits of a user.
const pageTimeout = 20 * time.Second

// tab is one page of the browser. Its methods fail the test if a command fails.
type tab struct {
	*testing.T
	browser *browser
	session string
	axe     string
}

// newTab opens a tab with its own cookies, a phone's size, and scripts disabled.
func (c *browser) newTab(t *testing.T, lang string) *tab {
	t.Helper()
	p := &tab{T: t, browser: c}
	var context, target, session struct {
		BrowserContextID string `json:"browserContextId,omitempty"`
		TargetID         string `json:"targetId,omitempty"`
		SessionID        string `json:"sessionId,omitempty"`
	}
	p.call("Target.createBrowserContext", nil, &context)
	p.call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": context.BrowserContextID},
		&target)
	p.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	p.session = session.SessionID
	for _, domain := range []string{"Page", "Log", "Runtime"} {
		p.call(domain+".enable", nil, nil)
	}
	p.enableScripts(false)
	p.call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	p.call("Emulation.setUserAgentOverride", map[string]any{"userAgent": "e2e", "acceptLanguage": lang}, nil)
	p.setWidth(400)
	axe, err := os.ReadFile(filepath.Join(browserToolsDir(t), "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	p.axe = string(axe)
	return p
}

// call sends a command to the tab.
func (p *tab) call(method string, params, result any) {
	p.Helper()
	if err := p.tryCall(method, params, result); err != nil {
		p.Fatal(err)
	}
}

// tryCall sends a command to the tab and decodes its result, if one is wanted.
func (p *tab) tryCall(method string, params, result any) error {
	raw, err := p.browser.call(p.session, method, params)
	if err == nil && result != nil {
		err = json.Unmarshal(raw, result)
	}
	return err
}

// setWidth sets the width of the window in pixels.
func (p *tab) setWidth(width int) {
	p.Helper()
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 700, "deviceScaleFactor": 1,
		"mobile": false}, nil)
}

// open loads an address and waits for a title with a prefix.
func (p *tab) open(address, title string) {
	p.Helper()
	p.call("Page.navigate", map[string]any{"url": address}, nil)
	p.waitForTitle(title)
}

// waitForTitle waits until a page is complete and its title has a prefix.
func (p *tab) waitForTitle(title string) {
	p.Helper()
	p.waitUntil("the title "+title, func() bool {
		state, err := p.evaluate(`document.readyState + " " + document.title`)
		return err == nil && strings.HasPrefix(state, "complete "+title)
	})
}

// waitUntil polls a condition.
func (p *tab) waitUntil(description string, condition func() bool) {
	p.Helper()
	for deadline := time.Now().Add(pageTimeout); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			state, _ := p.evaluate(`location.href + " " + document.title + " " + (document.body || {}).innerText`)
			p.Fatalf("timeout: %s; the page is %s", description, state)
		}
	}
}

// evaluate evaluates an expression in an isolated world, which sees the page. The page's content policy does not apply
// there, and the page's scripts stay disabled.
func (p *tab) evaluate(expression string) (string, error) {
	var frames struct {
		FrameTree struct {
			Frame struct {
				ID string `json:"id"`
			} `json:"frame"`
		} `json:"frameTree"`
	}
	var world struct {
		ExecutionContextID int `json:"executionContextId"`
	}
	var value struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		ExceptionDetails json.RawMessage `json:"exceptionDetails"`
	}
	err := p.tryCall("Page.getFrameTree", nil, &frames)
	if err == nil {
		frame := map[string]any{"frameId": frames.FrameTree.Frame.ID, "worldName": "test"}
		err = p.tryCall("Page.createIsolatedWorld", frame, &world)
	}
	if err == nil {
		err = p.tryCall("Runtime.evaluate", map[string]any{"expression": expression,
			"contextId": world.ExecutionContextID, "awaitPromise": true, "returnByValue": true}, &value)
	}
	if err != nil {
		return "", err
	}
	if value.ExceptionDetails != nil {
		return "", fmt.Errorf("%s", value.ExceptionDetails)
	}
	var text string
	if json.Unmarshal(value.Result.Value, &text) != nil {
		text = string(value.Result.Value)
	}
	return text, nil
}

// mustEvaluate evaluates an expression, which must not fail.
func (p *tab) mustEvaluate(expression string) string {
	p.Helper()
	text, err := p.evaluate(expression)
	if err != nil {
		p.Fatal(err)
	}
	return text
}

// press presses and releases a named key.
func (p *tab) press(key string) {
	p.Helper()
	code := map[string]int{"Tab": 9, "Enter": 13}[key]
	params := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
	if key == "Enter" {
		params["text"] = "\r"
	}
	p.call("Input.dispatchKeyEvent", params, nil)
	delete(params, "text")
	params["type"] = "keyUp"
	p.call("Input.dispatchKeyEvent", params, nil)
}

// typeText types a text character by character.
func (p *tab) typeText(text string) {
	p.Helper()
	for _, character := range text {
		p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": string(character),
			"text": string(character)}, nil)
		p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": string(character)}, nil)
	}
}

// focusedElement identifies the element with the focus: the id of a field, the value of a button, the address of a
// link, or the class.
func (p *tab) focusedElement() string {
	p.Helper()
	const identify = `(e => e.id || e.value || e.getAttribute("href") || e.className || e.tagName)`
	return p.mustEvaluate(identify + `(document.activeElement)`)
}

// tabTo presses Tab once and checks which element gets the focus.
func (p *tab) tabTo(want string) {
	p.Helper()
	p.press("Tab")
	if got := p.focusedElement(); got != want {
		p.Fatalf("Tab leads to %q, want %q", got, want)
	}
}

// wholePage is more pixels than any page is high.
const wholePage = 1 << 16

// screenshot takes a picture of a page, at most its first pixels.
func (p *tab) screenshot(mostHeight float64) []byte {
	p.Helper()
	var layout struct {
		Size struct{ Width, Height float64 } `json:"cssContentSize"`
	}
	p.call("Page.getLayoutMetrics", nil, &layout)
	var picture struct {
		Data string `json:"data"`
	}
	p.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true, "clip": map[string]any{
		"x": 0, "y": 0, "width": layout.Size.Width, "height": min(layout.Size.Height, mostHeight), "scale": 1,
	}}, &picture)
	raw, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		p.Fatal(err)
	}
	return raw
}
