package browser

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
)

// picturesVariable names a folder for pictures of the console. They are taken only if it is set.
const picturesVariable = "CONSOLE_PICTURES"

// consoleSite is a local run with its console.
type consoleSite struct {
	*merchantSite
	base    string
	console local.Console
}

// newConsoleSite starts a local run with orders of each outcome, and its console.
func newConsoleSite(t *testing.T) *consoleSite {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	s := &consoleSite{base: "http://" + server.Listener.Addr().String()}
	run := localtest.Start(t, localtest.Options{Speed: speed})
	made, err := gatewayctl.LocalConsole{
		System: deployment.System{
			Getenv: os.Getenv, User: "tester@host", Now: time.Now, Rand: rand.Reader, Connect: deployment.Connect,
		},
		Dir: run.Dir, Port: strings.TrimPrefix(s.base, "http://127.0.0.1:"), SandboxURL: run.Info().SandboxURL,
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = made
	server.Start()
	t.Cleanup(server.Close)
	s.merchantSite, s.console = &merchantSite{gateway: run.Info()}, made
	return s
}

// terminalPayment requests a payment whose payer's number ends with digits.
func (s *consoleSite) terminalPayment(t *testing.T, order, digits string) {
	t.Helper()
	header := s.headers("en")
	header.Set("Channel", "ussd")
	body := map[string]string{
		"currency": "XOF", "order_id": order, "amount": "1005", "reference": "Chez <Awa> & Fils", "state": "=1+1",
		"return_url": "https://shop.example/", "cancel_url": "https://shop.example/", "user_msisdn": "070000" + digits,
	}
	jsonRequest{http.MethodPost, s.gateway.BaseURL + "/mobilemoney/v1", header, body}.send(t)
}

// addOrders makes orders that end in different ways, and waits for the first one.
func (s *consoleSite) addOrders(t *testing.T) (first string) {
	t.Helper()
	for i, digits := range []string{"2000", "1001", "1002", "1003", "1005", "1006", "1007", "1008", "1010", "1011"} {
		order := fmt.Sprintf("%s_%d", s.gateway.Merchant, 5000+i)
		s.terminalPayment(t, order, digits)
	}
	return s.gateway.Merchant + "_5000"
}

// consolePage is a page of the console with a text that it must have in each language.
type consolePage struct{ name, path string }

var consolePages = []consolePage{
	{"overview", "/"}, {"attention", "/attention"}, {"search", "/search?q=FIRST"},
	{"found", "/search?amount=1005&payer=00&since=today"},
	{"transaction", "/transaction?kind=pay&id=FIRST"}, {"operators", "/operators"},
	{"deliveries", "/deliveries?merchant=DemoShop&state=all"}, {"merchants", "/merchants"},
	{"reconciliation", "/reconciliation"}, {"merchant", "/merchant?name=DemoShop"}, {"accounts", "/accounts"},
	{"keys", "/keys"}, {"audit", "/audit"},
	{"sandbox", "/sandbox"},
}

// walkedPages are the pages whose pictures are in docs/walkthroughs.md.
var walkedPages = []string{"found", "transaction", "operators", "deliveries"}

// TestConsole opens each page with and without scripts, in both languages and themes, and acts by keyboard.
func TestConsole(t *testing.T) {
	if os.Getenv("E2E_BROWSER") == "" {
		t.Skip("make e2e-browser installs the browser and runs this")
	}
	s, browser := newConsoleSite(t), launchBrowser(t)
	first := s.addOrders(t)
	for _, lang := range []string{"en", "fr"} {
		p := &consoleTab{browser.newTab(t, lang), s, lang}
		p.openSession()
		for _, page := range consolePages {
			p.check(page.name, strings.ReplaceAll(page.path, "FIRST", url.QueryEscape(first)))
		}
	}
	p := &consoleTab{browser.newTab(t, "en"), s, "en"}
	p.openSession()
	p.checkSearchByKeyboard(first)
	p.checkAct(first)
	p.checkLive()
	p.checkLanguageLink()
	p.checkSecondBrowser(browser)
}

// consoleTab is a person at the console, with a keyboard.
type consoleTab struct {
	*tab
	site *consoleSite
	lang string
}

// openSession opens a new one-time address, which leads to the overview by itself.
func (p *consoleTab) openSession() {
	p.Helper()
	p.open(p.site.base+p.site.console.Opening(), map[string]string{"en": "Overview", "fr": "Vue d’ensemble"}[p.lang])
}

// check checks one page, with and without scripts. There is no finding of axe-core in both themes, no error of the
// content policy, and no horizontal scrolling.
func (p *consoleTab) check(name, path string) {
	p.Helper()
	p.goTo(path)
	p.waitUntil("what runs in the background", func() bool {
		runs := p.mustEvaluate(`document.querySelector('[role=status]')?.innerText || ""`)
		if strings.Contains(runs, "being read") || strings.Contains(runs, "ecture en cours") {
			p.goTo(path)
			return false
		}
		return true
	})
	if lang := p.mustEvaluate(`document.documentElement.lang`); lang != p.lang {
		p.Errorf("%s: the language is %s", name, lang)
	}
	if count := p.mustEvaluate(`document.querySelectorAll("h1").length`); count != "1" {
		p.Errorf("%s has %s headings of the first level", name, count)
	}
	if alert := p.mustEvaluate(`document.querySelector("[role=alert]")?.innerText || ""`); alert != "" {
		p.Errorf("%s: %s", name, alert)
	}
	for _, scheme := range []string{"dark", "light"} {
		p.setColorScheme(scheme)
		p.checkAxe(name + ", " + p.lang + ", " + scheme)
		for _, width := range []int{360, 1280} {
			p.setWidth(width)
			p.savePicture(fmt.Sprintf("%s-%s-%s-%d", name, p.lang, scheme, width))
			if wider := p.mustEvaluate(`document.documentElement.scrollWidth > innerWidth`); wider == "true" {
				p.Errorf("%s scrolls horizontally on %d pixels", name, width)
			}
		}
	}
	if p.lang == "en" && slices.Contains(walkedPages, name) {
		p.setWidth(1000)
		p.saveScreenshot("console-"+name, 700)
	}
	p.enableScripts(true)
	p.goTo(path)
	if heading := p.mustEvaluate(`document.querySelector("h1").innerText`); heading == "" {
		p.Errorf("%s has no heading with scripts", name)
	}
	p.enableScripts(false)
	p.checkNoErrors(name)
}

// goTo loads a page of the console.
func (p *consoleTab) goTo(path string) {
	p.Helper()
	p.call("Page.navigate", map[string]any{"url": p.site.base + path}, nil)
	p.waitUntil(path, func() bool {
		state, err := p.evaluate(`document.readyState + " " + location.href`)
		return err == nil && state == "complete "+p.site.base+path
	})
}

// mainText is the text of the page below its navigation.
func (p *consoleTab) mainText() string {
	p.Helper()
	return p.mustEvaluate(`document.querySelector("main").innerText`)
}

func (p *consoleTab) checkNoErrors(name string) {
	p.Helper()
	for _, consoleError := range p.browser.takeConsoleErrors(p.session) {
		p.Errorf("%s: the browser reports an error: %s", name, consoleError)
	}
}

// savePicture takes a picture, if a folder is named.
func (p *consoleTab) savePicture(name string) {
	p.Helper()
	folder := os.Getenv(picturesVariable)
	if folder == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), p.screenshot(wholePage), 0o600); err != nil {
		p.Error(err)
	}
}

// tabUntil presses Tab until an element has the focus, which must be visible.
func (p *consoleTab) tabUntil(want string) {
	p.Helper()
	for range 150 {
		p.press("Tab")
		if p.focusedElement() == want {
			outline := p.mustEvaluate(`getComputedStyle(document.activeElement).outlineStyle`)
			if outline == "none" {
				p.Errorf("the focus on %s is not visible", want)
			}
			return
		}
	}
	p.Fatalf("Tab never leads to %q", want)
}

// checkSearchByKeyboard skips to the content, searches from the overview, and follows the first result.
func (p *consoleTab) checkSearchByKeyboard(order string) {
	p.Helper()
	p.goTo("/")
	p.tabTo("#main")
	p.press("Enter")
	p.waitUntil("the content has the focus", func() bool { return p.focusedElement() == "main" })
	p.goTo("/")
	p.tabUntil("find")
	p.typeText(order)
	p.press("Enter")
	p.waitForTitle("Search")
	p.tabUntil("/transaction?id=" + order + "&kind=pay")
	p.press("Enter")
	p.waitForTitle("payment " + order)
	p.checkNoErrors("the search")
}

// checkAct sends a transaction's notifications again: its dry run, a reason, and the result.
func (p *consoleTab) checkAct(order string) {
	p.Helper()
	p.waitUntil("the notification is delivered", func() bool {
		p.goTo("/transaction?id=" + order + "&kind=pay")
		return strings.Contains(p.mustEvaluate(`document.querySelector(".acts").innerText`), "Send again")
	})
	p.mustEvaluate(`[...document.querySelectorAll(".acts button")].find(b => b.innerText == "Send again").focus()`)
	p.press("Enter")
	p.waitForTitle("Act")
	p.checkAxe("the dry run")
	p.savePicture("act-en-light-1280")
	if text := p.mainText(); !strings.Contains(text, "nothing was changed") {
		p.Errorf("the dry run is %s", text)
	}
	p.tabUntil("reason")
	p.typeText("requested by the merchant")
	p.tabTo("1")
	p.press("Enter")
	p.waitUntil("the act is done", func() bool {
		return strings.Contains(p.mainText(), "Done.")
	})
	p.goTo("/audit")
	if text := p.mainText(); !strings.Contains(text, "requested by the merchant") {
		p.Errorf("the audit has no record of it: %s", text)
	}
	p.checkNoErrors("the act")
}

// checkLive sees a new order on the open page of the sandbox, without loading it again.
func (p *consoleTab) checkLive() {
	p.Helper()
	p.enableScripts(true)
	defer p.enableScripts(false)
	p.goTo("/sandbox")
	order := p.site.newOrderID()
	p.site.terminalPayment(p.T, order, "2000")
	p.waitUntil("the new order", func() bool {
		return strings.Contains(p.mainText(), order)
	})
	p.checkNoErrors("the live page")
}

// checkLanguageLink changes the language, which the next page keeps.
func (p *consoleTab) checkLanguageLink() {
	p.Helper()
	p.goTo("/keys?lang=fr")
	p.goTo("/merchants")
	if lang := p.mustEvaluate(`document.documentElement.lang`); lang != "fr" {
		p.Errorf("the next page is in %q", lang)
	}
}

// checkSecondBrowser opens a used address in another browser.
func (p *consoleTab) checkSecondBrowser(browser *browser) {
	p.Helper()
	opening := p.site.base + p.site.console.Opening()
	p.open(opening, "Vue d’ensemble")
	p.open(opening, "Vue d’ensemble")
	other := browser.newTab(p.T, "en")
	other.open(opening, "Refused")
	other.open(p.site.base+"/", "Refused")
	other.checkAxe("a refused page")
}
