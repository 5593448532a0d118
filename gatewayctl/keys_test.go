package gatewayctl

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/settings"
)

func TestKeys(t *testing.T) {
	d := newTestTool(t)
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		first := keyView{Ring: ring, Number: 1, Added: d.now, SignsFrom: d.now, Signs: true}
		second := keyView{Ring: ring, Number: 2, Added: d.now, SignsFrom: d.now.Add(10 * time.Minute)}
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
		settings.AccessTokenLifetime: merchant.MaxTokenLifetime} {
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

// decision "key-rings": a leaked token key is revoked in both rings, with an audit record, and never without --yes.
func TestRevokeTokens(t *testing.T) {
	d := newTestTool(t)
	d.apply("keys add tokens")
	d.expectExit("keys revoke tokens 1"+confirmFlags, ExitUsage, "--compromised")
	before := string(d.vault.values["token-keys"])
	d.mustRun("keys revoke tokens 1 --compromised", nil)
	checkEqual(t, "private ring after a dry run", string(d.vault.values["token-keys"]), before)
	keys := query[[]keyView](d, "keys revoke tokens 1 --compromised"+confirmFlags)
	want := []keyView{{Ring: "tokens", Number: 1, Added: d.now, Revoked: d.now},
		{Ring: "tokens", Number: 2, Added: d.now, SignsFrom: d.now.Add(keyring.SigningDelay)}}
	checkEqual(t, "keys", keys, want)
	d.now = d.now.Add(keyring.SigningDelay)
	checkEqual(t, "the new key signs", query[[]keyView](d, "keys list tokens")[1].Signs, true)
	for _, name := range []string{"token-keys", "token-public-keys"} {
		ring, err := keyring.Parse(d.vault.values[name])
		if err != nil {
			t.Fatal(err)
		}
		_, found := ring.FindKey(1)
		checkEqual(t, name+" has key 1", found, false)
		_, found = ring.FindKey(2)
		checkEqual(t, name+" has key 2", found, true)
	}
	d.expectOutput("audit", "revoke a key", "ring tokens", "key 1, compromised")
	d.expectExit("keys revoke tokens 1 --compromised"+confirmFlags, ExitFailed, "no live key 1")
	d.expectExit("keys retire tokens 1"+confirmFlags, ExitFailed, "no key 1")
}

// failingSecrets is a store whose nth put fails, before or after it was stored. after runs after each put.
type failingSecrets struct {
	SecretStore
	puts, failing int
	isStored      bool
	after         func()
}

// Put implements SecretStore.
func (f *failingSecrets) Put(ctx context.Context, current StoredSecret, value []byte) error {
	defer f.after()
	f.puts++
	if f.puts != f.failing {
		return f.SecretStore.Put(ctx, current, value)
	}
	if f.isStored {
		if err := f.SecretStore.Put(ctx, current, value); err != nil {
			return err
		}
	}
	return errors.New("no response")
}

// decision "key-rings": a function may sign with any live private key. So the public ring has each of their numbers, or
// their tombstones, after every put, also if one of the puts fails. The same command completes the change.
func TestPublicRingHasEachLivePrivateKey(t *testing.T) {
	for _, line := range []string{"keys add tokens", "keys revoke tokens 1 --compromised"} {
		for failing := range 3 { // 0: none
			for _, isStored := range []bool{false, true} {
				d := newTestTool(t)
				d.apply("keys add tokens")
				d.now = d.now.Add(time.Hour)
				failures := &failingSecrets{SecretStore: d.vault, failing: failing, isStored: isStored}
				failures.after = func() {
					private, public := d.parseRing("token-keys"), d.parseRing("token-public-keys")
					for _, key := range private.Keys() {
						isPublic := slices.ContainsFunc(public.Keys(), func(k keyring.Key) bool {
							return k.Number == key.Number
						})
						if key.RevokedAt.IsZero() && !isPublic {
							t.Errorf("%s, put %d fails, stored %v: key %d signs, and is not in the public ring",
								line, failing, isStored, key.Number)
						}
					}
				}
				d.changeStores(func(stores *Stores) { stores.Secrets = failures })
				code, _, stderr := d.run(line + confirmFlags)
				if (code == ExitDone) != (failing == 0) {
					t.Fatalf("%s, put %d fails: exit %d: %s", line, failing, code, stderr)
				}
				if failing > 0 && len(d.parseRing("token-keys").Keys()) == 1 {
					d.apply(line)
				}
				checkEqual(t, line+": keys", len(d.parseRing("token-keys").Keys()), 2)
			}
		}
	}
}

// parseRing returns a stored ring.
func (d *testTool) parseRing(name string) *keyring.Ring {
	d.t.Helper()
	ring, err := keyring.Parse(d.vault.values[name])
	if err != nil {
		d.t.Fatal(err)
	}
	return ring
}

// decision "key-rings": the costs are shown before a callback key is revoked, and what is lost waits for a person.
func TestRevokeCallbacks(t *testing.T) {
	d, shop := newShopTool(t)
	d.apply("keys add callbacks", "keys add tokens")
	d.now = d.now.Add(time.Hour)
	pending := d.addDeliveredPayment(shop, 1, d.now)
	pending.Status, pending.FinalAt, pending.Delivered, pending.PollAt = ledger.Pending, time.Time{}, nil, d.now
	d.ledger.Overwrite(pending)
	d.addDeliveredPayment(shop, 2, d.now)
	message := d.addDeliveredPayment(shop, 3, d.now).Clone()
	message.Key, message.Status = ledger.Key{Kind: ledger.SMS, ID: "m-1"}, ledger.MessageWaiting
	message.FinalAt, message.Delivered = time.Time{}, nil
	d.ledger.Overwrite(message)
	d.now = d.now.Add(time.Hour)

	before := string(d.vault.values["callback-keys"])
	for _, flags := range []string{"", confirmFlags} {
		code, _, stderr := d.run("keys revoke callbacks 1 --compromised" + flags)
		if code != ExitDone || !strings.Contains(stderr, "1 result by lookup, 1 result lost") ||
			!strings.Contains(stderr, "Lost: sms#m-1 of ShopA") ||
			!strings.Contains(stderr, "503 for new payments and SMS") {
			t.Errorf("%q: exit %d: %s", flags, code, stderr)
		}
		if changed := string(d.vault.values["callback-keys"]) != before; changed != (flags != "") {
			t.Errorf("%q: the ring changed: %v", flags, changed)
		}
	}
	d.expectOutput("audit", "key 1, compromised: 1 result by lookup, 1 result lost")
	var views []attentionView
	_, out, _ := d.run("attention --no-lookup --json")
	if err := json.Unmarshal([]byte(out), &views); err != nil {
		t.Fatal(err, out)
	}
	var lost []string
	for _, v := range views {
		if v.What == waitsCallback {
			lost = append(lost, v.Subject)
		}
	}
	checkEqual(t, "lost callbacks", lost, []string{"sms#m-1"})
	d.apply("attention close sms m-1")
	if _, out, _ = d.run("attention --no-lookup"); strings.Contains(out, waitsCallback) {
		t.Errorf("a closed one is listed: %s", out)
	}
	d.expectExit("keys revoke callbacks 1 --compromised --at-once", ExitUsage, "webhooks")
}

// decision "key-rings": a leaked webhook key rotates every merchant's secret, and ends with --at-once.
func TestRevokeWebhooks(t *testing.T) {
	d, _ := newShopTool(t)
	d.onboard("ShopB")
	d.apply("merchant suspend ShopB")
	d.mustRun("keys revoke webhooks 1 --compromised", nil)
	checkEqual(t, "versions after a dry run", len(d.webhookVersions("ShopA")), 1)
	inform := query[[]informView](d, "keys revoke webhooks 1 --compromised"+confirmFlags)
	checkEqual(t, "merchants to inform", inform, []informView{
		{Merchant: "ShopA", Version: 2, Leaked: []int{1}, NotifURL: "https://shop.example/n"},
		{Merchant: "ShopB", Version: 2, Leaked: []int{1}, NotifURL: "https://shop.example/n"},
	})
	checkEqual(t, "both sign", d.webhookVersions("ShopA"), []int{2, 1})
	d.apply("keys revoke webhooks 1 --compromised") // again: nothing more is rotated
	checkEqual(t, "both sign still", d.webhookVersions("ShopA"), []int{2, 1})
	code, _, stderr := d.run("keys revoke webhooks 1 --compromised --at-once" + confirmFlags)
	if code != ExitDone || !strings.Contains(stderr, "refuses every notification") {
		t.Errorf("at once: exit %d: %s", code, stderr)
	}
	for _, shop := range []string{"ShopA", "ShopB"} {
		checkEqual(t, shop+": only the new one signs", d.webhookVersions(shop), []int{2})
	}
	keys := query[[]keyView](d, "keys list webhooks")
	checkEqual(t, "key 1 is revoked", keys[0].Revoked, d.now)
	checkEqual(t, "key 2 signs", keys[1].Signs, true)
	d.expectOutput("webhook-secret show ShopA"+confirmFlags, "whsec_")
}

// TestInterruptedRevocationNamesAllMerchants: a run that ends half way shows all merchants to inform, and so does its
// audit record. The next run finds only the rest.
func TestInterruptedRevocationNamesAllMerchants(t *testing.T) {
	const line = "keys revoke webhooks 1 --compromised --at-once" + confirmFlags
	d, _ := newShopTool(t)
	d.onboard("ShopB")
	d.changeStores(func(s *Stores) { s.Merchants = &interruptedMerchants{Registry: s.Merchants} })
	code, out, stderr := d.run(line)
	if code != ExitFailed || !strings.Contains(stderr, "run the command again") || !strings.Contains(out, "ShopA") {
		t.Errorf("an interrupted run: exit %d: %s%s", code, out, stderr)
	}
	d.changeStores(func(*Stores) {})
	if _, out, _ = d.run(line); strings.Contains(out, "ShopA") || !strings.Contains(out, "ShopB") {
		t.Errorf("the next run shows %s", out)
	}
	first := readAuditItem(d.audit.items[len(d.audit.items)-4]).Record
	checkEqual(t, "first record", first.Outcome+": "+first.Detail, "started: inform: ShopA, ShopB")
	d.expectOutput("audit", "inform: ShopA, ShopB; failed", "inform: ShopB")
}

// TestMerchantAddedDuringRevocation: the key stays as long as any merchant has a secret of it.
func TestMerchantAddedDuringRevocation(t *testing.T) {
	const line = "keys revoke webhooks 1 --compromised --at-once" + confirmFlags
	d, _ := newShopTool(t)
	busy := &busyMerchants{d.merchants, func() { d.onboard("ShopB") }}
	d.changeStores(func(s *Stores) { s.Merchants = busy })
	code, _, stderr := d.run(line)
	if code != ExitFailed || !strings.Contains(stderr, "run the command again") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	checkEqual(t, "key 1 is revoked", !query[[]keyView](d, "keys list webhooks")[0].Revoked.IsZero(), false)
	d.mustRun(line, nil)
	d.expectOutput("webhook-secret show ShopB"+confirmFlags, "whsec_")
}

// busyMerchants is a store that another process changes before the first update.
type busyMerchants struct {
	merchant.Registry
	change func()
}

// Update implements merchant.Registry.
func (m *busyMerchants) Update(ctx context.Context, p *merchant.Profile) error {
	if change := m.change; change != nil {
		m.change = nil
		change()
	}
	return m.Registry.Update(ctx, p)
}

// interruptedMerchants is a store that stores only one profile.
type interruptedMerchants struct {
	merchant.Registry
	updates int
}

// Update implements merchant.Registry.
func (m *interruptedMerchants) Update(ctx context.Context, p *merchant.Profile) error {
	if m.updates++; m.updates > 1 {
		return errors.New("interrupted")
	}
	return m.Registry.Update(ctx, p)
}

// webhookVersions are the versions of a merchant's webhook secret, newest first.
func (d *testTool) webhookVersions(name string) (versions []int) {
	for _, w := range query[[]struct {
		Version int `json:"version"`
	}](d, "webhook-secret list "+name) {
		versions = append(versions, w.Version)
	}
	return versions
}
