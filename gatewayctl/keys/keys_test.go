package keys_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/keys"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/settings"
)

func TestKeys(t *testing.T) {
	d := gatewayctltest.New(t)
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		first := keys.View{Ring: ring, Number: 1, Added: d.Now, SignsFrom: d.Now, Signs: true}
		second := keys.View{Ring: ring, Number: 2, Added: d.Now, SignsFrom: d.Now.Add(10 * time.Minute)}
		d.ExpectJSON("empty ring", "keys list "+ring, []keys.View{})
		d.ExpectJSON("first key", "keys add "+ring+gatewayctltest.Confirm, []keys.View{first})
		d.ExpectJSON("second key", "keys add "+ring+" --secret-cache 10m"+gatewayctltest.Confirm,
			[]keys.View{first, second})
	}
	d.Now = d.Now.Add(10 * time.Minute)
	keys := gatewayctltest.Query[[]keys.View](d, "keys list tokens")
	d.Equal("the old key signs", keys[0].Signs, false)
	d.Equal("the new key signs", keys[1].Signs, true)
	d.ExpectExit("keys add nothing", gatewayctl.ExitUsage, "tokens")
	d.Variables["TOKEN_KEY_SECRET"] = ""
	d.ExpectExit("keys list tokens", gatewayctl.ExitUsage, "TOKEN_KEY_SECRET")
	d.Vault.Values["callback-keys"] = []byte("{SECRET")
	if _, _, stderr := d.Exec("keys add callbacks"); strings.Contains(stderr, "SECRET\"") || stderr == "" {
		t.Errorf("a broken ring: %s", stderr)
	}
}

// decision "key-rings".
func TestRetire(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.Apply("keys add tokens", "keys add callbacks", "keys add webhooks", "keys add tokens", "keys add callbacks")
	d.ExpectExit("keys add webhooks"+gatewayctltest.Confirm, gatewayctl.ExitDone, "signs in 5m0s")
	began := d.Now
	d.ExpectFailed("keys retire callbacks 1", "never retired")
	d.ExpectFailed("keys retire tokens 2", "newest")
	d.ExpectFailed("keys retire tokens 9", "no key 9")
	d.ExpectFailed("keys retire tokens 1", "from 2026-03-02T13:00:00Z on")
	d.Now = began.Add(25*time.Hour - time.Second)
	d.ExpectFailed("keys retire tokens 1", "until then")
	d.Now = began.Add(25 * time.Hour)
	stored := gatewayctltest.Change[[]keys.View](d, "keys retire tokens 1")
	d.Equal("keys left", len(stored), 1)
	d.Equal("number of the key left", stored[0].Number, 2)
	d.Equal("number of a new key", gatewayctltest.Change[[]keys.View](d, "keys add tokens")[1].Number, 3)

	d.Apply("merchant suspend ShopA")
	late := d.Now
	d.Now = began // a refusal by the time would hide which merchants must rotate
	d.ExpectFailed("keys retire webhooks 1", "ShopA (version 1)")
	d.Now = late
	d.ExpectFailed("keys retire webhooks 1", "ShopA (version 1)")
	d.Apply("webhook-secret rotate ShopA")
	d.ExpectFailed("keys retire webhooks 1", "ShopA (version 1)")
	d.Apply("webhook-secret revoke ShopA 1", "keys retire webhooks 1")
	d.ExpectOutput("webhook-secret show ShopA"+gatewayctltest.Confirm, "whsec_")
}

// SIGNS FROM is when a key began to sign. It does not move when this key or a newer one signs. It does not move either
// when the older key is retired or revoked afterwards.
func TestSignsFromDoesNotMove(t *testing.T) {
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		d := gatewayctltest.New(t)
		line := "keys list " + ring
		d.Apply("keys add " + ring)
		second := d.Now.Add(time.Hour)
		d.Now = second
		d.Apply("keys add " + ring)
		wants := []time.Time{second.Add(-time.Hour), second.Add(5 * time.Minute)}
		expect := func(when string, wants ...time.Time) {
			views := gatewayctltest.Query[[]keys.View](d, line)
			for i, want := range wants {
				d.Equal(ring+" "+when, views[i].SignsFrom, want)
			}
		}
		expect("added", wants...)
		d.Now = d.Now.Add(4 * time.Minute)
		expect("waiting", wants...)
		d.Now = d.Now.Add(time.Hour)
		expect("signing", wants...)
		third := d.Now
		d.Apply("keys add " + ring)
		wants = append(wants, third.Add(5*time.Minute))
		expect("another was added", wants...)
		d.Now = d.Now.Add(26 * time.Hour)
		expect("another signs", wants...)
		if ring != "callbacks" {
			d.Apply("keys retire " + ring + " 1")
			expect("retired", wants[1:]...)
			continue
		}
		d.Apply("keys revoke " + ring + " 1 --compromised")
		views := gatewayctltest.Query[[]keys.View](d, line)
		d.Equal("after a revocation", views[1].SignsFrom, wants[1])
	}
}

// The waiting times of keys retire are the maxima of package settings.
func TestMaximumLifetimesMatchSettings(t *testing.T) {
	for name, longest := range map[string]time.Duration{settings.SecretCacheTTL: keys.MaxSecretCache,
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
	d := gatewayctltest.New(t)
	d.Apply("keys add tokens")
	d.ExpectExit("keys revoke tokens 1"+gatewayctltest.Confirm, gatewayctl.ExitUsage, "--compromised")
	stored := gatewayctltest.Change[[]keys.View](d, "keys revoke tokens 1 --compromised")
	want := []keys.View{{Ring: "tokens", Number: 1, Added: d.Now, Revoked: d.Now},
		{Ring: "tokens", Number: 2, Added: d.Now, SignsFrom: d.Now.Add(keyring.SigningDelay)}}
	d.Equal("keys", stored, want)
	d.Now = d.Now.Add(keyring.SigningDelay)
	d.Equal("the new key signs", gatewayctltest.Query[[]keys.View](d, "keys list tokens")[1].Signs, true)
	for _, name := range []string{"token-keys", "token-public-keys"} {
		ring := parseRing(d, name)
		_, found := ring.FindKey(1)
		d.Equal(name+" has key 1", found, false)
		_, found = ring.FindKey(2)
		d.Equal(name+" has key 2", found, true)
	}
	d.ExpectOutput("audit", "revoke a key", "ring tokens", "key 1, compromised")
	d.ExpectFailed("keys revoke tokens 1 --compromised", "no live key 1")
	d.ExpectFailed("keys retire tokens 1", "no key 1")
}

// failingSecrets is a store whose nth put fails, before or after it was stored. after runs after each put.
type failingSecrets struct {
	deployment.SecretStore
	puts, failing int
	isStored      bool
	after         func()
}

// Put implements SecretStore.
func (f *failingSecrets) Put(ctx context.Context, current deployment.StoredSecret, value []byte) error {
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
				d := gatewayctltest.New(t)
				d.Apply("keys add tokens")
				d.Now = d.Now.Add(time.Hour)
				failures := &failingSecrets{SecretStore: d.Vault, failing: failing, isStored: isStored}
				failures.after = func() {
					private, public := parseRing(d, "token-keys"), parseRing(d, "token-public-keys")
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
				d.ChangeStores(func(stores *deployment.Stores) { stores.Secrets = failures })
				code, _, stderr := d.Exec(line + gatewayctltest.Confirm)
				if (code == gatewayctl.ExitDone) != (failing == 0) {
					t.Fatalf("%s, put %d fails: exit %d: %s", line, failing, code, stderr)
				}
				if failing > 0 && len(parseRing(d, "token-keys").Keys()) == 1 {
					d.Apply(line)
				}
				d.Equal(line+": keys", len(parseRing(d, "token-keys").Keys()), 2)
			}
		}
	}
}

// parseRing returns a stored ring.
func parseRing(d *gatewayctltest.Tool, name string) *keyring.Ring {
	d.T.Helper()
	ring, err := keyring.Parse(d.Vault.Values[name])
	if err != nil {
		d.T.Fatal(err)
	}
	return ring
}

// decision "key-rings": the costs are shown before a callback key is revoked, and what is lost waits for a person.
func TestRevokeCallbacks(t *testing.T) {
	d, shop := gatewayctltest.NewShop(t)
	d.Apply("keys add callbacks", "keys add tokens")
	d.Now = d.Now.Add(time.Hour)
	d.AddPendingPayment(shop, 1, d.Now)
	d.AddDeliveredPayment(shop, 2, d.Now)
	message := d.AddDeliveredPayment(shop, 3, d.Now).Clone()
	message.Key, message.Status = ledger.Key{Kind: ledger.SMS, ID: "m-1"}, ledger.MessageWaiting
	message.FinalAt, message.Outbox.Delivered = time.Time{}, nil
	d.Ledger.Overwrite(message)
	d.Now = d.Now.Add(time.Hour)

	before := string(d.Vault.Values["callback-keys"])
	for _, flags := range []string{"", gatewayctltest.Confirm} {
		d.ExpectExit("keys revoke callbacks 1 --compromised"+flags, gatewayctl.ExitDone,
			"1 result by lookup, 1 result lost", "Lost: sms#m-1 of ShopA", "503 for new payments and SMS")
		if changed := string(d.Vault.Values["callback-keys"]) != before; changed != (flags != "") {
			t.Errorf("%q: the ring changed: %v", flags, changed)
		}
	}
	d.ExpectOutput("audit", "key 1, compromised: 1 result by lookup, 1 result lost")
	var lost []string
	for _, v := range d.Attend("attention --no-lookup", gatewayctl.ExitWaiting) {
		if v.What == "callback-lost" {
			lost = append(lost, v.Subject)
		}
	}
	d.Equal("lost callbacks", lost, []string{"sms#m-1"})
	d.Apply("attention close sms m-1")
	d.ExpectWithout("attention --no-lookup", gatewayctl.ExitWaiting, "callback-lost")
	d.ExpectExit("keys revoke callbacks 1 --compromised --at-once", gatewayctl.ExitUsage, "webhooks")
}

// decision "key-rings": a leaked webhook key rotates every merchant's secret, and ends with --at-once.
func TestRevokeWebhooks(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	d.Onboard("ShopB")
	d.Apply("merchant suspend ShopB")
	inform := gatewayctltest.Change[[]keys.InformView](d, "keys revoke webhooks 1 --compromised")
	d.Equal("merchants to inform", inform, []keys.InformView{
		{Merchant: "ShopA", Version: 2, Leaked: []int{1}, NotifURL: "https://shop.example/n"},
		{Merchant: "ShopB", Version: 2, Leaked: []int{1}, NotifURL: "https://shop.example/n"},
	})
	d.Equal("both sign", webhookVersions(d, "ShopA"), []int{2, 1})
	d.Apply("keys revoke webhooks 1 --compromised") // again: nothing more is rotated
	d.Equal("both sign still", webhookVersions(d, "ShopA"), []int{2, 1})
	d.ExpectExit("keys revoke webhooks 1 --compromised --at-once"+gatewayctltest.Confirm, gatewayctl.ExitDone,
		"refuses every notification")
	for _, shop := range []string{"ShopA", "ShopB"} {
		d.Equal(shop+": only the new one signs", webhookVersions(d, shop), []int{2})
	}
	keys := gatewayctltest.Query[[]keys.View](d, "keys list webhooks")
	d.Equal("key 1 is revoked", keys[0].Revoked, d.Now)
	d.Equal("key 2 signs", keys[1].Signs, true)
	d.ExpectOutput("webhook-secret show ShopA"+gatewayctltest.Confirm, "whsec_")
}

// TestInterruptedRevocationNamesAllMerchants: a run that ends half way shows all merchants to inform, and so does its
// audit record. The next run finds only the rest.
func TestInterruptedRevocationNamesAllMerchants(t *testing.T) {
	const line = "keys revoke webhooks 1 --compromised --at-once" + gatewayctltest.Confirm
	d, _ := gatewayctltest.NewShop(t)
	d.Onboard("ShopB")
	d.ChangeStores(func(s *deployment.Stores) { s.Merchants = &interruptedMerchants{Registry: s.Merchants} })
	code, out, stderr := d.Exec(line)
	if code != gatewayctl.ExitFailed || !strings.Contains(stderr, "run the command again") ||
		!strings.Contains(out, "ShopA") {
		t.Errorf("an interrupted run: exit %d: %s%s", code, out, stderr)
	}
	d.ChangeStores(func(*deployment.Stores) {})
	if _, out, _ = d.Exec(line); strings.Contains(out, "ShopA") || !strings.Contains(out, "ShopB") {
		t.Errorf("the next run shows %s", out)
	}
	first := auditlog.ReadItem(d.Audit.Stored[len(d.Audit.Stored)-4]).Record
	d.Equal("first record", first.Outcome+": "+first.Detail, "started: inform: ShopA, ShopB")
	d.ExpectOutput("audit", "inform: ShopA, ShopB; failed", "inform: ShopB")
}

// TestMerchantAddedDuringRevocation: the key stays as long as any merchant has a secret of it.
func TestMerchantAddedDuringRevocation(t *testing.T) {
	const line = "keys revoke webhooks 1 --compromised --at-once" + gatewayctltest.Confirm
	d, _ := gatewayctltest.NewShop(t)
	busy := &busyMerchants{d.Merchants, func() { d.Onboard("ShopB") }}
	d.ChangeStores(func(s *deployment.Stores) { s.Merchants = busy })
	d.ExpectExit(line, gatewayctl.ExitFailed, "run the command again")
	d.Equal("key 1 is revoked", !gatewayctltest.Query[[]keys.View](d, "keys list webhooks")[0].Revoked.IsZero(), false)
	d.MustRun(line, nil)
	d.ExpectOutput("webhook-secret show ShopB"+gatewayctltest.Confirm, "whsec_")
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
func webhookVersions(d *gatewayctltest.Tool, name string) (versions []int) {
	for _, w := range gatewayctltest.Query[[]merchants.WebhookSecret](d, "webhook-secret list "+name) {
		versions = append(versions, w.Version)
	}
	return versions
}
