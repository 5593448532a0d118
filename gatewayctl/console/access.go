package console

import (
	"crypto/subtle"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"mobilegateway/internal/loopback"
)

// openPath is the path of the one-time addresses, before their token.
const openPath = "/open/"

// access admits the sessions. Each opening token opens one session, which ends with the process.
type access struct {
	token  func() string // a new random one
	cookie string        // its name, of this port: a browser sends a cookie to each port of a host

	mu       sync.Mutex
	openings map[string]*openSession // by token; nil for one that is not used
	sessions map[string]*openSession // by the cookie's value
}

// openSession is an open session.
type openSession struct {
	id        string
	formToken string // in each form that changes something
}

func newAccess(random io.Reader, port string) *access {
	return &access{
		token: func() string { return randomText(random) }, cookie: "gatewayctl-console-" + port,
		openings: map[string]*openSession{}, sessions: map[string]*openSession{},
	}
}

// randomText returns 160 random bits in letters and digits.
func randomText(random io.Reader) string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567" // 32
	bytes := make([]byte, 32)
	if _, err := io.ReadFull(random, bytes); err != nil {
		panic("no randomness: " + err.Error())
	}
	for i, b := range bytes {
		bytes[i] = letters[b%32]
	}
	return string(bytes)
}

// newOpening returns a token that opens one session.
func (a *access) newOpening() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	token := a.token()
	a.openings[token] = nil
	return token
}

// session returns the session of a request, nil for none.
func (a *access) session(r *http.Request) *openSession {
	cookie, err := r.Cookie(a.cookie)
	if err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[cookie.Value]
}

// open opens the session of a token, or finds it again for the browser that opened it. It returns nil for a token that
// is not known or that another browser has used.
func (a *access) open(r *http.Request, token string) *openSession {
	present := a.session(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	opened, known := a.openings[token]
	switch {
	case !known:
		return nil
	case opened != nil:
		if opened == present {
			return opened
		}
		return nil
	}
	opened = &openSession{id: a.token(), formToken: a.token()}
	a.openings[token], a.sessions[opened.id] = opened, opened
	return opened
}

// setCookie sets the session's cookie in the browser.
func (a *access) setCookie(w http.ResponseWriter, opened *openSession) {
	//nolint:gosec // a loopback address has no TLS: with Secure the cookie would be lost
	http.SetCookie(w, &http.Cookie{
		Name: a.cookie, Value: opened.id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// policy is the content policy of each response.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// protect sets the headers of all responses. It refuses each request for a foreign Host, of a foreign origin, and each
// POST that its own form did not send.
func protect(next http.Handler) http.Handler {
	guarded := loopback.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !sameOrigin(r) {
			http.Error(w, "a page of another origin sent this request: open the console's own address",
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		guarded.ServeHTTP(w, r)
	})
}

// sameOrigin reports whether a request may be of the console's own pages. Browsers send Origin null with the forms of a
// page without a referrer, and then Sec-Fetch-Site has the proof. A request that changes something must have one.
func sameOrigin(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if origin != "" && origin != "null" {
		from, err := url.Parse(origin)
		return err == nil && from.Scheme == "http" && from.Host == r.Host
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return origin == "" || site == "same-origin"
	}
	return site == "same-origin"
}

// isFormOf reports whether a form has the token of the session.
func isFormOf(r *http.Request, opened *openSession) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostFormValue("token")), []byte(opened.formToken)) == 1
}

// isPrefetch reports whether a browser loads an address before a person opens it.
func isPrefetch(r *http.Request) bool {
	return slices.ContainsFunc([]string{"Sec-Purpose", "Purpose", "X-Moz"}, func(name string) bool {
		return strings.Contains(r.Header.Get(name), "prefetch")
	})
}
