package gatewayctl

import (
	"encoding/json"
	"strings"
	"testing"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/webhook"
)

func TestMaskQueries(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.example/n":                          "https://a.example/n",
		"https://a.example/n?key=s3cret&b=1":           "https://a.example/n?***",
		"to https://a.example/?s3cret, https://b.c/x?": "to https://a.example/?***, https://b.c/x?***",
		`{"url":"https://a.example/?s3cret",` + "\n":   `{"url":"https://a.example/?***",` + "\n",
		"is it done?":                                      "is it done?",
		"--url 'https://a.example/?a=b?s3cret'":            "--url 'https://a.example/?***'",
		"https://a.example?s3cret: refused":                "https://a.example?***: refused",
		"https://a.example/n?a='s3cret":                    "https://a.example/n?***",
		"https://a.example/n?a=(b)s3cret":                  "https://a.example/n?***",
		"https://a.example/n?a=<b>`s3cret end":             "https://a.example/n?*** end",
		`"url": "https://a/?a\u0026b=s3cret"`:              `"url": "https://a/?***"`,
		`"why": "\"https://a/?s3cret\", n"`:                `"why": "\"https://a/?***\", n"`,
		"(see https://a.example/?s3cret)":                  "(see https://a.example/?***)",
		"--url 'https://a.example/?token=s3cret(1)'":       "--url 'https://a.example/?***'",
		"(see https://a.example/?token=s3cret(1))":         "(see https://a.example/?***)",
		"--url 'https://a.example/(x)/?s3cret'":            "--url 'https://a.example/(x)/?***'",
		`--url 'https://a.example/"'\''<?s3cret' --yes`:    `--url 'https://a.example/"'\''<?***' --yes`,
		`https://a.example/n?a="s3cret",b=s3cret: refused`: "https://a.example/n?***: refused",
	} {
		if got := maskQueries(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Invisible characters cannot reorder, hide or colour what a terminal shows; JSON keeps its meaning.
func TestEscapeUnprintable(t *testing.T) {
	for _, char := range []rune{
		0, 7, 27, '\r', 0x7f, 0x85, 0x9b, 0xad, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c,
		0x202d, 0x202e, 0x2060, 0x2066, 0x2067, 0x2068, 0x2069, 0xfe0f, 0xfeff, 0xe000, 0xe0001, 0xe0041, 0xe0100,
	} {
		escaped := escapeUnprintable("a" + string(char) + "b")
		if strings.ContainsRune(escaped, char) {
			t.Errorf("%U stays in %q", char, escaped)
		}
		var text string
		if err := json.Unmarshal([]byte(`"`+escaped+`"`), &text); err != nil || text != "a"+string(char)+"b" {
			t.Errorf("%U: JSON reads %q: %v", char, text, err)
		}
	}
	for _, text := range []string{"é ü ش 漢 😀 -\t|\n", "\xff\xc3 half a character"} {
		if got := escapeUnprintable(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// No output and no audit record has the query of a URL. The masked form selects the URL again.
func TestSecretsInURLsAreMasked(t *testing.T) {
	d, shop := newShopTool(t)
	const secret, address = "s3cret-in-a-query", "https://shop.example/n?key=s3cret-in-a-query"
	e := d.addWaitingPayment(shop, 1, func(e *ledger.Entry) { e.NotifyURL = address })
	for _, line := range []string{
		"merchant change ShopA --notif-url " + address + confirmFlags, "merchant show ShopA", "show " + e.ID,
		"deliveries show " + e.ID, "endpoint list ShopA", "endpoint show ShopA --url " + address,
		"endpoint disable ShopA --url " + address + confirmFlags, "attention",
		"deliveries send " + e.ID + confirmFlags,
		"endpoint enable ShopA --url https://shop.example/n?***" + confirmFlags,
		"list ShopA", "audit", "export ShopA --from 2026-03-01 --to 2026-03-02",
	} {
		for _, flags := range []string{"", " --json"} {
			code, out, stderr := d.run(line + flags)
			if strings.Contains(out+stderr, secret) {
				t.Errorf("%s: exit %d, %s%s", line+flags, code, out, stderr)
			}
		}
	}
	for _, r := range d.audit.records {
		if strings.Contains(r.Subject+r.Why+r.Detail, secret) {
			t.Errorf("the audit record has the query: %+v", r)
		}
	}
	if at := query[endpointView](d, "endpoint show ShopA --url https://shop.example/n?***"); !at.Enabled {
		t.Errorf("the endpoint is %+v, want it enabled again by its masked URL", at)
	}
}

// A person disables an endpoint: it says why, and the next attempt parks the notification.
func TestDisableEndpoint(t *testing.T) {
	d, shop := newShopTool(t)
	d.addWaitingPayment(shop, 1)
	d.mustRun("endpoint disable ShopA --url "+shopURL, nil)
	if at := query[endpointView](d, "endpoint show ShopA --url "+shopURL); !at.Enabled {
		t.Errorf("a dry run disabled %+v", at)
	}
	d.mustRun("endpoint disable ShopA --url "+shopURL+confirmFlags, nil)
	d.mustRun("endpoint disable ShopA --url "+shopURL+confirmFlags, nil) // nothing to do
	at := query[endpointView](d, "endpoint show ShopA --url "+shopURL)
	if at.Enabled || at.LastError != "manual" || at.DisabledAt.IsZero() {
		t.Errorf("the endpoint is %+v, want it disabled by a person", at)
	}
	d.expectExit("endpoint disable ShopA --url https://shop.example/never"+confirmFlags, ExitFailed, "never notified")
	d.mustRun("endpoint enable ShopA --url "+shopURL+confirmFlags, nil)
}

// The printed command of an address has no part of its query, also if the path has characters of shells and texts.
func TestPrintedCommandMasksWholeAddress(t *testing.T) {
	for _, address := range []string{
		"https://shop.example/n(1)/?s3cret", `https://shop.example/"/?s3cret`,
		"https://shop.example/a'b`<c>?a=(s3cret)",
	} {
		d, shop := newShopTool(t)
		d.addWaitingPayment(shop, 1, func(e *ledger.Entry) { e.NotifyURL, e.Outbox[0].Parked = address, true })
		at := webhook.Health{Endpoint: webhook.Endpoint{MerchantID: shop.ID, URL: address}, DisabledAt: d.now}
		d.health.StoreHealth(at)
		for _, flags := range []string{"", " --json"} {
			code, out, stderr := d.run("attention" + flags)
			isListed := code == ExitWaiting && strings.Contains(out, "endpoint enable")
			if strings.Contains(out+stderr, "s3cret") || !isListed {
				t.Errorf("%s: exit %d, %s%s", address, code, out, stderr)
			}
		}
	}
}
