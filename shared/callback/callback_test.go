package callback

import (
	"context"
	"encoding/base64"
	"errors"
	"math/rand"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/secret"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	life      = 5 * time.Minute
	base      = "https://api.example/prod"
	requestID = "0f8fad5b-d9cb-469f-a165-70867728950e"
)

// fakeSecretSource is a secret behind the real cache, counted.
type fakeSecretSource struct {
	text    []byte
	err     error
	fetches int
}

func (v *fakeSecretSource) Fetch(context.Context, string) ([]byte, error) {
	v.fetches++
	return v.text, v.err
}

func ringText(t testing.TB, added ...time.Time) []byte {
	t.Helper()
	random := rand.New(rand.NewSource(1))
	var text []byte
	for _, at := range added {
		var err error
		if text, err = keyring.AddKey(text, random, at); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

func newKeys(v *fakeSecretSource, at *time.Time) *Keys {
	now := func() time.Time { return *at }
	cache := secret.NewCache(v, "callbacks", keyring.RenewalInterval, 30*time.Second, now)
	return New(keyring.NewRefreshingRing(cache, life, now), life)
}

func mustRing(t testing.TB, keys *Keys) *Ring {
	t.Helper()
	ring, err := keys.Ring(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// mustVerify reports whether the keys verify a token; they can always be read.
func mustVerify(t testing.TB, keys *Keys, path, token string) bool {
	t.Helper()
	_, valid, err := keys.Verify(context.Background(), path, token)
	if err != nil {
		t.Fatal(err)
	}
	return valid
}

// orderPath is the path that newSigned signs.
var orderPath = PaymentPath("orange", "DemoShop_1")

// newSigned returns keys with one key, and their token of orderPath.
func newSigned(t testing.TB) (keys *Keys, token string) {
	t.Helper()
	at := start
	keys = newKeys(&fakeSecretSource{text: ringText(t, start)}, &at)
	return keys, mustRing(t, keys).Sign(orderPath)
}

func TestURLs(t *testing.T) {
	at := start
	ring := mustRing(t, newKeys(&fakeSecretSource{text: ringText(t, start)}, &at))
	cases := []struct{ name, address, want string }{
		{"payment", ring.PaymentURL(base, "orange", "DemoShop_1"), base + "/callbacks/v1/payments/orange/DemoShop_1/"},
		{"receipt", ring.ReceiptURL(base, "orange", requestID),
			base + "/callbacks/v1/receipts/orange/" + requestID + "/"},
		{"a slash at the end of base", ring.PaymentURL(base+"/", "mtn", "S_2"),
			base + "/callbacks/v1/payments/mtn/S_2/"},
		{"segments are encoded", ring.PaymentURL(base, "a/b", "x y?#%"),
			base + "/callbacks/v1/payments/a%2Fb/x%20y%3F%23%25/"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rest, found := strings.CutPrefix(c.address, c.want)
			if !found || len(rest) != TokenLength {
				t.Fatalf("%s does not begin with %s and end in a token", c.address, c.want)
			}
			parsed, err := url.Parse(c.address)
			if err != nil || parsed.RawQuery != "" || strings.ContainsAny(rest, "=+/") {
				t.Errorf("%s is not a plain URL: %v", c.address, err)
			}
		})
	}
}

func TestTokenIsValidForOnePathOnly(t *testing.T) {
	keys, token := newSigned(t)
	cases := []struct {
		name, path, token string
		want              bool
	}{
		{"its own path", PaymentPath("orange", "DemoShop_1"), token, true},
		{"another order", PaymentPath("orange", "DemoShop_2"), token, false},
		{"another operator", PaymentPath("mtn", "DemoShop_1"), token, false},
		{"another kind", ReceiptPath("orange", "DemoShop_1"), token, false},
		{"parts moved over the slash", PaymentPath("orange/DemoShop", "1"), token, false},
		{"other case of the operator", PaymentPath("Orange", "DemoShop_1"), token, false},
		{"no token", PaymentPath("orange", "DemoShop_1"), "", false},
		{"a token cut short", PaymentPath("orange", "DemoShop_1"), token[:len(token)-1], false},
		{"a token made longer", PaymentPath("orange", "DemoShop_1"), token + "A", false},
		{"a token with padding", PaymentPath("orange", "DemoShop_1"), token + "=", false},
		{"not base64url", PaymentPath("orange", "DemoShop_1"), strings.Repeat("!", TokenLength), false},
		{"all zero", PaymentPath("orange", "DemoShop_1"), strings.Repeat("A", TokenLength), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := mustVerify(t, keys, c.path, c.token); got != c.want {
				t.Errorf("Verify = %v, want %v", got, c.want)
			}
		})
	}
}

func TestFlippedBitIsRejected(t *testing.T) {
	keys, token := newSigned(t)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range len(raw) * 8 {
		raw[bit/8] ^= 1 << (bit % 8)
		if _, accepted, _ := keys.Verify(t.Context(), orderPath, base64.RawURLEncoding.EncodeToString(raw)); accepted {
			t.Errorf("accepted with bit %d flipped", bit)
		}
		raw[bit/8] ^= 1 << (bit % 8)
	}
}

func TestAlternativeLastCharacterIsRejected(t *testing.T) {
	keys, token := newSigned(t)
	for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		other := token[:len(token)-1] + string(last)
		if mustVerify(t, keys, orderPath, other) != (other == token) {
			t.Errorf("a second spelling of the token, ending in %c, is accepted", last)
		}
	}
}

func TestOldKeysStillVerify(t *testing.T) {
	at := start
	v := &fakeSecretSource{text: ringText(t, start)}
	keys := newKeys(v, &at)
	old := mustRing(t, keys).Sign(orderPath)

	v.text = ringText(t, start, start.Add(time.Hour))
	at = start.Add(time.Hour + life)
	young := mustRing(t, keys).Sign(orderPath)
	if young == old {
		t.Fatal("the new key does not sign")
	}
	at = start.Add(10 * 365 * 24 * time.Hour)
	for _, token := range []string{old, young} {
		if !mustVerify(t, keys, orderPath, token) {
			t.Errorf("the token %s is refused", token)
		}
	}
}

func TestMalformedTokenReadsNoSecret(t *testing.T) {
	at := start
	v := &fakeSecretSource{err: errors.New("must not be read")}
	_, good, err := newKeys(v, &at).Verify(context.Background(), "/x", "no token")
	if good || err != nil || v.fetches != 0 {
		t.Errorf("Verify = %v, %v with %d fetches", good, err, v.fetches)
	}
}

func TestVerifyFailsWithoutSecret(t *testing.T) {
	at := start
	keys := newKeys(&fakeSecretSource{err: errors.New("gone")}, &at)
	if _, err := keys.Ring(context.Background()); err == nil {
		t.Error("Ring gave no error")
	}
	if _, good, err := keys.Verify(context.Background(), "/x", strings.Repeat("A", TokenLength)); good || err == nil {
		t.Errorf("Verify = %v, %v; want an error, so that the operator comes again", good, err)
	}
}

func FuzzVerify(f *testing.F) {
	keys, good := newSigned(f)
	ring := mustRing(f, keys)
	f.Add(orderPath, good)
	f.Add(orderPath, "")
	f.Add("", good)
	f.Add(orderPath, strings.Repeat("_", TokenLength))
	f.Fuzz(func(t *testing.T, somePath, token string) {
		if mustVerify(t, keys, somePath, token) && token != ring.Sign(somePath) {
			t.Errorf("Verify(%q, %q) accepts what was not signed", somePath, token)
		}
	})
}

// entryOf returns an entry that was created and last reserved at times.
func entryOf(created, reserved time.Time) *ledger.Entry {
	return &ledger.Entry{CreatedAt: created, Call: ledger.Call{ReservedAt: reserved}}
}

// decision "key-rings": a key verifies for an entry if it could sign an address of it. The ring has key 1 from start on
// and key 2 an hour later, which signs after the cache lifetime.
func TestKeyVerifiesForItsTime(t *testing.T) {
	rotated := start.Add(time.Hour)
	signs := rotated.Add(life)
	const margin = time.Minute
	for _, c := range []struct {
		name              string
		created, reserved time.Time
		old, young        bool
	}{
		{"before the rotation", start, start, true, false},
		{"before the first key's time, by another clock", start.Add(-time.Hour), start.Add(-time.Hour), true, false},
		{"just before the new key signs", signs.Add(-time.Second), signs.Add(-time.Second), true, true},
		{"by a request that signed before it stored", signs.Add(margin), signs.Add(margin), true, true},
		{"after the rotation", signs.Add(margin + time.Second), signs.Add(margin + time.Second), false, true},
		{"a retry after the rotation has both addresses", start, signs.Add(time.Hour), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := signs.Add(2 * time.Hour)
			v := &fakeSecretSource{text: ringText(t, start, rotated)}
			keys := newKeys(v, &at)
			mustRing(t, keys)
			for number, want := range map[int]bool{1: c.old, 2: c.young} {
				got, err := (Proof{keys, number}).Covers(t.Context(), entryOf(c.created, c.reserved))
				if got != want || err != nil {
					t.Errorf("key %d: %v, %v, want %v", number, got, err, want)
				}
			}
			v.err = errors.New("gone")
			at = at.Add(time.Hour)
			for number, want := range map[int]bool{1: c.old, 2: c.young} {
				got, err := (Proof{keys, number}).Covers(t.Context(), entryOf(c.created, c.reserved))
				if got != want || (err == nil) != want {
					t.Errorf("key %d in a stale ring: %v, %v; want an error for a refusal", number, got, err)
				}
			}
		})
	}
}

// decision "key-rings": within 60 seconds nothing that a revoked key signed is valid, and the next key signs.
func TestRevokedKeyEndsWithinAMinute(t *testing.T) {
	at := start.Add(time.Hour)
	v := &fakeSecretSource{text: ringText(t, start)}
	keys := newKeys(v, &at)
	leaked := mustRing(t, keys).Sign(orderPath)
	text, err := keyring.AddKey(v.text, rand.New(rand.NewSource(2)), at)
	if err == nil {
		text, err = keyring.RevokeKey(text, 1, at)
	}
	if err != nil {
		t.Fatal(err)
	}
	v.text = text
	at = at.Add(keyring.RenewalInterval)
	if mustVerify(t, keys, orderPath, leaked) {
		t.Error("a token of the revoked key is accepted")
	}
	if ring := mustRing(t, keys); ring.NotYet == nil || ring.NotYet.Kind != fault.OperatorUnavailable {
		t.Errorf("before the next key signs: %v, want OperatorUnavailable", ring.NotYet)
	}
	at = at.Add(keyring.SigningDelay - keyring.RenewalInterval)
	if ring := mustRing(t, keys); ring.NotYet != nil || !mustVerify(t, keys, orderPath, ring.Sign(orderPath)) {
		t.Error("the next key does not sign a minute after it was stored")
	}
}

// decision "key-rings": a function that cannot renew its ring signs with an old key. The entry names it, so that it
// verifies at any time, but not once it is revoked.
func TestNamedKeyVerifiesAtAnyTime(t *testing.T) {
	at := start.Add(24 * time.Hour)
	v := &fakeSecretSource{text: ringText(t, start, start.Add(time.Hour), start.Add(2*time.Hour))}
	keys := newKeys(v, &at)
	entry := entryOf(at, at)
	for _, named := range [][]int{nil, {1}, {1, 2}} {
		entry.Route.CallbackKeys = named
		for number := 1; number <= 3; number++ {
			want := number == 3 || slices.Contains(named, number)
			if got, err := (Proof{keys, number}).Covers(t.Context(), entry); got != want || err != nil {
				t.Errorf("key %d for an entry of the keys %v: %v, %v, want %v", number, named, got, err, want)
			}
		}
	}
	text, err := keyring.RevokeKey(v.text, 1, at)
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := keyring.Parse(text)
	if err != nil || MayHaveSigned(revoked, 1, entry, life) || !MayHaveLost(revoked, entry, life) {
		t.Errorf("after the revocation of key 1 it verifies, or the entry does not count as lost: %v", err)
	}
}
