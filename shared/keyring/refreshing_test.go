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

// decision "key-rings": a number that may belong to a new key causes an error, not a refusal.
func TestUnknownNumberInAStaleRing(t *testing.T) {
	newer := newStoredRing(t, start, start.Add(time.Minute))
	becomeUnreadable := func(v *stubSource) { v.fail = errors.New("gone") }
	for _, c := range []struct {
		name   string
		number int
		age    time.Duration // of the last valid ring
		spoil  func(*stubSource)
		want   error
	}{
		{"the next number may be new", 3, 2 * life, func(*stubSource) {}, ErrStaleRing},
		{"also the one after it", 4, 2 * life, func(*stubSource) {}, ErrStaleRing},
		{"a far number is forged", 5, 2 * life, func(*stubSource) {}, nil},
		{"renewed in time", 5, maxAge - time.Second, becomeUnreadable, nil},
		{"not renewed since", 5, maxAge, becomeUnreadable, ErrStaleRing},
		{"an invalid edit since", 5, life, func(v *stubSource) { v.text = []byte("{oops") }, ErrStaleRing},
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
