package console_test

import (
	"strings"
	"testing"

	"mobilegateway/gatewayctl/console"
)

// The sentences of the timeline and of what waits for a person are French on French pages. Free texts stay as they are.
func TestDetailsAreFrench(t *testing.T) {
	for _, c := range []struct{ english, french, lang string }{
		{"stored for repeats", "enregistrée pour les répétitions", "fr"},
		{"1000 XOF, to sandbox in CI", "1000 XOF, à sandbox (CI)", "fr"},
		{
			"first send 2026-03-01 12:00:00 with account a1", "premier envoi 2026-03-01 12:00:00 avec le compte a1",
			"fr",
		},
		{"of successful, webhook-id x-1, 1 attempt made", "de réussi, webhook-id x-1, 1 tentative faite", "fr"},
		{"a reason of a person, stored for repeats", "a reason of a person, stored for repeats", "en"},
		{"version 3", "version 3", "fr"},
		{"", "", "en"},
		{"=1+1", "'=1+1", "en"},
	} {
		if got, lang := console.Detail("fr", c.english); got != c.french || lang != c.lang {
			t.Errorf("%q: %q (%s), want %q (%s)", c.english, got, lang, c.french, c.lang)
		}
		if got, lang := console.Detail("en", c.english); strings.TrimPrefix(got, "'") != c.english || lang != "en" {
			t.Errorf("%q in English: %q (%s)", c.english, got, lang)
		}
	}
}

// All steps of the timelines of a small deployment have French details.
func TestTimelineIsFrench(t *testing.T) {
	s := newSite(t, newWorld(t))
	for _, path := range []string{"/transaction?kind=pay&id=ShopA_1", "/transaction?kind=pay&id=ShopA_3"} {
		page := s.mustGet(path + "&lang=fr")
		if strings.Contains(page, `<br><span lang="en">`) || !strings.Contains(page, `<br><span lang="fr">`) {
			t.Errorf("%s has an English step:\n%s", path, mainOf(page))
		}
	}
}
