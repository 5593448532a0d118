// Package console is a web front of gatewayctl for one person on one machine.
//
// Each page runs command lines of the tool with --json and renders what they return; each act is a command line too,
// with its dry run first. The package has no rule of its own about transactions, money or access to them. Its
// invariants: without an open session no page has any data; without AllowChanges no command runs with --yes; no text of
// a command is markup (decision "console").
package console

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config is what a console needs. Run, Now and Rand are required.
type Config struct {
	// Run runs the tool. Its global flags, such as --local, are in Global.
	Run    Run
	Global []string
	Now    func() time.Time
	Rand   io.Reader // for the tokens: a secure source
	// Port is the port of the address, which distinguishes the cookies of two consoles.
	Port string
	// Where names the deployment for the reader.
	Where string
	// AllowChanges allows acts. Without it the pages only show their command lines.
	AllowChanges bool
	// Local is set on the local run: pages renew themselves.
	Local bool
	// SandboxURL is the address of the local run's sandbox operator; "" for none.
	SandboxURL string
	// Client calls the sandbox; nil for one with a limit of time.
	Client *http.Client
}

// Console is the console of one process. Its sessions end with it.
type Console struct {
	Config
	reader *reader
	access *access
	bodies map[string]map[string]*template.Template // by language and name
	mux    *http.ServeMux
	texts  texts
}

// New returns a console. It fails only if its own files are wrong.
func New(config Config) (*Console, error) {
	config.Client = cmp.Or(config.Client, &http.Client{Timeout: readTimeout})
	c := &Console{
		Config: config, reader: newReader(config.Run, config.Global, config.Now),
		access: newAccess(config.Rand, config.Port), bodies: map[string]map[string]*template.Template{},
		mux: http.NewServeMux(),
	}
	var err error
	if c.texts, err = loadTexts(); err != nil {
		return nil, err
	}
	if err := c.parseTemplates(); err != nil {
		return nil, err
	}
	c.mux.HandleFunc("GET "+openPath+"{token}", c.serveOpening)
	for _, name := range []string{"style.css", "live.js", "icon.svg"} {
		c.mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, web, "web/"+name)
		})
	}
	c.mux.HandleFunc("POST /act", c.guardForm(c.serveAct))
	c.mux.HandleFunc("POST /reconciliation", c.guardForm(c.serveReconciliation))
	if config.SandboxURL != "" {
		c.mux.HandleFunc("POST /sandbox", c.guardForm(c.serveSandbox))
	}
	for _, p := range pages {
		if p.sandbox && config.SandboxURL == "" {
			continue
		}
		pattern := "GET " + p.path()
		if p.path() == "/" {
			pattern = "GET /{$}"
		}
		c.mux.HandleFunc(pattern, c.guard(func(w http.ResponseWriter, _ *http.Request, q *query) {
			c.render(w, q, http.StatusOK, p, p.load(q))
		}))
	}
	c.mux.HandleFunc("/", c.guard(func(w http.ResponseWriter, _ *http.Request, q *query) {
		c.refuse(w, q, http.StatusNotFound, "error.page")
	}))
	return c, nil
}

// Opening returns the path of a new one-time address. It opens one session.
func (c *Console) Opening() string { return openPath + c.access.newOpening() }

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { protect(c.mux).ServeHTTP(w, r) }

// query is one request of an open session.
type query struct {
	printer
	context.Context
	form    url.Values
	console *Console
	session *openSession // nil before one is open
	path    string       // of the page, with its parameters
}

func (q *query) now() time.Time { return q.console.Now() }

func (q *query) read(line ...string) result { return q.console.reader.read(q, line...) }

func (q *query) survey(line ...string) result { return q.console.reader.survey(line...) }

// parallel runs a function for each number below n, and waits for all.
func (q *query) parallel(n int, do func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { do(i) })
	}
	group.Wait()
}

// languageCookie remembers the language that a person chose.
const languageCookie = "gatewayctl-console-lang"

func (c *Console) newQuery(w http.ResponseWriter, r *http.Request) *query {
	q := &query{Context: r.Context(), form: r.URL.Query(), console: c, session: c.access.session(r)}
	q.printer = printer{languageOf(r), c.texts}
	if chosen := q.form.Get("lang"); slices.Contains(languages, chosen) {
		q.Lang = chosen
		//nolint:gosec // it has only the language, and a loopback address has no TLS
		http.SetCookie(w, &http.Cookie{
			Name: languageCookie, Value: chosen, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
			MaxAge: int((365 * 24 * time.Hour).Seconds()),
		})
	}
	kept := copyForm(q.form)
	kept.Del("lang")
	q.path = r.URL.Path
	if len(kept) > 0 {
		q.path += "?" + kept.Encode()
	}
	return q
}

// copyForm returns a copy of a form.
func copyForm(form url.Values) url.Values {
	copied := url.Values{}
	for name, values := range form {
		copied[name] = values
	}
	return copied
}

// languageOf is the language of a request: the chosen one, else the browser's first that the console has.
func languageOf(r *http.Request) string {
	if cookie, err := r.Cookie(languageCookie); err == nil && slices.Contains(languages, cookie.Value) {
		return cookie.Value
	}
	for accepted := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(accepted), ";")
		name, _, _ = strings.Cut(name, "-")
		if slices.Contains(languages, name) {
			return name
		}
	}
	return languages[0]
}

type servePage func(w http.ResponseWriter, r *http.Request, q *query)

// guard serves a page only within an open session.
func (c *Console) guard(next servePage) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := c.newQuery(w, r)
		if q.session == nil {
			c.refuse(w, q, http.StatusForbidden, "error.session")
			return
		}
		next(w, r, q)
	}
}

// maxForm bounds the body of a request, in bytes.
const maxForm = 64 << 10

// guardForm serves a form of the session: its token proves that a page of the session has it.
func (c *Console) guardForm(next servePage) http.HandlerFunc {
	return c.guard(func(w http.ResponseWriter, r *http.Request, q *query) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if r.ParseForm() != nil || !isFormOf(r, q.session) {
			c.refuse(w, q, http.StatusForbidden, "error.form")
			return
		}
		next(w, r, q)
	})
}

// serveOpening opens the session of a one-time address. The page leads to the overview by itself: a redirect would not
// carry the cookie if the address was opened from a page of another site.
func (c *Console) serveOpening(w http.ResponseWriter, r *http.Request) {
	q := c.newQuery(w, r)
	if isPrefetch(r) || r.Method != http.MethodGet {
		c.refuse(w, q, http.StatusForbidden, "error.prefetch")
		return
	}
	opened := c.access.open(r, r.PathValue("token"))
	if opened == nil {
		c.refuse(w, q, http.StatusForbidden, "error.opened")
		return
	}
	c.access.setCookie(w, opened)
	c.render(w, q, http.StatusOK, page{name: "opened", body: "opened"}, nil)
}

// refuse shows why a request is refused.
func (c *Console) refuse(w http.ResponseWriter, q *query, status int, key string) {
	c.render(w, q, status, page{name: "refused", body: "message"}, key)
}

// view is the data of the layout.
type view struct {
	*query
	Page    page
	Data    any
	Changes bool
	Live    bool
}

// Token is the token of the session's forms.
func (v view) Token() string {
	if v.session == nil {
		return ""
	}
	return v.session.formToken
}

// Path is the page with its parameters, without the language.
func (v view) Path() string { return v.path }

// Open reports whether a session is open.
func (v view) Open() bool { return v.session != nil }

// Typed is the value of a field of the form.
func (v view) Typed(name string) string { return text(v.form.Get(name)) }

// Where names the deployment.
func (v view) Where() string { return v.console.Where }

// Line is a command line for a person.
func (v view) Line(words []string) string { return v.console.reader.line(words...) }

// Nav are the pages of the navigation.
func (v view) Nav() (all []page) {
	for _, p := range pages {
		if !p.hidden && (!p.sandbox || v.console.SandboxURL != "") {
			all = append(all, p)
		}
	}
	return all
}

// Name and Address are for the templates.
func (p page) Name() string { return p.name }

// Address is the path of the page.
func (p page) Address() string { return p.path() }

// OtherLanguage is the address of the page in the other language.
func (v view) OtherLanguage() (address string) {
	form := copyForm(v.form)
	path, _, _ := strings.Cut(v.path, "?")
	if v.session == nil || v.Page.name == "act" { // an opening has its token in the path; an act is a POST
		path, form = "/", url.Values{}
	}
	form.Set("lang", languages[1-slices.Index(languages, v.Lang)])
	return path + "?" + form.Encode()
}

// scope is a value with the view around it, for a template within another.
type scope struct {
	View  view
	Value any
	Name  string
	Rows  []bar
}

// parseTemplates parses the bodies once for each language, with its texts.
func (c *Console) parseTemplates() error {
	for _, lang := range languages {
		p := printer{lang, c.texts}
		functions := template.FuncMap{
			"t": p.T, "word": p.Word, "amount": p.Amount, "count": p.Count, "time": p.Time, "text": text,
			"cellText": cellText, "detail": p.Detail, "detailLang": p.DetailLang,
			"timeOf": timeOf, "age": p.Age, "tx": transactionOf, "address": address,
			"in":    func(v view, value any) scope { return scope{View: v, Value: value} },
			"named": func(name string, rows []bar) scope { return scope{Name: name, Rows: rows} },
			"raw":   raw, "field": field, "add": func(a, b int) int { return a + b }, "shares": sharesOf,
			"words": func(words ...string) []string { return words }, "permille": p.PerMille,
		}
		shared, err := template.New("").Funcs(functions).ParseFS(web, "web/layout.html", "web/parts.html")
		if err != nil {
			return err
		}
		c.bodies[lang] = map[string]*template.Template{}
		for _, body := range []string{
			"list", "overview", "search", "transaction", "deliveries", "reconciliation", "merchant", "sandbox",
			"act", "message", "opened",
		} {
			cloned, err := shared.Clone()
			if err == nil {
				cloned, err = cloned.ParseFS(web, "web/"+body+".html")
			}
			if err != nil {
				return fmt.Errorf("the page %s: %w", body, err)
			}
			c.bodies[lang][body] = cloned
		}
	}
	return nil
}

// render writes a page. It is complete before its first byte is sent, so that an error never ends in half a page.
func (c *Console) render(w http.ResponseWriter, q *query, status int, p page, data any) {
	var out bytes.Buffer
	v := view{query: q, Page: p, Data: data, Changes: c.AllowChanges, Live: p.live && c.Local}
	if err := c.bodies[q.Lang][p.body].ExecuteTemplate(&out, "layout", v); err != nil {
		http.Error(w, "the page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Language", q.Lang)
	w.WriteHeader(status)
	_, _ = out.WriteTo(w)
}
