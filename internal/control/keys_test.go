package control

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/settings"
)

func TestKeys(t *testing.T) {
	d := newDesk(t)
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		var keys []keyView
		d.do("keys list "+ring, &keys)
		if len(keys) != 0 {
			t.Fatalf("%s: %+v", ring, keys)
		}
		d.do("keys add "+ring+yes, &keys)
		if len(keys) != 1 || !keys[0].Signs || !keys[0].SignsFrom.Equal(d.now) {
			t.Errorf("the first of %s: %+v", ring, keys)
		}
		d.do("keys add "+ring+" --secret-cache 10m"+yes, &keys)
		if len(keys) != 2 || !keys[0].Signs || keys[1].Signs || !keys[1].SignsFrom.Equal(d.now.Add(10*time.Minute)) {
			t.Errorf("the second of %s: %+v", ring, keys)
		}
	}
	d.now = d.now.Add(10 * time.Minute)
	var keys []keyView
	d.do("keys list tokens", &keys)
	if keys[0].Signs || !keys[1].Signs {
		t.Errorf("ripe: %+v", keys)
	}
	d.refused("keys add nothing", ExitUsage, "tokens")
	d.variables["TOKEN_KEY_SECRET"] = ""
	d.refused("keys list tokens", ExitUsage, "TOKEN_KEY_SECRET")
	d.vault.values["callback-keys"] = []byte("{SECRET")
	if _, _, notes := d.run("keys add callbacks"); strings.Contains(notes, "SECRET\"") || notes == "" {
		t.Errorf("a broken ring: %s", notes)
	}
}

// decision "key-rings".
func TestRetire(t *testing.T) {
	d := newDesk(t)
	d.shop()
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		d.do("keys add "+ring+yes, nil)
	}
	d.do("keys add tokens"+yes, nil)
	d.do("keys add callbacks"+yes, nil)
	code, _, notes := d.run("keys add webhooks" + yes)
	if code != ExitDone || !strings.Contains(notes, "signs in 5m0s") {
		t.Errorf("the waiting time is not told: %s", notes)
	}
	began := d.now
	d.refused("keys retire callbacks 1"+yes, ExitFailed, "never retired")
	d.refused("keys retire tokens 2"+yes, ExitFailed, "newest")
	d.refused("keys retire tokens 9"+yes, ExitFailed, "no key 9")
	d.refused("keys retire tokens 1"+yes, ExitFailed, "from 2026-03-02T13:00:00Z on")
	d.now = began.Add(25*time.Hour - time.Second)
	d.refused("keys retire tokens 1"+yes, ExitFailed, "until then")
	d.now = began.Add(25 * time.Hour)
	var keys []keyView
	d.do("keys retire tokens 1", &keys)
	if d.do("keys list tokens", &keys); len(keys) != 2 {
		t.Errorf("a dry run retired a key: %+v", keys)
	}
	keys = nil
	d.do("keys retire tokens 1"+yes, &keys)
	if len(keys) != 1 || keys[0].Number != 2 || !keys[0].Signs {
		t.Errorf("left: %+v", keys)
	}
	d.do("keys add tokens"+yes, &keys)
	if keys[1].Number != 3 {
		t.Errorf("a number came again: %+v", keys)
	}

	d.do("merchant suspend ShopA"+yes, nil)
	d.refused("keys retire webhooks 1"+yes, ExitFailed, "ShopA (version 1)")
	d.do("webhook-secret rotate ShopA"+yes, nil)
	d.refused("keys retire webhooks 1"+yes, ExitFailed, "ShopA (version 1)")
	d.do("webhook-secret revoke ShopA 1"+yes, nil)
	d.do("keys retire webhooks 1"+yes, &keys)
	if _, out, _ := d.run("webhook-secret show ShopA" + yes); !strings.Contains(out, "whsec_") {
		t.Errorf("the secret of the key that stayed: %s", out)
	}
}

// TestLongestLives holds the waits of keys retire to what the functions may be set to.
func TestLongestLives(t *testing.T) {
	for name, longest := range map[string]time.Duration{settings.SecretCache: longestSecretCache, settings.AccessTokenLife: longestToken} {
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
	d := newDesk(t)
	account := func(token string) string {
		return `{"base_url":"` + platform.URL + `","access_token":"` + token + `","later":1}`
	}
	d.input = `{"Orange":{"current":"a1","accounts":{"a1":` + account("good") + `}}}`
	d.do("operator set -"+yes, nil)
	d.do("operator check", nil)
	d.input = `{"orange":{"current":"a2","accounts":{"a2":` + account("bad") + `}},"mtn":{"current":"m","accounts":{"m":` + account("good") + `}}}`
	d.do("operator set -"+yes, nil)
	if !strings.Contains(string(d.vault.values["operators"]), `"later":1`) {
		t.Error("a field that the tool does not know was lost")
	}
	var views []accountView
	d.do("operator list", &views)
	if len(views) != 3 || views[1].Account != "a1" || views[1].Current || !views[2].Current {
		t.Errorf("merged: %+v", views)
	}
	code, out, notes := d.run("operator check")
	if code != ExitFailed || strings.Count(out, "true   ")+strings.Count(out, " true") < 2 || strings.Contains(out+notes, "good") || strings.Contains(out+notes, "bad") {
		t.Errorf("check: exit %d, %s%s", code, out, notes)
	}
	d.do("operator check mtn", nil)
	d.refused("operator check sandbox", ExitFailed, "no credentials")
	for text, word := range map[string]string{
		`{"other":{"current":"a","accounts":{"a":` + account("good") + `}}}`: `"other"`,
		`{"orange":{"current":"a9"}}`:                                        "account",
		`{SECRET`:                                                            "JSON",
		``:                                                                   "empty",
	} {
		d.input = text
		d.refused("operator set -"+yes, ExitUsage, word)
	}
	d.refused("operator set /nowhere/file", ExitUsage, "/nowhere/file")
}

func TestCompletion(t *testing.T) {
	d := newDesk(t)
	for line, want := range map[string]string{
		"complete --":                 "merchant",
		"complete -- keys add":        "callbacks",
		"complete -- export --format": "csv",
		"complete -- merchant add":    "--country",
		"completion bash":             "complete -o default -F _gatewayctl gatewayctl",
		"completion zsh":              "#compdef gatewayctl",
		"completion fish":             "complete -c gatewayctl",
		"--help":                      "webhook-secret rotate",
		"merchant add --help":         "--notif-url",
	} {
		if code, out, notes := d.run(line); code != ExitDone || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, %s lacks %s; %s", line, code, out, want, notes)
		}
	}
	if _, out, _ := d.run("complete --"); strings.Contains(out, "complete\n") {
		t.Error("the hidden command is offered")
	}
	d.refused("", ExitUsage, "expected")
	d.refused("bogus", ExitUsage, "bogus")
}
