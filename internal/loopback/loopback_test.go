package loopback

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestProtect(t *testing.T) {
	const own = "127.0.0.1:3000"
	cases := map[string]struct {
		method, host, origin, site string
		want                       int
	}{
		"a program":                      {"POST", own, "", "", 200},
		"a program by name":              {"POST", "localhost:3000", "", "", 200},
		"a program without a port":       {"GET", "127.0.0.1", "", "", 200},
		"another loopback address":       {"GET", "127.8.9.10:3000", "", "", 200},
		"IPv6":                           {"GET", "[::1]:3000", "", "", 200},
		"IPv4 in IPv6":                   {"GET", "[::ffff:127.0.0.1]:3000", "", "", 200},
		"rebound name":                   {"GET", "evil.example:3000", "", "", 403},
		"rebound name, same origin":      {"POST", "evil.example:3000", "http://evil.example:3000", "same-origin", 403},
		"name that begins as loopback":   {"GET", "127.0.0.1.evil.example:3000", "", "", 403},
		"name that ends as localhost":    {"GET", "evil.localhost:3000", "", "", 403},
		"loopback with a final dot":      {"GET", "localhost.:3000", "", "", 403},
		"address of the network":         {"GET", "192.168.1.7:3000", "", "", 403},
		"every address":                  {"GET", "0.0.0.0:3000", "", "", 403},
		"decimal address":                {"GET", "2130706433:3000", "", "", 403},
		"IPv6 zone":                      {"GET", "[fe80::1%25lo]:3000", "", "", 403},
		"no host":                        {"GET", "", "", "", 403},
		"user information":               {"GET", "127.0.0.1@evil.example", "", "", 403},
		"page of another site":           {"POST", own, "https://evil.example", "cross-site", 403},
		"page of another port":           {"POST", own, "http://127.0.0.1:3001", "same-site", 403},
		"page in an older browser":       {"POST", own, "https://evil.example", "", 403},
		"page without an origin":         {"POST", own, "null", "", 403},
		"PUT by a page":                  {"PUT", own, "https://evil.example", "cross-site", 403},
		"DELETE by a page":               {"DELETE", own, "https://evil.example", "cross-site", 403},
		"own form":                       {"POST", own, "http://" + own, "same-origin", 200},
		"own form without a referrer":    {"POST", own, "null", "same-origin", 200},
		"link from another port":         {"GET", own, "", "same-site", 200},
		"link from another site":         {"GET", own, "", "cross-site", 200},
		"address typed into the browser": {"GET", own, "", "none", 200},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			reached := false
			handler := Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
			request := httptest.NewRequestWithContext(t.Context(), c.method, "/", http.NoBody)
			request.Host = c.host
			for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
				if value != "" {
					request.Header.Set(name, value)
				}
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			if recorder.Code != c.want || reached != (c.want == http.StatusOK) {
				t.Errorf("status %d, want %d; the handler was reached: %v", recorder.Code, c.want, reached)
			}
		})
	}
}
