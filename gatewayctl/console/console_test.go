package console_test

import (
	"context"
	"crypto/rand"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/console"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/proof/kits/gatewayctltest"
)

// host is the console's own address.
const host = "127.0.0.1:3003"

// site is a console over a deployment in memory, with a browser that has its cookies.
type site struct {
	t       *testing.T
	console *console.Console
	cookies map[string]string
}

// newSite returns a console of a deployment, with its session open.
func newSite(t *testing.T, d *gatewayctltest.Tool, changes ...func(*console.Config)) *site {
	t.Helper()
	s := closedSite(t, d, changes...)
	if got := s.get(s.console.Opening()); got.Code != http.StatusOK {
		t.Fatalf("the opening: %d %s", got.Code, got.Body)
	}
	return s
}

func closedSite(t *testing.T, d *gatewayctltest.Tool, changes ...func(*console.Config)) *site {
	t.Helper()
	config := console.Config{
		Run: runOf(d), Now: d.Clock(), Port: "3003", Where: "ledger", AllowChanges: true,
		Rand: rand.Reader,
	}
	for _, change := range changes {
		change(&config)
	}
	made, err := console.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t, made, map[string]string{}}
}

// runOf runs command lines on a deployment in memory.
func runOf(d *gatewayctltest.Tool) console.Run {
	return gatewayctl.NewRunner(deployment.System{
		Getenv: func(name string) string { return d.Variables[name] }, User: "ama@host", Now: d.Clock(),
		Rand: rand.Reader,
		Connect: func(system deployment.System, names deployment.Names) (*deployment.Stores, error) {
			return d.Connect(system, names)
		},
	})
}

// send sends a request with the cookies and keeps the new ones.
func (s *site) send(r *http.Request) *httptest.ResponseRecorder {
	s.t.Helper()
	for name, value := range s.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // of a request
	}
	recorder := httptest.NewRecorder()
	s.console.ServeHTTP(recorder, r)
	for _, c := range recorder.Result().Cookies() {
		s.cookies[c.Name] = c.Value
	}
	return recorder
}

func (s *site) request(method, path string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, path, body)
	r.Host = host
	return r
}

func (s *site) get(path string) *httptest.ResponseRecorder {
	s.t.Helper()
	return s.send(s.request(http.MethodGet, path, http.NoBody))
}

// mustGet returns a page that must be there, without the lines that it must not have.
func (s *site) mustGet(path string) string {
	s.t.Helper()
	got := s.get(path)
	if got.Code != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, got.Code, got.Body)
	}
	return got.Body.String()
}

// expect checks that a page has texts. It loads the page again while a command runs in the background.
func (s *site) expect(path string, texts ...string) string {
	s.t.Helper()
	page := s.mustGet(path)
	for range 100 { // each waits for the command
		if !strings.Contains(page, "being read") {
			break
		}
		page = s.mustGet(path)
	}
	for _, text := range texts {
		if !strings.Contains(page, text) {
			s.t.Errorf("%s has no %q:\n%s", path, text, mainOf(page))
		}
	}
	return page
}

// mainOf is the part of a page below its navigation.
func mainOf(page string) string {
	_, after, _ := strings.Cut(page, "<main")
	return after
}

var formToken = regexp.MustCompile(`name="token" value="([a-z0-9]+)"`)

// post sends a form of the console's own page.
func (s *site) post(path string, form url.Values) *httptest.ResponseRecorder {
	s.t.Helper()
	r := s.request(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+host)
	return s.send(r)
}

// act presses the button of an act on a page: the form with these words.
func (s *site) act(page string, words ...string) url.Values {
	s.t.Helper()
	token := formToken.FindStringSubmatch(page)
	if token == nil {
		s.t.Fatalf("the page has no form of an act:\n%s", mainOf(page))
	}
	return url.Values{"token": {token[1]}, "word": words, "back": {"/attention"}}
}

// paths are the pages without parameters.
var paths = []string{
	"/", "/attention", "/search", "/operators", "/deliveries", "/reconciliation", "/merchants", "/accounts", "/keys",
	"/audit",
}

func newWorld(t *testing.T) *gatewayctltest.Tool {
	t.Helper()
	d, shop := gatewayctltest.NewQuiet(t)
	d.AddDeliveredPayment(shop, 1, d.Now)
	d.AddPendingPayment(shop, 2, d.Now)
	d.AddWaitingPayment(shop, 3)
	d.AddUnknownCharge(shop, "c1")
	return d
}

// Each page is there in both languages, with its own title and the search form.
func TestEveryPage(t *testing.T) {
	d := newWorld(t)
	s := newSite(t, d)
	titles := map[string]bool{}
	for _, lang := range []string{"en", "fr"} {
		for _, path := range append(slices.Clone(paths), "/merchant?name=ShopA", "/transaction?kind=pay&id=ShopA_1",
			"/deliveries?merchant=ShopA") {
			glue := "?"
			if strings.Contains(path, "?") {
				glue = "&"
			}
			page := s.expect(path+glue+"lang="+lang, `<html lang="`+lang+`">`, `role="search"`, `type="search"`,
				`<main id="main"`, `class="skip"`)
			title, _, _ := strings.Cut(page[strings.Index(page, "<title>"):], "</title>")
			titles[title] = true
			if strings.Contains(page, `role="alert"`) {
				t.Errorf("%s in %s reports a failure:\n%s", path, lang, mainOf(page))
			}
		}
	}
	if len(titles) < 20 {
		t.Errorf("%d titles: %v", len(titles), slices.Sorted(maps.Keys(titles)))
	}
}

func TestTransaction(t *testing.T) {
	d := newWorld(t)
	s := newSite(t, d)
	s.expect("/transaction?kind=pay&id=ShopA_1", "ShopA_1", "The payer paid once", "<svg", "delivered",
		`class="node on last"`, "1,000 XOF", "gatewayctl payment show -- ShopA_1")
	s.expect("/transaction?kind=pay&id=ShopA_2", "pending", "Look it up now", `name="word" value="resolve"`)
	s.expect("/transaction?kind=pay&id=nothing", `role="alert"`, "there is no payment nothing")
}

func TestSearch(t *testing.T) {
	d := newWorld(t)
	s := newSite(t, d)
	s.expect("/search?q=ShopA_1", `href="/transaction?id=ShopA_1&amp;kind=pay"`, "gatewayctl find -- ShopA_1")
	s.expect("/search?q=ShopA_9", `role="alert"`, "no transaction has this value")
	s.expect("/search?q=--yes", "gatewayctl find -- --yes", "no transaction has this value")
}
