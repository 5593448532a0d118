// Package loopback protects the servers of the local run from web pages. Any page that a browser on this machine shows
// can send requests to a port of this machine.
//
// It does not authenticate: a program of another user on this machine passes. The invariant: a handler behind Protect
// sees only requests for a loopback host, and none with an unsafe method that a page of another origin sent.
package loopback

import (
	"net/http"
	"net/url"

	"mobilegateway/shared/localhost"
)

// Protect returns a handler that passes a request on only if no foreign web page can have sent it. It refuses a Host
// that is not loopback: by DNS rebinding, a page reads responses under a name of its own. It also refuses POST, PUT and
// other unsafe methods of other origins. GET passes, so that pages may link and redirect from one port to another.
func Protect(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	crossOrigin.SetDenyHandler(refuse("a web page of another origin sent this request: send it from a program"))
	protected := crossOrigin.Handler(next)
	wrongHost := refuse("the request's Host is not this machine: use 127.0.0.1 or localhost")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			wrongHost.ServeHTTP(w, r)
			return
		}
		protected.ServeHTTP(w, r)
	})
}

func refuse(reason string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, reason, http.StatusForbidden)
	})
}

// isLoopback reports whether a Host header, with or without a port, is localhost or a loopback address.
func isLoopback(host string) bool {
	return localhost.IsLoopback((&url.URL{Host: host}).Hostname())
}
