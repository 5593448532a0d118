package merchant_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/merchant"
)

func TestAuthorizationHeader(t *testing.T) {
	d := newAuthFixture(t)
	cases := []struct {
		name, header string
		want         fault.Kind // 0: accepted
	}{
		{"absent", "", fault.MissingCredentials},
		{"blank", "   ", fault.MissingCredentials},
		{"another scheme", "Basic ZGVtbzpzZWNyZXQ=", fault.MissingCredentials},
		{"only the scheme", "Bearer", fault.MissingCredentials},
		{"the scheme and a space", "Bearer ", fault.MissingCredentials},
		{"only the token", d.token, fault.MissingCredentials},
		{"a longer scheme", "Bearers " + d.token, fault.MissingCredentials},
		{"the usual form", "Bearer " + d.token, 0},
		{"lower case", "bearer " + d.token, 0},
		{"upper case", "BEARER " + d.token, 0},
		{"more spaces", "  Bearer   " + d.token + " ", 0},
		{"two tokens", "Bearer " + d.token + " " + d.token, fault.InvalidCredentials},
		{"text after it", "Bearer " + d.token + ", Basic x", fault.InvalidCredentials},
		{"in upper case", "Bearer " + strings.ToUpper(d.token), fault.InvalidCredentials},
		{"any word", "Bearer letmein", fault.InvalidCredentials},
		{"very long", "Bearer gwl_" + strings.Repeat("a", 100_000), fault.InvalidCredentials},
		{"very long and signed", "Bearer gws_" + strings.Repeat("a", 100_000), fault.InvalidCredentials},
		{"only the prefixes", "Bearer gws_", fault.InvalidCredentials},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := d.authenticator.Authenticate(t.Context(), c.header)
			switch {
			case c.want == 0 && (err != nil || p.Name != "DemoShop"):
				t.Errorf("refused: %v", err)
			case c.want != 0 && fault.FromError(err).Kind != c.want:
				t.Errorf("error = %v, want kind %d", err, c.want)
			case err != nil && strings.Contains(err.Error(), d.token):
				t.Error("the error contains the token")
			}
		})
	}
	d.wantReads(1)
}

func TestLongLivedTokenReadsProfileOnceWhileCached(t *testing.T) {
	d := newAuthFixture(t)
	d.wantAccepted(d.token, 1)
	d.wantAccepted(d.token, 1)
	d.currentTime = start.Add(cacheLife - time.Millisecond)
	d.wantAccepted(d.token, 1)
	d.currentTime = start.Add(cacheLife)
	d.wantAccepted(d.token, 2)
	d.wantAccepted(d.token, 2)
}

func TestBadChecksumCausesNoRead(t *testing.T) {
	d := newAuthFixture(t)
	for i := range d.token {
		for _, other := range []byte{'A', 'a', '2', '_', d.token[i] ^ 1} {
			if changed := d.token[:i] + string(other) + d.token[i+1:]; changed != d.token {
				d.wantRefused("Bearer "+changed, fault.InvalidCredentials, 0)
			}
		}
	}
	d.wantRefused("Bearer "+d.token[:len(d.token)-1], fault.InvalidCredentials, 0)
	d.wantRefused("Bearer "+d.token+"0", fault.InvalidCredentials, 0)
	d.wantAccepted(d.token, 1)
}

func TestAClientSecretIsNoAccessToken(t *testing.T) {
	d := newAuthFixture(t)
	secret, err := merchant.ClientSecret.Issue(d.profile, merchanttest.SeededReader(3), start)
	if err != nil {
		t.Fatal(err)
	}
	d.wantRefused("Bearer "+secret, fault.InvalidCredentials, 0)
	d.wantRefused("Bearer gwl_"+strings.TrimPrefix(secret, "gwc_"), fault.InvalidCredentials, 0)
}

func TestAnUnknownMerchantIsCachedToo(t *testing.T) {
	d := newAuthFixture(t)
	token := issueToken(t, merchanttest.NewProfile(t, "Ghost", 50), 51)
	d.wantRefused("Bearer "+token, fault.InvalidCredentials, 1)
	d.wantRefused("Bearer "+token, fault.InvalidCredentials, 1)
	d.currentTime = start.Add(cacheLife)
	d.wantRefused("Bearer "+token, fault.InvalidCredentials, 2)
}

func TestTheCacheIsBoundedAndKeepsKnownMerchants(t *testing.T) {
	d := newAuthFixture(t)
	d.wantAccepted(d.token, 1)
	const unknownIDs = 3000
	tokens := make([]string, unknownIDs)
	for i := range unknownIDs {
		tokens[i] = issueToken(t, merchanttest.NewProfile(t, fmt.Sprintf("Ghost%d", i), int64(1000+i)), int64(i))
		d.currentTime = d.currentTime.Add(time.Microsecond)
		d.wantRefused("Bearer "+tokens[i], fault.InvalidCredentials, 2+i)
	}
	d.wantAccepted(d.token, 1+unknownIDs) // guessed ids did not evict it
	last := tokens[unknownIDs-1]
	d.wantRefused("Bearer "+last, fault.InvalidCredentials, 1+unknownIDs)      // the newest unknown id is cached
	d.wantRefused("Bearer "+tokens[0], fault.InvalidCredentials, 2+unknownIDs) // the oldest is evicted
}

func TestRevocationTakesEffectWithinCacheTTL(t *testing.T) {
	cases := []struct {
		name   string
		change func(p *merchant.Profile)
		long   bool // the long-lived token stays valid
		short  bool // the short-lived token stays valid
	}{
		{"the token is revoked", func(p *merchant.Profile) {
			_ = merchant.LongLivedToken.Revoke(p, 1, start, start)
		}, false, true},
		{"short tokens are revoked", func(p *merchant.Profile) { p.TokenGeneration++ }, true, false},
		{"the merchant is suspended", func(p *merchant.Profile) { merchant.Suspend(p, start) }, false, false},
		{"an unknown status", func(p *merchant.Profile) { p.Status = "?" }, false, false},
		{"an unrelated change", func(p *merchant.Profile) { p.Countries = nil }, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := newAuthFixture(t)
			short := d.sign(d.profile, start.Add(time.Hour))
			d.wantAccepted(d.token, 1)
			d.wantAccepted(short, 1)
			d.update(c.change)
			d.currentTime = start.Add(cacheLife)
			for token, survives := range map[string]bool{d.token: c.long, short: c.short} {
				if survives {
					d.wantAccepted(token, 2)
				} else {
					d.wantRefused("Bearer "+token, fault.InvalidCredentials, 2)
				}
			}
		})
	}
}

// TestNewTokenWorksAtOnce: an unknown token causes one read of a cached profile in five seconds.
func TestNewTokenWorksAtOnce(t *testing.T) {
	d := newAuthFixture(t)
	d.wantAccepted(d.token, 1)
	unknown, second := issueToken(t, d.profile.Clone(), 4), ""
	d.update(func(p *merchant.Profile) { second = issueToken(t, p, 3) })
	d.wantAccepted(second, 2)
	d.wantAccepted(d.token, 2)
	d.currentTime = start.Add(4999 * time.Millisecond)
	d.wantRefused("Bearer "+unknown, fault.InvalidCredentials, 2)
	d.currentTime = start.Add(5 * time.Second)
	d.wantRefused("Bearer "+unknown, fault.InvalidCredentials, 3)
	d.wantRefused("Bearer "+unknown, fault.InvalidCredentials, 3)
	d.wantAccepted(second, 3)
	d.currentTime = start.Add(10 * time.Second)
	d.store.Err = errors.New("no response")
	d.wantRefused("Bearer "+unknown, fault.InvalidCredentials, 4) // not 500
	d.wantAccepted(second, 4)
	d.store.Err = nil
	d.wantRefused("Bearer "+unknown, fault.InvalidCredentials, 4) // the failed read counts
	d.wantAccepted(second, 4)
}

// TestFirstReadIsFresh: the request that reads the profile does not read it again.
func TestFirstReadIsFresh(t *testing.T) {
	d := newAuthFixture(t)
	unknown := issueToken(t, d.profile.Clone(), 4)
	d.wantRefused("Bearer "+unknown, fault.InvalidCredentials, 1)
}

// TestReasonOfSuspension: only a token that matches learns that its merchant is suspended.
func TestReasonOfSuspension(t *testing.T) {
	d := newAuthFixture(t)
	unknown := issueToken(t, d.profile.Clone(), 4)
	revoked := d.sign(d.profile, start.Add(time.Hour))
	d.update(func(p *merchant.Profile) { merchant.Suspend(p, start) })
	current := d.sign(d.profile, start.Add(time.Hour))
	for token, want := range map[string]string{
		d.token: merchant.ReasonSuspended, current: merchant.ReasonSuspended, unknown: "", revoked: "",
	} {
		_, err := d.authenticator.Authenticate(t.Context(), "Bearer "+token)
		if f := fault.FromError(err); f == nil || f.Kind != fault.InvalidCredentials || f.Reason != want {
			t.Errorf("fault %+v, want InvalidCredentials with the reason %q", f, want)
		}
	}
}

func TestTokenExpires(t *testing.T) {
	d := newAuthFixture(t)
	d.update(func(p *merchant.Profile) {
		if err := merchant.LongLivedToken.Revoke(p, 1, start.Add(time.Minute), start); err != nil {
			t.Fatal(err)
		}
	})
	d.currentTime = start.Add(time.Minute - time.Millisecond)
	d.wantAccepted(d.token, 1)
	d.currentTime = start.Add(time.Minute)
	d.wantRefused("Bearer "+d.token, fault.InvalidCredentials, 1)
}

func TestShortLivedTokens(t *testing.T) {
	d := newAuthFixture(t)
	short := d.sign(d.profile, start.Add(time.Hour))
	d.wantAccepted(short, 1)
	d.wantAccepted(short, 1)
	d.wantAccepted(d.token, 1) // both kinds share the cache
	d.currentTime = start.Add(time.Hour - time.Millisecond)
	d.wantAccepted(short, 2)
	d.currentTime = start.Add(time.Hour)
	d.wantRefused("Bearer "+short, fault.InvalidCredentials, 2)
	if !strings.HasPrefix(short, "gws_") || len(short) > 130 {
		t.Errorf("the token %.4s... has %d characters, want gws_ and at most 130", short, len(short))
	}
}

func TestForgedShortLivedTokenCausesNoRead(t *testing.T) {
	d := newAuthFixture(t)
	short := d.sign(d.profile, start.Add(time.Hour))
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(short, "gws_"))
	if err != nil {
		t.Fatal(err)
	}
	for bit := range len(raw) * 8 {
		raw[bit/8] ^= 1 << (bit % 8)
		d.wantRefused("Bearer gws_"+base64.RawURLEncoding.EncodeToString(raw), fault.InvalidCredentials, 0)
		raw[bit/8] ^= 1 << (bit % 8)
	}
	for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		if other := short[:len(short)-1] + string(last); other != short {
			d.wantRefused("Bearer "+other, fault.InvalidCredentials, 0)
		}
	}
	if d.keySource.fetches > 2 {
		t.Errorf("forged key numbers caused %d fetches of the secret", d.keySource.fetches)
	}
	d.wantAccepted(short, 1)
}

func TestATokenOfANewerKeyRefreshesTheRing(t *testing.T) {
	d := newAuthFixture(t)
	d.wantAccepted(d.sign(d.profile, start.Add(time.Hour)), 1)
	d.addKey()
	d.wantAccepted(d.sign(d.profile, start.Add(time.Hour)), 1)
	if d.keySource.fetches != 2 {
		t.Errorf("fetches = %d, want 2", d.keySource.fetches)
	}
}

func TestATokenOfANewerGenerationReadsTheProfileAgain(t *testing.T) {
	d := newAuthFixture(t)
	d.wantAccepted(d.token, 1)
	d.update(func(p *merchant.Profile) { merchant.RevokeShortLivedTokens(p, start) })
	d.wantAccepted(d.sign(d.profile, start.Add(time.Hour)), 2)
	d.wantAccepted(d.sign(d.profile, start.Add(time.Hour)), 2)
}

func TestStoreOrKeySecretUnavailable(t *testing.T) {
	t.Run("the store", func(t *testing.T) {
		d := newAuthFixture(t)
		d.store.Err = errors.New("no response")
		d.wantRefused("Bearer "+d.token, fault.Internal, 1)
		d.store.Err = nil
		d.wantAccepted(d.token, 2) // a failure is not cached
	})
	t.Run("the secret", func(t *testing.T) {
		d := newAuthFixture(t)
		d.keySource.fail = errors.New("no response")
		d.wantRefused("Bearer "+d.sign(d.profile, start.Add(time.Hour)), fault.Internal, 0)
		d.wantAccepted(d.token, 1) // long tokens need no key
	})
}

func TestAnotherMerchantsToken(t *testing.T) {
	d := newAuthFixture(t)
	other := merchanttest.NewProfile(t, "OtherShop", 7)
	token := issueToken(t, other, 8)
	if err := d.store.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	p, err := d.authenticator.Authenticate(t.Context(), "Bearer "+token)
	if err != nil || p.Name != "OtherShop" {
		t.Errorf("Authenticate = %v, %v", p, err)
	}
}

func FuzzAuthenticate(f *testing.F) {
	d := newAuthFixture(f)
	short := d.sign(d.profile, start.Add(time.Hour))
	for _, seed := range []string{
		"", "Bearer", "Bearer " + d.token, "bearer  " + short, "Basic x", "Bearer gwl_", "Bearer gws_AAAA",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		p, err := d.authenticator.Authenticate(t.Context(), header)
		switch {
		case err == nil && !strings.Contains(header, d.token) && !strings.Contains(header, short):
			t.Errorf("%q is accepted", header)
		case err == nil && p == nil, err != nil && p != nil:
			t.Errorf("%q returns a profile and an error, or neither", header)
		}
	})
}
