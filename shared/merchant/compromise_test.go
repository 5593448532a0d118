package merchant_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/rand"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
)

// authenticate returns the kind of the refusal, -1 for an accepted token.
func (d *authFixture) authenticate(token string) fault.Kind {
	_, err := d.authenticator.Authenticate(d.t.Context(), "Bearer "+token)
	if err == nil {
		return -1
	}
	return fault.FromError(err).Kind
}

// decision "key-rings": a thousand changes of valid tokens, and none is accepted.
func TestMutatedTokensAreRefused(t *testing.T) {
	d := newAuthFixture(t)
	random := rand.New(rand.NewSource(1))
	valid := []string{d.token, d.sign(d.profile, start.Add(time.Hour))}
	for i := range 1000 {
		original := valid[i%len(valid)]
		mutated := mutate(random, original)
		if mutated == original {
			continue
		}
		if kind := d.authenticate(mutated); kind == -1 || kind == fault.Internal {
			t.Errorf("mutation %d of %.4s...: kind %d, want a refusal", i, original, kind)
		}
	}
	for _, token := range valid {
		if kind := d.authenticate(token); kind != -1 {
			t.Errorf("%.4s... is refused: %d", token, kind)
		}
	}
}

// mutate changes a token by one of: another character, a lost one, one more, two swapped, a changed byte of the value.
func mutate(random *rand.Rand, token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ \x00\r\n"
	at, letter := random.Intn(len(token)), string(alphabet[random.Intn(len(alphabet))])
	switch random.Intn(5) {
	case 0:
		return token[:at] + letter + token[at+1:]
	case 1:
		return token[:at] + token[at+1:]
	case 2:
		return token[:at] + letter + token[at:]
	case 3:
		other := random.Intn(len(token))
		bytes := []byte(token)
		bytes[at], bytes[other] = bytes[other], bytes[at]
		return string(bytes)
	}
	raw, err := base64.RawURLEncoding.DecodeString(token[4:])
	if err != nil {
		return token[:at]
	}
	raw[random.Intn(len(raw))] ^= byte(1 + random.Intn(255))
	return token[:4] + base64.RawURLEncoding.EncodeToString(raw)
}

// The public ring signs no token that is accepted.
func TestPublicRingSignsNoToken(t *testing.T) {
	d := newAuthFixture(t)
	public, err := keyring.Parse(d.keySource.text)
	if err != nil {
		t.Fatal(err)
	}
	forged := merchant.SignShortLivedToken(d.profile, public.SigningKey(start, 0), start.Add(time.Hour))
	d.wantRefused("Bearer "+forged, fault.InvalidCredentials, 0)
}

// An expiry that no function issues is refused, also with a valid signature.
func TestExpiryIsBounded(t *testing.T) {
	d := newAuthFixture(t)
	for lifetime, accepted := range map[time.Duration]bool{
		24 * time.Hour: true, 24*time.Hour + 5*time.Minute: true, 24*time.Hour + 5*time.Minute + time.Second: false,
		10 * 365 * 24 * time.Hour: false,
	} {
		if kind := d.authenticate(d.sign(d.profile, start.Add(lifetime))); (kind == -1) != accepted {
			t.Errorf("a token that expires in %s: %d, want accepted %v", lifetime, kind, accepted)
		}
	}
	token := d.sign(d.profile, start.Add(time.Hour))
	raw, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "gws_"))
	binary.BigEndian.PutUint64(raw[6:], 1<<63)
	d.wantRefused("Bearer gws_"+base64.RawURLEncoding.EncodeToString(raw), fault.InvalidCredentials, 1)
}

// decision "key-rings": a revoked key ends within 60 seconds, also for a token that was verified before.
func TestRevokedKeyEndsWithinAMinute(t *testing.T) {
	d := newAuthFixture(t)
	leaked := d.sign(d.profile, start.Add(time.Hour))
	d.wantAccepted(leaked, 1)
	d.revokeKey(1)
	d.currentTime = start.Add(keyring.RenewalInterval - time.Millisecond)
	d.wantAccepted(leaked, 1)
	d.currentTime = start.Add(keyring.RenewalInterval)
	if kind := d.authenticate(leaked); kind != fault.InvalidCredentials {
		t.Errorf("the token of a revoked key: %d, want InvalidCredentials", kind)
	}
	if kind := d.authenticate(d.sign(d.profile, start.Add(time.Hour))); kind != -1 {
		t.Errorf("the token of the key that was added with the revocation: %d", kind)
	}
	if kind := d.authenticate(d.token); kind != -1 {
		t.Errorf("the long-lived token: %d", kind)
	}
}

// A number that was never issued is 401, also the next one. It is 503 only while the ring cannot be renewed.
func TestUnknownKeyNumbers(t *testing.T) {
	for _, number := range []uint16{0, 2, 3, 4, 60_000} {
		d := newAuthFixture(t)
		d.wantAccepted(d.sign(d.profile, start.Add(time.Hour)), 1)
		token := d.sign(d.profile, start.Add(time.Hour))
		raw, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "gws_"))
		binary.BigEndian.PutUint16(raw, number)
		forged := "gws_" + base64.RawURLEncoding.EncodeToString(raw)
		if kind := d.authenticate(forged); kind != fault.InvalidCredentials {
			t.Errorf("key %d: kind %d, want InvalidCredentials", number, kind)
		}
		d.keySource.fail = errors.New("gone")
		d.currentTime = start.Add(10 * time.Minute)
		if kind := d.authenticate(forged); number > 1 && kind != fault.OperatorUnavailable {
			t.Errorf("key %d, when the ring cannot be renewed: kind %d, want OperatorUnavailable", number, kind)
		}
	}
}

// BenchmarkAuthenticate measures a short-lived token: known is one that the process has verified.
func BenchmarkAuthenticate(b *testing.B) {
	d := newAuthFixture(b)
	d.currentTime = start
	tokens := make([]string, 2000) // more than are remembered
	for i := range tokens {
		tokens[i] = d.sign(d.profile, start.Add(time.Hour+time.Duration(i)*time.Second))
	}
	for name, count := range map[string]int{"long-lived": 0, "known": 1, "new": len(tokens)} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				token := d.token
				if count > 0 {
					token = tokens[i%count]
				}
				if _, err := d.authenticator.Authenticate(b.Context(), "Bearer "+token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
