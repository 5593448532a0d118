package outgoing

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// FuzzCheck wants of every URL that passes: standard parsing agrees that it is https to a public address or to a name
// that nobody could read as an address.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"https://shop.example/", "https://127.1/", "https://0x7f.1/", "https://[::ffff:1.2.3.4]/", "https://a@b.example/",
		"https://shop.example:443/#", "http://localhost:1/", `https://a.example\@b`, "https://１２７.0.0.1/", "https://8.8.8.8/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rawURL string) {
		if CheckNotificationURL(rawURL, Policy{}) != nil {
			return
		}
		if err := CheckReturnURL(rawURL, Policy{}); err != nil {
			t.Errorf("%q may be called but not visited: %v", rawURL, err)
		}
		u, err := url.Parse(rawURL)
		if err != nil || u.Scheme != "https" || u.User != nil || strings.ContainsAny(rawURL, "@\\#") && !strings.ContainsAny(u.RequestURI(), "@") {
			t.Fatalf("%q passes: %v", rawURL, err)
		}
		host := u.Hostname()
		if address, err := netip.ParseAddr(host); err == nil {
			if !address.IsGlobalUnicast() || address.IsPrivate() || address.Is4In6() {
				t.Errorf("%q passes", rawURL)
			}
			return
		}
		last := host[strings.LastIndex(host, ".")+1:]
		if last == "" || !strings.Contains(host, ".") || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdefABCDEF") == "" {
			t.Errorf("%q passes, and its host could be an address", rawURL)
		}
	})
}
