package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"mobilegateway/gatewayctl/console"
	"mobilegateway/proof/kits/gatewayctltest"
)

// An opening opens one session, which may open it again. Each opening has its own.
func TestOpening(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	s := closedSite(t, d)
	status := func(what, path string, want int) {
		t.Helper()
		if got := s.get(path); got.Code != want {
			t.Errorf("%s: %d, want %d: %s", what, got.Code, want, got.Body)
		}
	}
	first, second := s.console.Opening(), s.console.Opening()
	for _, path := range append(slices.Clone(paths), "/merchant?name=ShopA", "/transaction?kind=pay&id=ShopA_1",
		"/nothing") {
		page := s.get(path)
		if page.Code != http.StatusForbidden || strings.Contains(page.Body.String(), "ShopA") {
			t.Errorf("%s without a session: %d %s", path, page.Code, page.Body)
		}
	}
	for name, value := range map[string]string{
		"Sec-Purpose": "prefetch;prerender", "Purpose": "prefetch", "X-Moz": "prefetch",
	} {
		prefetch := s.request(http.MethodGet, first, http.NoBody)
		prefetch.Header.Set(name, value)
		if got := s.send(prefetch); got.Code != http.StatusForbidden || len(s.cookies) != 0 {
			t.Errorf("a prefetch by %s opens a session: %d, %v", name, got.Code, s.cookies)
		}
	}
	status("a wrong token", "/open/"+strings.Repeat("a", 32), http.StatusForbidden)
	status("an empty token", "/open/", http.StatusForbidden)
	status("the address", first, http.StatusOK)
	cookies := s.cookies
	status("the overview", "/", http.StatusOK)
	status("the address again", first, http.StatusOK)

	s.cookies = map[string]string{}
	status("another browser", first, http.StatusForbidden)
	status("another browser's page", "/", http.StatusForbidden)
	status("the other address", second, http.StatusOK)
	status("its page", "/merchants", http.StatusOK)
	status("the other session's address", first, http.StatusForbidden)

	other := closedSite(t, d) // another process
	other.cookies = cookies
	if got := other.get("/"); got.Code != http.StatusForbidden {
		t.Errorf("a session outlives its process: %d", got.Code)
	}
}

// The cookie is not for scripts and not for other sites. Each response has the headers.
func TestHeaders(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	s := closedSite(t, d)
	opened := s.get(s.console.Opening())
	cookie := opened.Result().Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.MaxAge != 0 ||
		cookie.Name != "gatewayctl-console-3003" {
		t.Errorf("the cookie is %v", cookie)
	}
	foreign := s.request(http.MethodGet, "/", http.NoBody)
	foreign.Host = "evil.example"
	for what, got := range map[string]http.Header{
		"a page": s.get("/").Header(), "the style": s.get("/style.css").Header(), "the opening": opened.Header(),
		"no page": s.get("/nothing").Header(), "a refused host": s.send(foreign).Header(),
	} {
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY",
		} {
			if got.Get(name) != want && !(name == "X-Content-Type-Options" && got.Get(name) == want) {
				t.Errorf("%s: %s is %q, want %q", what, name, got.Get(name), want)
			}
		}
		content := got.Get("Content-Security-Policy")
		for _, rule := range []string{
			"default-src 'none'", "style-src 'self'", "img-src 'self'", "form-action 'self'", "script-src 'self'",
			"frame-ancestors 'none'", "base-uri 'none'",
		} {
			if !strings.Contains(content, rule) {
				t.Errorf("%s: the policy %q has no %s", what, content, rule)
			}
		}
		if strings.Contains(content, "unsafe") {
			t.Errorf("%s: the policy is %q", what, content)
		}
	}
	for _, path := range paths { // nothing that the policy would refuse
		for _, part := range []string{"<style", " style=", " onclick=", "<script>"} {
			if strings.Contains(s.mustGet(path), part) {
				t.Errorf("%s has %q", path, part)
			}
		}
	}
}

// A page of another origin reads nothing and changes nothing, also under a name that it leads to this machine.
func TestForeignRequests(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	s := newSite(t, d)
	const foreign = "evil.example:3003" // a name that leads to this machine
	words := []string{"merchant", "suspend", "--", "ShopA"}
	form := s.act(s.mustGet("/merchant?name=ShopA"), words...)
	for name, c := range map[string]struct {
		method, path, host, origin, site string
		want                             int
	}{
		"an own page":                  {"GET", "/", host, "", "same-origin", 200},
		"a typed address":              {"GET", "/", host, "", "none", 200},
		"a rebound name":               {"GET", "/", foreign, "", "", 403},
		"a rebound name, same origin":  {"GET", "/", foreign, "http://" + foreign, "same-origin", 403},
		"a rebound name, no port":      {"GET", "/", "evil.example", "", "", 403},
		"no host":                      {"GET", "/", "", "", "", 403},
		"a foreign script":             {"GET", "/", host, "https://evil.example", "cross-site", 403},
		"a script of another port":     {"GET", "/", host, "http://127.0.0.1:3001", "same-site", 403},
		"a sandboxed frame":            {"GET", "/", host, "null", "cross-site", 403},
		"an own form":                  {"POST", "/act", host, "http://" + host, "same-origin", 200},
		"an own form without referrer": {"POST", "/act", host, "null", "same-origin", 200},
		"a form of another site":       {"POST", "/act", host, "https://evil.example", "cross-site", 403},
		"a form of another port":       {"POST", "/act", host, "http://127.0.0.1:3001", "same-site", 403},
		"a form over https":            {"POST", "/act", host, "https://" + host, "", 403},
		"a form without an origin":     {"POST", "/act", host, "", "", 403},
		"a form of a sandboxed frame":  {"POST", "/act", host, "null", "cross-site", 403},
		"a form at a rebound name":     {"POST", "/act", foreign, "http://" + foreign, "same-origin", 403},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.request(c.method, c.path, strings.NewReader(form.Encode()))
			r.Host = c.host
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for header, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			if got := s.send(r); got.Code != c.want {
				t.Errorf("%d, want %d: %s", got.Code, c.want, got.Body)
			}
		})
	}
}

// An act needs the token of the session, an allowed command, a reason, and a console that allows changes.
func TestRefusedActs(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	s := newSite(t, d)
	page := s.mustGet("/merchant?name=ShopA")
	suspend := []string{"merchant", "suspend", "--", "ShopA"}
	with := func(form url.Values, name string, values ...string) url.Values {
		form[name] = values
		return form
	}
	other := newSite(t, d, func(c *console.Config) { c.Port = "3004" })
	otherToken := other.act(other.mustGet("/merchant?name=ShopA")).Get("token")
	for name, form := range map[string]url.Values{
		"no token":             with(s.act(page, suspend...), "token"),
		"a wrong token":        with(s.act(page, suspend...), "token", "x"),
		"another session's":    with(s.act(page, suspend...), "token", otherToken),
		"no command":           s.act(page),
		"a secret":             s.act(page, "webhook-secret", "show", "--", "ShopA"),
		"a new token":          s.act(page, "token", "issue", "--", "ShopA"),
		"an export":            s.act(page, "export", "--all", "--output=/tmp/x"),
		"a file":               s.act(page, "operator", "set", "--", "/etc/passwd"),
		"another table":        s.act(page, "merchant", "suspend", "--merchant-table=x", "--", "ShopA"),
		"an own --yes":         s.act(page, "merchant", "suspend", "--yes", "--", "ShopA"),
		"an own --reason":      s.act(page, "merchant", "suspend", "--reason=x", "--", "ShopA"),
		"a flag as the choice": with(with(s.act(page, suspend...), "choice", "x"), "flag", "--merchant-table"),
	} {
		form.Set("apply", "1")
		form.Set("reason", "test")
		if got := s.post("/act", form); got.Code != http.StatusForbidden && got.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, got.Code, mainOf(got.Body.String()))
		}
	}
	if got := s.get("/act"); got.Code == http.StatusOK {
		t.Errorf("GET of an act: %d", got.Code)
	}
	missing := s.act(page, suspend...)
	missing.Set("apply", "1")
	if got := s.post("/act", missing).Body.String(); !strings.Contains(got, "Enter a reason") {
		t.Errorf("an act without a reason: %s", mainOf(got))
	}
	readOnly := newSite(t, d, func(c *console.Config) { c.AllowChanges = false })
	page = readOnly.mustGet("/merchant?name=ShopA")
	if strings.Contains(page, "<button>Suspend") || !strings.Contains(page, "gatewayctl merchant suspend") {
		t.Errorf("a console without changes: %s", mainOf(page))
	}
	if status := gatewayctltest.Query[struct{ Status string }](d, "merchant show ShopA").Status; status != "active" {
		t.Errorf("the merchant is %s", status)
	}
	if len(d.Audit.Outcomes) != 4 { // onboarding and its key
		t.Errorf("the audit has %v", d.Audit.Outcomes)
	}
}

// An act is a dry run first. With a reason it is made, audited, and its command line is shown.
func TestAct(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	s := newSite(t, d)
	form := s.act(s.mustGet("/merchant?name=ShopA"), "merchant", "suspend", "--", "ShopA")
	trial := s.post("/act", form).Body.String()
	for _, want := range []string{
		"Dry run: nothing was changed", "gatewayctl merchant suspend --yes --reason=REASON -- ShopA",
		`name="reason" required`,
	} {
		if !strings.Contains(trial, want) {
			t.Errorf("the dry run has no %q: %s", want, mainOf(trial))
		}
	}
	if d.Audit.Outcomes[len(d.Audit.Outcomes)-1] != "done" || len(d.Audit.Outcomes) != 4 {
		t.Errorf("the dry run left %v", d.Audit.Outcomes)
	}
	form.Set("apply", "1")
	form.Set("reason", "a stolen laptop")
	done := s.post("/act", form).Body.String()
	if !strings.Contains(done, "Done.") || !strings.Contains(done, `href="/attention"`) {
		t.Errorf("the act: %s", mainOf(done))
	}
	s.expect("/merchant?name=ShopA", "suspended", "Resume")
	s.expect("/audit", "a stolen laptop", "local:ama@host", "no fault")
	form.Set("back", "//evil.example/")
	if got := s.post("/act", form).Body.String(); strings.Contains(got, "evil.example") {
		t.Errorf("the page leads to another site: %s", mainOf(got))
	}
}
