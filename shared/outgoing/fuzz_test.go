package outgoing

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// FuzzCheck requires that standard parsing agrees with every accepted URL: it is https to a public address, or to a
// name that no parser could read as an address.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"https://shop.example/", "https://127.1/", "https://0x7f.1/", "https://[::ffff:1.2.3.4]/", "https://8.8.8.8/",
		"https://a@b.example/", "https://shop.example:443/#", "http://localhost:1/", `https://a.example\@b`,
		"https://１２７.0.0.1/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rawURL string) {
		if CheckNotificationURL(rawURL, Policy{}) != nil {
			return
		}
		if err := CheckReturnURL(rawURL, Policy{}); err != nil {
			t.Errorf("%q passes CheckNotificationURL but not CheckReturnURL: %v", rawURL, err)
		}
		u, err := url.Parse(rawURL)
		if err != nil || u.Scheme != "https" || u.User != nil {
			t.Fatalf("%q passes, but standard parsing differs: %v", rawURL, err)
		}
		if strings.ContainsAny(rawURL, "@\\#") && !strings.ContainsAny(u.RequestURI(), "@") {
			t.Fatalf("%q passes with @, backslash or # outside its path", rawURL)
		}
		host := u.Hostname()
		if address, err := netip.ParseAddr(host); err == nil {
			if !address.IsGlobalUnicast() || address.IsPrivate() || address.Is4In6() {
				t.Errorf("%q passes, but is not public", rawURL)
			}
			return
		}
		last := host[strings.LastIndex(host, ".")+1:]
		digits, hexadecimal := strings.CutPrefix(last, "0x")
		if !strings.Contains(host, ".") || strings.Trim(last, "0123456789") == "" ||
			hexadecimal && strings.Trim(digits, "0123456789abcdefABCDEF") == "" {
			t.Errorf("%q passes, and its host could be an address", rawURL)
		}
	})
}
