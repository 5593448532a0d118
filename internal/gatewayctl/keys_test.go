package gatewayctl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/settings"
)

func TestKeys(t *testing.T) {
	d := newTestTool(t)
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		var keys []keyView
		d.mustRun("keys list "+ring, &keys)
		if len(keys) != 0 {
			t.Fatalf("%s: %+v", ring, keys)
		}
		d.mustRun("keys add "+ring+confirmFlags, &keys)
		if len(keys) != 1 || !keys[0].Signs || !keys[0].SignsFrom.Equal(d.now) {
			t.Errorf("the first of %s: %+v", ring, keys)
		}
		d.mustRun("keys add "+ring+" --secret-cache 10m"+confirmFlags, &keys)
		if len(keys) != 2 || !keys[0].Signs || keys[1].Signs || !keys[1].SignsFrom.Equal(d.now.Add(10*time.Minute)) {
			t.Errorf("the second of %s: %+v", ring, keys)
		}
	}
	d.now = d.now.Add(10 * time.Minute)
	var keys []keyView
	d.mustRun("keys list tokens", &keys)
	if keys[0].Signs || !keys[1].Signs {
		t.Errorf("ripe: %+v", keys)
	}
	d.expectFailure("keys add nothing", ExitUsage, "tokens")
	d.variables["TOKEN_KEY_SECRET"] = ""
	d.expectFailure("keys list tokens", ExitUsage, "TOKEN_KEY_SECRET")
	d.vault.values["callback-keys"] = []byte("{SECRET")
	if _, _, notes := d.run("keys add callbacks"); strings.Contains(notes, "SECRET\"") || notes == "" {
		t.Errorf("a broken ring: %s", notes)
	}
}

// decision "key-rings".
func TestRetire(t *testing.T) {
	d := newTestTool(t)
	d.onboardShop()
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		d.mustRun("keys add "+ring+confirmFlags, nil)
	}
	d.mustRun("keys add tokens"+confirmFlags, nil)
	d.mustRun("keys add callbacks"+confirmFlags, nil)
	code, _, notes := d.run("keys add webhooks" + confirmFlags)
	if code != ExitDone || !strings.Contains(notes, "signs in 5m0s") {
		t.Errorf("the waiting time is not told: %s", notes)
	}
	began := d.now
	d.expectFailure("keys retire callbacks 1"+confirmFlags, ExitFailed, "never retired")
	d.expectFailure("keys retire tokens 2"+confirmFlags, ExitFailed, "newest")
	d.expectFailure("keys retire tokens 9"+confirmFlags, ExitFailed, "no key 9")
	d.expectFailure("keys retire tokens 1"+confirmFlags, ExitFailed, "from 2026-03-02T13:00:00Z on")
	d.now = began.Add(25*time.Hour - time.Second)
	d.expectFailure("keys retire tokens 1"+confirmFlags, ExitFailed, "until then")
	d.now = began.Add(25 * time.Hour)
	var keys []keyView
	d.mustRun("keys retire tokens 1", &keys)
	if d.mustRun("keys list tokens", &keys); len(keys) != 2 {
		t.Errorf("a dry run retired a key: %+v", keys)
	}
	keys = nil
	d.mustRun("keys retire tokens 1"+confirmFlags, &keys)
	if len(keys) != 1 || keys[0].Number != 2 || !keys[0].Signs {
		t.Errorf("left: %+v", keys)
	}
	d.mustRun("keys add tokens"+confirmFlags, &keys)
	if keys[1].Number != 3 {
		t.Errorf("a number came again: %+v", keys)
	}

	d.mustRun("merchant suspend ShopA"+confirmFlags, nil)
	d.expectFailure("keys retire webhooks 1"+confirmFlags, ExitFailed, "ShopA (version 1)")
	d.mustRun("webhook-secret rotate ShopA"+confirmFlags, nil)
	d.expectFailure("keys retire webhooks 1"+confirmFlags, ExitFailed, "ShopA (version 1)")
	d.mustRun("webhook-secret revoke ShopA 1"+confirmFlags, nil)
	d.mustRun("keys retire webhooks 1"+confirmFlags, &keys)
	if _, out, _ := d.run("webhook-secret show ShopA" + confirmFlags); !strings.Contains(out, "whsec_") {
		t.Errorf("the secret of the key that stayed: %s", out)
	}
}

// TestMaximumLifetimesMatchSettings holds the waits of keys retire to what the functions may be set to.
func TestMaximumLifetimesMatchSettings(t *testing.T) {
	for name, longest := range map[string]time.Duration{settings.SecretCacheTTL: maxSecretCache, settings.AccessTokenLifetime: maxTokenLifetime} {
		for value, fits := range map[time.Duration]bool{longest: true, longest + time.Second: false} {
			env := settings.FromEnv(func(asked string) string { return map[string]string{name: value.String()}[asked] })
			env.Duration(name)
			if (env.Err() == nil) != fits {
				t.Errorf("%s of %s: %v", name, value, env.Err())
			}
		}
	}
}

func TestOperators(t *testing.T) {
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"requestError":{"serviceException":{"messageId":"SVC0002","text":"Invalid input value for message part %1","variables":["order_id"]}}}`))
	}))
	defer platform.Close()
	d := newTestTool(t)
	account := func(token string) string {
		return `{"base_url":"` + platform.URL + `","access_token":"` + token + `","later":1}`
	}
	d.input = `{"Orange":{"current":"a1","accounts":{"a1":` + account("good") + `}}}`
	d.mustRun("operator set -"+confirmFlags, nil)
	d.mustRun("operator check", nil)
	d.input = `{"orange":{"current":"a2","accounts":{"a2":` + account("bad") + `}},"mtn":{"current":"m","accounts":{"m":` + account("good") + `}}}`
	d.mustRun("operator set -"+confirmFlags, nil)
	if !strings.Contains(string(d.vault.values["operators"]), `"later":1`) {
		t.Error("a field that the tool does not know was lost")
	}
	var views []accountView
	d.mustRun("operator list", &views)
	if len(views) != 3 || views[1].Account != "a1" || views[1].Current || !views[2].Current {
		t.Errorf("merged: %+v", views)
	}
	code, out, notes := d.run("operator check")
	if code != ExitFailed || strings.Count(out, "true   ")+strings.Count(out, " true") < 2 || strings.Contains(out+notes, "good") || strings.Contains(out+notes, "bad") {
		t.Errorf("check: exit %d, %s%s", code, out, notes)
	}
	d.mustRun("operator check mtn", nil)
	d.expectFailure("operator check sandbox", ExitFailed, "no credentials")
	for text, word := range map[string]string{
		`{"other":{"current":"a","accounts":{"a":` + account("good") + `}}}`: `"other"`,
		`{"orange":{"current":"a9"}}`:                                        "account",
		`{SECRET`:                                                            "JSON",
		``:                                                                   "empty",
	} {
		d.input = text
		d.expectFailure("operator set -"+confirmFlags, ExitUsage, word)
	}
	d.expectFailure("operator set /nowhere/file", ExitUsage, "/nowhere/file")
}
