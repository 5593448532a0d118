package merchant_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/internal/merchantmem"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/merchanttest"
	"mobilegateway/shared/secret"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	cacheLife  = 30 * time.Second
	secretLife = 5 * time.Minute
)

// desk is an authenticator with all that is around it, and a clock that a test moves.
type desk struct {
	t       testing.TB
	at      time.Time
	store   *merchantmem.Store
	vault   *vault
	keys    *secret.Cache
	auth    *merchant.Authenticator
	profile *merchant.Profile
	token   string // a live long token of profile
}

// vault is the secret that holds the token keys.
type vault struct {
	text    []byte
	fail    error
	fetches int
}

func (v *vault) Fetch(context.Context, string) (secret.Value, error) {
	v.fetches++
	return secret.Value{Current: v.text}, v.fail
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{t: t, at: start, store: &merchantmem.Store{}, vault: &vault{}}
	d.addKey()
	d.keys = secret.New(d.vault, "token-keys", secretLife, 30*time.Second, d.now)
	d.auth = merchant.NewAuthenticator(d.store, d.keys, cacheLife, d.now)
	d.profile = merchanttest.NewProfile(t, "DemoShop", 1)
	token, err := merchant.IssueToken(d.profile, merchanttest.Random(2), start)
	if err != nil {
		t.Fatal(err)
	}
	d.token = token
	if err := d.store.Create(context.Background(), d.profile); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) now() time.Time { return d.at }

func (d *desk) addKey() {
	text, err := keyring.Append(d.vault.text, merchanttest.Random(int64(100+len(d.vault.text))), d.at)
	if err != nil {
		d.t.Fatal(err)
	}
	d.vault.text = text
}

// sign makes a short-lived token for a profile with the newest key of the vault.
func (d *desk) sign(p *merchant.Profile, expires time.Time) string {
	ring, err := keyring.Parse(d.vault.text)
	if err != nil {
		d.t.Fatal(err)
	}
	return merchant.SignToken(p, ring.Signing(start.Add(1000*time.Hour), 0), expires)
}

// update stores a change of the profile.
func (d *desk) update(change func(p *merchant.Profile)) {
	d.t.Helper()
	change(d.profile)
	if err := d.store.Update(context.Background(), d.profile); err != nil {
		d.t.Fatal(err)
	}
}

// accepted wants a token to be accepted, with a number of reads so far.
func (d *desk) accepted(token string, reads int) {
	d.t.Helper()
	p, err := d.auth.Authenticate(context.Background(), "Bearer "+token)
	if err != nil || p == nil || p.ID != d.profile.ID {
		d.t.Fatalf("Authenticate = %v, %v", p, err)
	}
	d.wantReads(reads)
}

// refused wants a header to be refused, with a number of reads so far.
func (d *desk) refused(authorization string, kind fault.Kind, reads int) {
	d.t.Helper()
	p, err := d.auth.Authenticate(context.Background(), authorization)
	var f *fault.Fault
	if p != nil || !errors.As(err, &f) || f.Kind != kind {
		d.t.Fatalf("Authenticate = %v, %v, want a fault of kind %d", p, err, kind)
	}
	d.wantReads(reads)
}

func (d *desk) wantReads(reads int) {
	d.t.Helper()
	if got := d.store.Reads(); got != reads {
		d.t.Fatalf("%d reads of the store so far, want %d", got, reads)
	}
}
