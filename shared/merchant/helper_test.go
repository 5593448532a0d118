package merchant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/secret"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	cacheLife  = 30 * time.Second
	secretLife = 5 * time.Minute
)

// authFixture is an authenticator with its dependencies, and a clock that a test advances.
type authFixture struct {
	t             testing.TB
	currentTime   time.Time
	store         *storetest.Merchants
	private       []byte      // the ring that signs
	keySource     *stubSource // the ring that verifies
	keys          *secret.Cache
	authenticator *merchant.Authenticator
	profile       *merchant.Profile
	token         string // an active long-lived token of profile
}

// stubSource is the secret with the token keys.
type stubSource struct {
	text    []byte
	fail    error
	fetches int
}

func (v *stubSource) Fetch(context.Context, string) ([]byte, error) {
	v.fetches++
	return v.text, v.fail
}

func newAuthFixture(t testing.TB) *authFixture {
	t.Helper()
	d := &authFixture{t: t, currentTime: start, store: storetest.NewMerchants(), keySource: &stubSource{}}
	d.addKey()
	d.keys = secret.NewCache(d.keySource, "token-keys", keyring.RenewalInterval, 30*time.Second, d.now)
	d.authenticator = merchant.NewAuthenticator(
		d.store, keyring.NewRefreshingRing(d.keys, secretLife, d.now), cacheLife, d.now)
	d.profile = merchanttest.NewProfile(t, "DemoShop", 1)
	d.token = issueToken(t, d.profile, 2)
	if err := d.store.Create(context.Background(), d.profile); err != nil {
		t.Fatal(err)
	}
	return d
}

// issueToken adds a long-lived token to a profile.
func issueToken(t testing.TB, p *merchant.Profile, seed int64) string {
	t.Helper()
	token, err := merchant.LongLivedToken.Issue(p, merchanttest.SeededReader(seed), start)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (d *authFixture) now() time.Time { return d.currentTime }

func (d *authFixture) addKey() {
	random := merchanttest.SeededReader(int64(100 + len(d.private)))
	next, err := keyring.Pair{Private: d.private, Public: d.keySource.text}.AddKey(random, d.currentTime)
	d.setPair(next, err)
}

func (d *authFixture) revokeKey(number int) {
	random := merchanttest.SeededReader(int64(200 + len(d.private)))
	pair := keyring.Pair{Private: d.private, Public: d.keySource.text}
	next, err := pair.RevokeKey(number, random, d.currentTime, secretLife)
	d.setPair(next, err)
}

func (d *authFixture) setPair(next keyring.Pair, err error) {
	if err != nil {
		d.t.Fatal(err)
	}
	d.private, d.keySource.text = next.Private, next.Public
}

// sign makes a short-lived token for a profile with the newest key.
func (d *authFixture) sign(p *merchant.Profile, expires time.Time) string {
	ring, err := keyring.Parse(d.private)
	if err != nil {
		d.t.Fatal(err)
	}
	return merchant.SignShortLivedToken(p, ring.SigningKey(start.Add(1000*time.Hour), 0), expires)
}

// update stores a change of the profile.
func (d *authFixture) update(change func(p *merchant.Profile)) {
	d.t.Helper()
	change(d.profile)
	if err := d.store.Update(context.Background(), d.profile); err != nil {
		d.t.Fatal(err)
	}
}

// wantAccepted requires that a token is accepted, after this number of reads in total.
func (d *authFixture) wantAccepted(token string, reads int) {
	d.t.Helper()
	p, err := d.authenticator.Authenticate(context.Background(), "Bearer "+token)
	if err != nil || p == nil || p.ID != d.profile.ID {
		d.t.Fatalf("Authenticate = %v, %v", p, err)
	}
	d.wantReads(reads)
}

// wantRefused requires a fault of a kind, after this number of reads in total.
func (d *authFixture) wantRefused(authorization string, kind fault.Kind, reads int) {
	d.t.Helper()
	p, err := d.authenticator.Authenticate(context.Background(), authorization)
	var f *fault.Fault
	if p != nil || !errors.As(err, &f) || f.Kind != kind {
		d.t.Fatalf("Authenticate = %v, %v, want a fault of kind %d", p, err, kind)
	}
	d.wantReads(reads)
}

func (d *authFixture) wantReads(reads int) {
	d.t.Helper()
	if got := d.store.CallCount(storetest.ReadProfile); got != reads {
		d.t.Fatalf("%d reads of the store so far, want %d", got, reads)
	}
}
