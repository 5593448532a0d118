package keyring

import (
	"bytes"
	"crypto/ed25519"
	"math/rand"
	"testing"
	"time"
)

// usable reports whether the key that signs at a time is verified by the public ring, and its number.
func usable(t *testing.T, p Pair, now time.Time) (number int, verified bool) {
	t.Helper()
	key := parse(t, p.Private).SigningKey(now, life)
	public, found := parse(t, p.Public).FindKey(key.Number)
	text := []byte("text")
	signature := ed25519.Sign(ed25519.NewKeyFromSeed(key.Value), text)
	return key.Number, found && ed25519.Verify(public.Value, text, signature)
}

func addPair(t *testing.T, p Pair, seed int64, now time.Time) Pair {
	t.Helper()
	next, err := p.AddKey(rand.New(rand.NewSource(seed)), now)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func revokePair(t *testing.T, p Pair, number int, now time.Time) Pair {
	t.Helper()
	next, err := p.RevokeKey(number, rand.New(rand.NewSource(int64(number))), now, life)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// A change that dies between its two writes leaves rings that are safe, and can be made again.
func TestInterruptedChangeIsMadeAgain(t *testing.T) {
	now := start.Add(time.Hour)
	first := addPair(t, Pair{}, 1, start)
	added := addPair(t, first, 2, now)
	half := Pair{Private: first.Private, Public: added.Public}
	if number, verified := usable(t, half, now.Add(life)); number != 1 || !verified {
		t.Errorf("after half an addition key %d signs, verified %v, want 1", number, verified)
	}
	again := addPair(t, half, 3, now)
	if number, verified := usable(t, again, now.Add(life)); number != 3 || !verified {
		t.Errorf("after the addition was repeated key %d signs, verified %v, want 3", number, verified)
	}
	half = Pair{Private: first.Private, Public: revokePair(t, first, 1, now).Public}
	if _, verified := usable(t, half, now); verified {
		t.Error("after half a revocation the leaked key is verified")
	}
	again = revokePair(t, half, 1, now)
	if number, verified := usable(t, again, now); number != 3 || !verified {
		t.Errorf("after the revocation was repeated key %d signs, verified %v, want 3", number, verified)
	}
	if _, err := again.RevokeKey(1, rand.New(rand.NewSource(1)), now, life); err == nil {
		t.Error("a revoked key was revoked again")
	}
	if _, err := again.RevokeKey(99, rand.New(rand.NewSource(1)), now, life); err == nil {
		t.Error("a key that was never issued was revoked")
	}
}

// The same write adds a key only where no other is old enough to sign.
func TestRevokedPair(t *testing.T) {
	second := start.Add(time.Hour)
	pair := addPair(t, addPair(t, Pair{}, 1, start), 2, second)
	for _, c := range []struct {
		name       string
		after      time.Duration
		revoked    int
		signs, all int
	}{
		{"the other one signs", life, 1, 2, 2}, {"the older one signs again", life, 2, 1, 2},
		{"the younger one is too young", 0, 1, 2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := second.Add(c.after)
			next := revokePair(t, pair, c.revoked, now)
			if number, verified := usable(t, next, now); number != c.signs || !verified {
				t.Errorf("key %d signs, verified %v, want %d", number, verified, c.signs)
			}
			if keys := parse(t, next.Private).Keys(); len(keys) != c.all {
				t.Errorf("%d keys, want %d", len(keys), c.all)
			}
		})
	}
}

// A ring from before there was a public one has keys that more than one function could read: they never sign again.
func TestKeysOfAnEarlierVersionAreReplaced(t *testing.T) {
	next := revokePair(t, Pair{Private: newStoredRing(t, start)}, 1, start.Add(time.Hour))
	if number, verified := usable(t, next, start.Add(time.Hour)); number != 2 || !verified {
		t.Errorf("key %d signs, verified %v, want 2", number, verified)
	}
	if bytes.Contains(next.Public, []byte(`"number":1,"key"`)) {
		t.Error("the old key was published")
	}
}

func TestRemovedPair(t *testing.T) {
	pair := addPair(t, addPair(t, Pair{}, 1, start), 2, start.Add(time.Hour))
	next, err := pair.RemoveKey(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = (Pair{Private: pair.Private, Public: next.Public}).RemoveKey(1); err != nil {
		t.Errorf("a removal that died between its writes cannot be made again: %v", err)
	}
	for _, text := range [][]byte{next.Private, next.Public} {
		if _, found := parse(t, text).FindKey(1); found {
			t.Error("key 1 is in a ring")
		}
	}
}
