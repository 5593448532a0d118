package merchant_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/merchanttest"
)

func TestAuthorizationHeader(t *testing.T) {
	d := newDesk(t)
	cases := []struct {
		name, header string
		want         fault.Kind // 0: accepted
	}{
		{"absent", "", fault.NoCredentials},
		{"blank", "   ", fault.NoCredentials},
		{"another scheme", "Basic ZGVtbzpzZWNyZXQ=", fault.NoCredentials},
		{"the scheme alone", "Bearer", fault.NoCredentials},
		{"the scheme and a space", "Bearer ", fault.NoCredentials},
		{"the token alone", d.token, fault.NoCredentials},
		{"a scheme that only begins so", "Bearers " + d.token, fault.NoCredentials},
		{"as written by most", "Bearer " + d.token, 0},
		{"lower case", "bearer " + d.token, 0},
		{"upper case", "BEARER " + d.token, 0},
		{"more spaces", "  Bearer   " + d.token + " ", 0},
		{"two tokens", "Bearer " + d.token + " " + d.token, fault.BadCredentials},
		{"something behind it", "Bearer " + d.token + ", Basic x", fault.BadCredentials},
		{"in upper case", "Bearer " + strings.ToUpper(d.token), fault.BadCredentials},
		{"any word", "Bearer letmein", fault.BadCredentials},
		{"very long", "Bearer gwl_" + strings.Repeat("a", 100_000), fault.BadCredentials},
		{"very long and signed", "Bearer gws_" + strings.Repeat("a", 100_000), fault.BadCredentials},
		{"the prefixes alone", "Bearer gws_", fault.BadCredentials},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := d.auth.Authenticate(context.Background(), c.header)
			switch {
			case c.want == 0 && (err != nil || p.Name != "DemoShop"):
				t.Errorf("refused: %v", err)
			case c.want != 0 && fault.As(err).Kind != c.want:
				t.Errorf("error = %v, want kind %d", err, c.want)
			case err != nil && strings.Contains(err.Error(), d.token):
				t.Error("the error shows the token")
			}
		})
	}
	d.wantReads(1)
}

func TestALongTokenIsReadOnceWhileCached(t *testing.T) {
	d := newDesk(t)
	d.accepted(d.token, 1)
	for range 5 {
		d.accepted(d.token, 1)
	}
	d.at = start.Add(cacheLife - time.Millisecond)
	d.accepted(d.token, 1)
	d.at = start.Add(cacheLife)
	d.accepted(d.token, 2)
	d.accepted(d.token, 2)
}

func TestABadChecksumCostsNoRead(t *testing.T) {
	d := newDesk(t)
	for i := range d.token {
		for _, other := range []byte{'A', 'a', '2', '_', d.token[i] ^ 1} {
			if changed := d.token[:i] + string(other) + d.token[i+1:]; changed != d.token {
				d.refused("Bearer "+changed, fault.BadCredentials, 0)
			}
		}
	}
	d.refused("Bearer "+d.token[:len(d.token)-1], fault.BadCredentials, 0)
	d.refused("Bearer "+d.token+"0", fault.BadCredentials, 0)
	d.accepted(d.token, 1)
}

func TestAClientSecretIsNoAccessToken(t *testing.T) {
	d := newDesk(t)
	secret, err := merchant.IssueClientSecret(d.profile, merchanttest.Random(3), start)
	if err != nil {
		t.Fatal(err)
	}
	d.refused("Bearer "+secret, fault.BadCredentials, 0)
	d.refused("Bearer gwl_"+strings.TrimPrefix(secret, "gwc_"), fault.BadCredentials, 0)
}

func TestAnUnknownMerchantIsCachedToo(t *testing.T) {
	d := newDesk(t)
	ghost := merchanttest.NewProfile(t, "Ghost", 50)
	token, err := merchant.IssueToken(ghost, merchanttest.Random(51), start)
	if err != nil {
		t.Fatal(err)
	}
	d.refused("Bearer "+token, fault.BadCredentials, 1)
	d.refused("Bearer "+token, fault.BadCredentials, 1)
	d.at = start.Add(cacheLife)
	d.refused("Bearer "+token, fault.BadCredentials, 2)
}

func TestTheCacheIsBoundedAndKeepsKnownMerchants(t *testing.T) {
	d := newDesk(t)
	d.accepted(d.token, 1)
	const strangers = 3000
	tokens := make([]string, strangers)
	for i := range strangers {
		ghost := merchanttest.NewProfile(t, fmt.Sprintf("Ghost%d", i), int64(1000+i))
		token, err := merchant.IssueToken(ghost, merchanttest.Random(int64(i)), start)
		if err != nil {
			t.Fatal(err)
		}
		tokens[i] = token
		d.at = d.at.Add(time.Microsecond)
		d.refused("Bearer "+token, fault.BadCredentials, 2+i)
	}
	d.accepted(d.token, 1+strangers) // guessing pushed nobody out
	last := tokens[strangers-1]
	d.refused("Bearer "+last, fault.BadCredentials, 1+strangers)      // the newest stranger is remembered
	d.refused("Bearer "+tokens[0], fault.BadCredentials, 2+strangers) // the oldest is forgotten
}

func TestRevocationHoldsWithinTheCacheLife(t *testing.T) {
	cases := []struct {
		name   string
		change func(p *merchant.Profile)
		long   bool // the long token survives it
		short  bool // the short token survives it
	}{
		{"the token is revoked", func(p *merchant.Profile) { _ = merchant.RevokeToken(p, 1, start, start) }, false, true},
		{"short tokens are revoked", func(p *merchant.Profile) { merchant.RevokeShortTokens(p, start) }, true, false},
		{"the merchant is suspended", func(p *merchant.Profile) { merchant.Suspend(p, start) }, false, false},
		{"an unknown status", func(p *merchant.Profile) { p.Status = "?" }, false, false},
		{"nothing of the kind", func(p *merchant.Profile) { p.Countries = nil }, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			short := d.sign(d.profile, start.Add(time.Hour))
			d.accepted(d.token, 1)
			d.accepted(short, 1)
			d.update(c.change)
			d.at = start.Add(cacheLife)
			for token, survives := range map[string]bool{d.token: c.long, short: c.short} {
				if survives {
					d.accepted(token, 2)
				} else {
					d.refused("Bearer "+token, fault.BadCredentials, 2)
				}
			}
		})
	}
}

func TestATokenThatExpires(t *testing.T) {
	d := newDesk(t)
	d.update(func(p *merchant.Profile) {
		if err := merchant.RevokeToken(p, 1, start.Add(time.Minute), start); err != nil {
			t.Fatal(err)
		}
	})
	d.at = start.Add(time.Minute - time.Millisecond)
	d.accepted(d.token, 1)
	d.at = start.Add(time.Minute)
	d.refused("Bearer "+d.token, fault.BadCredentials, 1)
}

func TestShortTokens(t *testing.T) {
	d := newDesk(t)
	short := d.sign(d.profile, start.Add(time.Hour))
	d.accepted(short, 1)
	d.accepted(short, 1)
	d.accepted(d.token, 1) // both kinds share the cache
	d.at = start.Add(time.Hour - time.Millisecond)
	d.accepted(short, 2)
	d.at = start.Add(time.Hour)
	d.refused("Bearer "+short, fault.BadCredentials, 2)
	if !strings.HasPrefix(short, "gws_") || len(short) > 120 {
		t.Errorf("the token has %d characters", len(short))
	}
}

func TestAForgedShortTokenCostsNoRead(t *testing.T) {
	d := newDesk(t)
	short := d.sign(d.profile, start.Add(time.Hour))
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(short, "gws_"))
	if err != nil {
		t.Fatal(err)
	}
	for bit := range len(raw) * 8 {
		raw[bit/8] ^= 1 << (bit % 8)
		d.refused("Bearer gws_"+base64.RawURLEncoding.EncodeToString(raw), fault.BadCredentials, 0)
		raw[bit/8] ^= 1 << (bit % 8)
	}
	for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		if other := short[:len(short)-1] + string(last); other != short {
			d.refused("Bearer "+other, fault.BadCredentials, 0)
		}
	}
	if d.vault.fetches > 2 {
		t.Errorf("forged key numbers caused %d fetches of the secret", d.vault.fetches)
	}
	d.accepted(short, 1)
}

func TestATokenOfANewerKeyRefreshesTheRing(t *testing.T) {
	d := newDesk(t)
	d.accepted(d.sign(d.profile, start.Add(time.Hour)), 1)
	d.addKey()
	d.accepted(d.sign(d.profile, start.Add(time.Hour)), 1)
	if d.vault.fetches != 2 {
		t.Errorf("fetches = %d, want 2", d.vault.fetches)
	}
}

func TestATokenOfANewerGenerationReadsTheProfileAgain(t *testing.T) {
	d := newDesk(t)
	d.accepted(d.token, 1)
	d.update(func(p *merchant.Profile) { merchant.RevokeShortTokens(p, start) })
	d.accepted(d.sign(d.profile, start.Add(time.Hour)), 2)
	d.accepted(d.sign(d.profile, start.Add(time.Hour)), 2)
}

func TestWhereNothingAnswers(t *testing.T) {
	t.Run("the store", func(t *testing.T) {
		d := newDesk(t)
		d.store.Fail(errors.New("no answer"))
		d.refused("Bearer "+d.token, fault.Internal, 1)
		d.store.Fail(nil)
		d.accepted(d.token, 2) // a failure is not cached
	})
	t.Run("the secret", func(t *testing.T) {
		d := newDesk(t)
		d.vault.fail = errors.New("no answer")
		d.refused("Bearer "+d.sign(d.profile, start.Add(time.Hour)), fault.Internal, 0)
		d.accepted(d.token, 1) // long tokens need no key
	})
}

func TestAnotherMerchantsToken(t *testing.T) {
	d := newDesk(t)
	other := merchanttest.NewProfile(t, "OtherShop", 7)
	token, err := merchant.IssueToken(other, merchanttest.Random(8), start)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.store.Create(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	p, err := d.auth.Authenticate(context.Background(), "Bearer "+token)
	if err != nil || p.Name != "OtherShop" {
		t.Errorf("Authenticate = %v, %v", p, err)
	}
}

func FuzzAuthenticate(f *testing.F) {
	d := newDesk(f)
	short := d.sign(d.profile, start.Add(time.Hour))
	for _, seed := range []string{"", "Bearer", "Bearer " + d.token, "bearer  " + short, "Basic x", "Bearer gwl_", "Bearer gws_AAAA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		p, err := d.auth.Authenticate(context.Background(), header)
		switch {
		case err == nil && !strings.Contains(header, d.token) && !strings.Contains(header, short):
			t.Errorf("%q is accepted", header)
		case err == nil && p == nil, err != nil && p != nil:
			t.Errorf("%q gives both or neither", header)
		}
	})
}
