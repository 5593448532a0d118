package console_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/gatewayctl/console"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// hostileText has markup, a command of a shell, an escape sequence, a mark that reverses text, and a formula.
const hostileText = `=1+1"><script>alert(1)</script>'$(id)` + "\x1b[31m\u202e" + `{{.}}`

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="word"[^>]*>`)

// A text of a merchant is never markup, an escape sequence or a command, on any page.
func TestHostileTexts(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	charge := d.AddUnknownCharge(shop, "c1")
	d.Update(charge, func(e *ledger.Entry) {
		e.Request.Correlator, e.Request.ReferenceCode, e.Request.Reference = hostileText, hostileText, hostileText
		e.Outbox.URL, e.Route.Operator = "https://shop.example/"+hostileText, hostileText
	})
	d.AddWaitingPayment(shop, 3, func(e *ledger.Entry) {
		e.Outbox.Waiting[0].DeadReason, e.Outbox.URL = hostileText, "https://shop.example/?secret="+hostileText
	})
	s := newSite(t, d)
	d.Now = d.Now.Add(24 * time.Hour)
	pages := append([]string{}, paths...)
	pages = append(pages, "/merchant?name="+url.QueryEscape(hostileText), "/search?q="+url.QueryEscape(hostileText),
		"/search?merchant="+url.QueryEscape(hostileText), "/transaction?kind=charge&id="+charge.ID,
		"/transaction?kind=pay&id="+url.QueryEscape(hostileText), "/transaction?kind="+url.QueryEscape(hostileText),
		"/deliveries?merchant=ShopA", "/deliveries?merchant="+url.QueryEscape(hostileText),
		"/deliveries?merchant=ShopA&state="+url.QueryEscape(hostileText), "/?day="+url.QueryEscape(hostileText))
	seen := false
	for _, path := range pages {
		page := hiddenInput.ReplaceAllString(s.mustGet(path), "") // what an act sends back is exact, and not shown
		if strings.Contains(page, "<td>=") || strings.Contains(page, "<code>=") {
			t.Errorf("%s has a formula in a cell: %s", path, mainOf(page))
		}
		if strings.Contains(page, "<script>") || strings.ContainsAny(page, "\x1b\u202e") {
			t.Errorf("%s has the hostile text as it is:\n%s", path, mainOf(page))
		}
		if strings.Contains(page, "secret=") {
			t.Errorf("%s has the query of a URL", path)
		}
		seen = seen || strings.Contains(page, "&lt;script&gt;")
	}
	if !seen {
		t.Error("no page has the hostile text")
	}
	page := html.UnescapeString(s.mustGet("/search?q=" + url.QueryEscape(`'; id; '`)))
	if !strings.Contains(page, `gatewayctl find -- ''\''; id; '\'''`) {
		t.Errorf("the command line is not quoted: %s", mainOf(page))
	}
}

// No page has a secret, a token or a complete number.
func TestNoSecrets(t *testing.T) {
	d, shop := gatewayctltest.NewQuiet(t)
	d.AddPendingPayment(shop, 1, d.Now)
	s := newSite(t, d)
	secrets := []string{shop.AccessToken, shop.ClientSecret, shop.WebhookSecret, "0707072000"}
	for name, value := range d.Vault.Values {
		secrets = append(secrets, regexp.MustCompile(`[A-Za-z0-9+/=_-]{30,}`).FindAllString(string(value), -1)...)
		if name == "operators" {
			secrets = append(secrets, `"t"`)
		}
	}
	if len(secrets) < 8 {
		t.Fatalf("%d secrets", len(secrets))
	}
	for _, path := range append(append([]string{}, paths...), "/merchant?name=ShopA",
		"/transaction?kind=pay&id=ShopA_1", "/deliveries?merchant=ShopA", "/search?q=0707072000") {
		page := s.mustGet(path)
		if strings.HasPrefix(path, "/search") { // what a person typed stays in the field and in the command line
			page = strings.ReplaceAll(page, "0707072000", "")
		}
		for _, secret := range secrets {
			if secret != "" && strings.Contains(page, secret) {
				t.Errorf("%s has a secret: %s", path, secret)
			}
		}
	}
}

// failingMerchants is a table that does not respond.
type failingMerchants struct{ merchant.Registry }

var errThrottled = errors.New("ProvisionedThroughputExceededException: the table is throttled")

func (failingMerchants) IDs(context.Context) ([]string, error) { return nil, errThrottled }
func (failingMerchants) IDByName(context.Context, string) (string, error) {
	return "", errThrottled
}
func (failingMerchants) Profile(context.Context, string) (*merchant.Profile, error) {
	return nil, errThrottled
}

// failingLedger is a table that does not respond.
type failingLedger struct{ deployment.Ledger }

func (failingLedger) Get(context.Context, ledger.Key) (*ledger.Entry, error) {
	return nil, errThrottled
}
func (failingLedger) Day(context.Context, ledger.DayQuery) ([]ledger.DayKey, string, error) {
	return nil, "", errThrottled
}
func (failingLedger) DueKeys(context.Context, ledger.DueQuery) ([]ledger.DueKey, string, error) {
	return nil, "", errThrottled
}

// Tables that are throttled or unreachable are reported, and what the page shows from before is marked.
func TestTablesFail(t *testing.T) {
	d := newWorld(t)
	s := newSite(t, d)
	pages := []string{
		"/", "/attention", "/search?q=ShopA_1", "/transaction?kind=pay&id=ShopA_1", "/operators", "/merchants",
		"/merchant?name=ShopA", "/deliveries?merchant=ShopA",
	}
	for _, path := range pages {
		s.mustGet(path)
	}
	d.Variables["AWS_SESSION_TOKEN"] = "2" // the console connects again
	d.ChangeStores(func(stores *deployment.Stores) {
		stores.Merchants, stores.Ledger = failingMerchants{stores.Merchants}, failingLedger{stores.Ledger}
	})
	d.Now = d.Now.Add(time.Minute)
	for _, path := range pages {
		if path == "/" {
			continue
		}
		s.expect(path, `role="alert"`, "the table is throttled", "not current")
	}
	s.expect("/", "the table is throttled")
	fresh := newSite(t, d)
	for _, path := range pages {
		page := fresh.expect(path, `role="alert"`, "the table is throttled")
		if strings.Contains(page, "not current") {
			t.Errorf("%s marks what it never had", path)
		}
	}
	d.Variables["AWS_SESSION_TOKEN"] = "3"
	d.ChangeStores(func(*deployment.Stores) {})
	if page := s.mustGet("/merchants"); strings.Contains(page, `role="alert"`) {
		t.Errorf("the failure stays: %s", mainOf(page))
	}
}

// A defect of one command is a failure of its part of the page.
func TestDefectOfACommand(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.Connect = func(deployment.System, deployment.Names) (*deployment.Stores, error) { panic("a defect") }
	newSite(t, d).expect("/merchants", `role="alert"`, "the command has a defect: a defect")
}

// Each text is there in both languages, and each key that a page uses has a text.
func TestTexts(t *testing.T) {
	used := map[string]bool{}
	files, err := filepath.Glob("web/*.html")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`[{(]t "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			used[found[1]] = true
		}
	}
	for _, key := range console.TextKeys() {
		used[key] = true
	}
	for key := range used {
		for _, lang := range []string{"en", "fr"} {
			if text, known := console.Text(lang, key); !known || strings.TrimSpace(text) == "" {
				t.Errorf("%s has no text in %s", key, lang)
			}
		}
	}
}

// The sandbox's page lists the orders, ends a payment, and scripts a call. Without a sandbox there is no page.
func TestSandbox(t *testing.T) {
	var mu sync.Mutex // the page sends its two requests at once
	var sent []string
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		sent = append(sent, r.Method+" "+r.URL.Path+" "+string(body))
		mu.Unlock()
		switch r.URL.Path {
		case "/sandbox/v1/transactions":
			_, _ = fmt.Fprint(w, `[{"kind":"payment","key":"ShopA_1","state":"pending","amount":"1005","currency":"XOF",
				"created_at":"2026-03-01T12:00:00Z","payment_url":"javascript:alert(1)"}]`)
		case "/sandbox/v1/script":
			_, _ = fmt.Fprint(w, `[]`)
		default:
			if strings.Contains(string(body), "ShopA_9") {
				w.WriteHeader(http.StatusNotFound)
				_, _ = fmt.Fprint(w, `{"error":"no accepted payment has this order_id"}`)
				return
			}
			_, _ = fmt.Fprint(w, `{}`)
		}
	}))
	t.Cleanup(control.Close)
	d, _ := gatewayctltest.NewShop(t)
	if got := newSite(t, d).get("/sandbox"); got.Code != http.StatusNotFound {
		t.Errorf("without a sandbox: %d", got.Code)
	}
	withSandbox := func(c *console.Config) { c.SandboxURL, c.Client = control.URL, control.Client() }
	s := newSite(t, d, withSandbox)
	page := s.expect("/sandbox", "ShopA_1", "1,005 XOF", "End it", "1007")
	if strings.Contains(page, "javascript:") {
		t.Error("the page has a link with a script")
	}
	token := s.act(page).Get("token")
	form := func(values ...string) url.Values {
		made := url.Values{"token": {token}}
		for i := 0; i < len(values); i += 2 {
			made.Set(values[i], values[i+1])
		}
		return made
	}
	for name, c := range map[string]struct {
		form url.Values
		want int
		text string
	}{
		"an ending":         {form("key", "ShopA_1", "status", "failed"), http.StatusSeeOther, ""},
		"a script":          {form("key", "c1", "kind", "charge", "call", "cut"), http.StatusSeeOther, ""},
		"an unknown order":  {form("key", "ShopA_9", "status", "failed"), http.StatusOK, "no accepted payment"},
		"an unknown ending": {form("key", "ShopA_1", "status", "paid"), http.StatusBadRequest, "no such ending"},
		"a script for none": {form("call", "cut"), http.StatusBadRequest, "no such ending"},
		"no token":          {url.Values{"status": {"failed"}}, http.StatusForbidden, "not of your session"},
	} {
		if got := s.post("/sandbox", c.form); got.Code != c.want || !strings.Contains(got.Body.String(), c.text) {
			t.Errorf("%s: %d %s", name, got.Code, mainOf(got.Body.String()))
		}
	}
	got := s.post("/sandbox", form("key", "ShopA_9\u202e", "status", "failed")).Body.String()
	if strings.Contains(got, "\u202e") || !strings.Contains(got, `\u202e`) {
		t.Errorf("the command line has a character that reverses it: %s", mainOf(got))
	}
	mu.Lock()
	all := strings.Join(sent, "\n")
	mu.Unlock()
	for _, want := range []string{
		`POST /sandbox/v1/settle {"key":"ShopA_1","status":"failed"}`,
		`POST /sandbox/v1/script {"calls":["cut"],"key":"c1","kind":"charge"}`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the sandbox did not get %s, but\n%s", want, all)
		}
	}
	readOnly := newSite(t, d, withSandbox, func(c *console.Config) { c.AllowChanges = false })
	if page := readOnly.mustGet("/sandbox"); strings.Contains(page, "<form method") {
		t.Errorf("a console without changes has forms: %s", mainOf(page))
	}
}
