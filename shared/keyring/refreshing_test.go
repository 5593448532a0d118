package keyring

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobilegateway/shared/secret"
)

// stubSource is a secret that a test changes, behind the real cache.
type stubSource struct {
	text    []byte
	fail    error
	fetches int
}

func (v *stubSource) Fetch(context.Context, string) ([]byte, error) {
	v.fetches++
	return v.text, v.fail
}

// clock is a time that a test advances.
type clock struct{ at time.Time }

func (c *clock) current() time.Time { return c.at }

func newKeys(v *stubSource, c *clock) *RefreshingRing {
	return NewRefreshingRing(secret.NewCache(v, "ring", life, 30*time.Second, c.current), life, c.current)
}

func TestFindUnknownNumber(t *testing.T) {
	ctx := t.Context()
	v, c := &stubSource{text: newStoredRing(t, start)}, &clock{at: start}
	keys := newKeys(v, c)
	if _, found, err := keys.FindKey(ctx, 1); !found || err != nil {
		t.Fatalf("key 1: %v, %v", found, err)
	}
	v.text = newStoredRing(t, start, start.Add(time.Minute))
	c.at = start.Add(time.Minute)
	if _, found, err := keys.FindKey(ctx, 2); !found || err != nil {
		t.Fatalf("a key that was just added: %v, %v", found, err)
	}
	fetched := v.fetches
	for range 10 {
		if _, found, err := keys.FindKey(ctx, 99); found || err != nil {
			t.Fatalf("key 99: %v, %v", found, err)
		}
	}
	if v.fetches != fetched {
		t.Errorf("unknown numbers caused %d more fetches within the rate limit", v.fetches-fetched)
	}
	c.at = c.at.Add(30 * time.Second)
	_, _, _ = keys.FindKey(ctx, 99)
	if v.fetches != fetched+1 {
		t.Errorf("fetches after the rate limit = %d more, want 1", v.fetches-fetched)
	}
}

func TestKnownNumberCausesNoFetch(t *testing.T) {
	v, c := &stubSource{text: newStoredRing(t, start)}, &clock{at: start}
	keys := newKeys(v, c)
	for range 5 {
		if _, found, err := keys.FindKey(t.Context(), 1); !found || err != nil {
			t.Fatalf("key 1: %v, %v", found, err)
		}
	}
	if v.fetches != 1 {
		t.Errorf("fetches = %d, want 1", v.fetches)
	}
}

func TestKeysWithoutASecret(t *testing.T) {
	gone := errors.New("gone")
	keys := newKeys(&stubSource{fail: gone}, &clock{at: start})
	if _, err := keys.SigningKey(t.Context()); !errors.Is(err, gone) {
		t.Errorf("SigningKey: %v", err)
	}
	if _, _, err := keys.FindKey(t.Context(), 1); !errors.Is(err, gone) {
		t.Errorf("FindKey: %v", err)
	}
}

func TestInvalidSecretKeepsTheLastRing(t *testing.T) {
	ctx := t.Context()
	v, c := &stubSource{text: newStoredRing(t, start)}, &clock{at: start}
	keys := newKeys(v, c)
	before, err := keys.SigningKey(ctx)
	if err != nil {
		t.Fatal(err)
	}
	v.text = []byte("{oops")
	c.at = start.Add(2 * life)
	after, err := keys.SigningKey(ctx)
	if err != nil || after.Number != before.Number {
		t.Errorf("after an invalid edit, key %d signs (%v), want %d", after.Number, err, before.Number)
	}
	broken := newKeys(&stubSource{text: []byte("{oops")}, c)
	if _, err := broken.Current(ctx); err == nil {
		t.Error("a ring that never parsed gave no error")
	}
}

func TestNewKeySignsAfterPropagationTime(t *testing.T) {
	ctx := t.Context()
	v, c := &stubSource{text: newStoredRing(t, start)}, &clock{at: start.Add(time.Hour)}
	keys := newKeys(v, c)
	v.text = newStoredRing(t, start, c.at)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {life - time.Second, 1}, {life, 2}} {
		c.at = start.Add(time.Hour + step.after)
		key, err := keys.SigningKey(ctx)
		if err != nil || key.Number != step.want {
			t.Errorf("%v after it was added key %d signs (%v), want %d", step.after, key.Number, err, step.want)
		}
	}
}

// decision "key-rings": a number above the last one is refused if the ring was renewed in time. Else it is unknown
// whether its key exists.
func TestUnknownNumber(t *testing.T) {
	newer := newStoredRing(t, start, start.Add(time.Minute))
	becomeUnreadable := func(v *stubSource) { v.fail = errors.New("gone") }
	for _, c := range []struct {
		name   string
		number int
		age    time.Duration // of the last valid ring
		spoil  func(*stubSource)
		want   error
	}{
		{"the next number", 3, 0, func(*stubSource) {}, nil},
		{"the next number, after a renewal", 3, 2 * life, func(*stubSource) {}, nil},
		{"a far number", 60_000, 2 * life, func(*stubSource) {}, nil},
		{"the next number, renewed in time", 3, SigningDelay - time.Second, becomeUnreadable, nil},
		{"the next number, not renewed since", 3, SigningDelay, becomeUnreadable, ErrStaleRing},
		{"a far number, not renewed since", 60_000, SigningDelay, becomeUnreadable, ErrStaleRing},
		{"an invalid edit since", 3, life, func(v *stubSource) { v.text = []byte("{oops") }, ErrStaleRing},
		{"a number below the last is certain", 0, life, becomeUnreadable, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, now := &stubSource{text: newer}, &clock{at: start}
			keys := newKeys(v, now)
			if _, err := keys.Current(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.spoil(v)
			now.at = start.Add(c.age)
			if _, found, err := keys.FindKey(t.Context(), c.number); found || !errors.Is(err, c.want) {
				t.Errorf("key %d: found %v, error %v, want %v", c.number, found, err, c.want)
			}
			if _, found, err := keys.FindKey(t.Context(), 2); !found || err != nil {
				t.Errorf("key 2, which is in the ring: found %v, error %v", found, err)
			}
		})
	}
}

// Unknown clients that send all numbers cause one fetch in 30 seconds together, and never an error.
func TestUnknownNumbersShareOneRefresh(t *testing.T) {
	v, now := &stubSource{text: newStoredRing(t, start)}, &clock{at: start}
	keys := newKeys(v, now)
	const minutes = 10
	for range minutes * 60 {
		for number := range 20 {
			if _, found, err := keys.FindKey(t.Context(), 2+number*3000); found || err != nil {
				t.Fatalf("a number that was never issued: found %v, error %v", found, err)
			}
		}
		now.at = now.at.Add(time.Second)
	}
	if most := 1 + minutes*2 + minutes*60/int(life.Seconds()); v.fetches > most {
		t.Errorf("%d fetches in %d minutes, want at most %d", v.fetches, minutes, most)
	}
}

// decision "key-rings": a new key signs only 60 seconds after it was stored, except the first one of a ring.
func TestNewKeyAfterARevocation(t *testing.T) {
	stored := start.Add(time.Hour)
	first := newStoredRing(t, start)
	revoke := func(text []byte, number int) []byte {
		next, err := RevokeKey(text, number, stored)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	successor := revoke(newStoredRing(t, start, stored), 1)
	for _, c := range []struct {
		name string
		text []byte
		at   time.Time
		want int // 0 for ErrNoSigningKey
	}{
		{"the first key", first, start, 1},
		{"the first key, by a clock that is behind", first, start.Add(-time.Hour), 1},
		{"the only key after a revocation", successor, stored, 0},
		{"just before it signs", successor, stored.Add(SigningDelay - time.Second), 0},
		{"60 seconds after it was stored", successor, stored.Add(SigningDelay), 2},
		{"an older key signs on", revoke(newStoredRing(t, start, start, stored), 1), stored, 2},
		{"a younger key than a cache lifetime",
			revoke(newStoredRing(t, start, stored.Add(-2*SigningDelay), stored), 1), stored, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, err := newKeys(&stubSource{text: c.text}, &clock{at: c.at}).SigningKey(t.Context())
			if key.Number != c.want || errors.Is(err, ErrNoSigningKey) != (c.want == 0) {
				t.Errorf("key %d signs, error %v, want key %d", key.Number, err, c.want)
			}
		})
	}
}

// A verifier whose ring is less than SigningDelay old has each key that signs, for any times of the last change.
func TestVerifierHasEveryKeyThatSigns(t *testing.T) {
	for age := time.Duration(0); age < SigningDelay; age += time.Second {
		for since := time.Duration(0); since < 2*SigningDelay; since += time.Second {
			stored := start.Add(time.Hour)
			now := &clock{at: stored.Add(since)}
			successor, err := RevokeKey(newStoredRing(t, start, stored), 1, stored)
			if err != nil {
				t.Fatal(err)
			}
			key, err := newKeys(&stubSource{text: successor}, now).SigningKey(t.Context())
			if err != nil {
				continue
			}
			read := &clock{at: now.at.Add(-age)}
			source := &stubSource{text: newStoredRing(t, start)}
			if !read.at.Before(stored) {
				source.text = successor
			}
			verifier := newKeys(source, read)
			if _, err := verifier.Current(t.Context()); err != nil {
				t.Fatal(err)
			}
			read.at, source.fail = now.at, errors.New("gone")
			if _, found, err := verifier.FindKey(t.Context(), key.Number); !found || err != nil {
				t.Fatalf("%v after the storing, in a ring of %v: found %v, error %v", since, age, found, err)
			}
		}
	}
}
