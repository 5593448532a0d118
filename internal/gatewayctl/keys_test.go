package gatewayctl

import (
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/settings"
)

func TestKeys(t *testing.T) {
	d := newTestTool(t)
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		first := keyView{ring, 1, d.now, d.now, true}
		second := keyView{ring, 2, d.now, d.now.Add(10 * time.Minute), false}
		checkEqual(t, "empty ring", query[[]keyView](d, "keys list "+ring), []keyView{})
		checkEqual(t, "first key", query[[]keyView](d, "keys add "+ring+confirmFlags), []keyView{first})
		checkEqual(t, "second key", query[[]keyView](d, "keys add "+ring+" --secret-cache 10m"+confirmFlags),
			[]keyView{first, second})
	}
	d.now = d.now.Add(10 * time.Minute)
	keys := query[[]keyView](d, "keys list tokens")
	checkEqual(t, "the old key signs", keys[0].Signs, false)
	checkEqual(t, "the new key signs", keys[1].Signs, true)
	d.expectExit("keys add nothing", ExitUsage, "tokens")
	d.variables["TOKEN_KEY_SECRET"] = ""
	d.expectExit("keys list tokens", ExitUsage, "TOKEN_KEY_SECRET")
	d.vault.values["callback-keys"] = []byte("{SECRET")
	if _, _, stderr := d.run("keys add callbacks"); strings.Contains(stderr, "SECRET\"") || stderr == "" {
		t.Errorf("a broken ring: %s", stderr)
	}
}

// decision "key-rings".
func TestRetire(t *testing.T) {
	d, _ := newShopTool(t)
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		d.apply("keys add " + ring)
	}
	d.apply("keys add tokens", "keys add callbacks")
	code, _, stderr := d.run("keys add webhooks" + confirmFlags)
	if code != ExitDone || !strings.Contains(stderr, "signs in 5m0s") {
		t.Errorf("keys add does not print when the key signs: %s", stderr)
	}
	began := d.now
	d.expectExit("keys retire callbacks 1"+confirmFlags, ExitFailed, "never retired")
	d.expectExit("keys retire tokens 2"+confirmFlags, ExitFailed, "newest")
	d.expectExit("keys retire tokens 9"+confirmFlags, ExitFailed, "no key 9")
	d.expectExit("keys retire tokens 1"+confirmFlags, ExitFailed, "from 2026-03-02T13:00:00Z on")
	d.now = began.Add(25*time.Hour - time.Second)
	d.expectExit("keys retire tokens 1"+confirmFlags, ExitFailed, "until then")
	d.now = began.Add(25 * time.Hour)
	d.mustRun("keys retire tokens 1", nil)
	checkEqual(t, "keys after a dry run", len(query[[]keyView](d, "keys list tokens")), 2)
	keys := query[[]keyView](d, "keys retire tokens 1"+confirmFlags)
	checkEqual(t, "keys left", len(keys), 1)
	checkEqual(t, "number of the key left", keys[0].Number, 2)
	checkEqual(t, "number of a new key", query[[]keyView](d, "keys add tokens"+confirmFlags)[1].Number, 3)

	d.apply("merchant suspend ShopA")
	d.expectExit("keys retire webhooks 1"+confirmFlags, ExitFailed, "ShopA (version 1)")
	d.apply("webhook-secret rotate ShopA")
	d.expectExit("keys retire webhooks 1"+confirmFlags, ExitFailed, "ShopA (version 1)")
	d.apply("webhook-secret revoke ShopA 1", "keys retire webhooks 1")
	d.expectOutput("webhook-secret show ShopA"+confirmFlags, "whsec_")
}

// The waiting times of keys retire are the maxima of package settings.
func TestMaximumLifetimesMatchSettings(t *testing.T) {
	for name, longest := range map[string]time.Duration{settings.SecretCacheTTL: maxSecretCache,
		settings.AccessTokenLifetime: maxTokenLifetime} {
		for value, fits := range map[time.Duration]bool{longest: true, longest + time.Second: false} {
			variables := map[string]string{name: value.String()}
			env := settings.FromEnv(func(variable string) string { return variables[variable] })
			env.Duration(name)
			if (env.Err() == nil) != fits {
				t.Errorf("%s of %s: %v", name, value, env.Err())
			}
		}
	}
}
