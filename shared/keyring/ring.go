// Package keyring manages numbered signing keys. It defines the stored format of all signing secrets, selects the key
// that signs, and finds the key that verifies (decision "key-rings").
//
// It signs nothing itself. Its invariants: a number always names the same key, also after the key was revoked. A key
// signs only after every running function had the time to read it, except the first one of a ring. A key is removed
// only after its successor signs.
package keyring

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"mobilegateway/shared/logsafe"
)

// Limits of a ring.
const (
	// KeySize is the length of a key in bytes.
	KeySize = 32
	// MaxKeyNumber is the largest key number: signed texts carry it in two bytes.
	MaxKeyNumber = 1<<16 - 1
)

// Key is one signing key. The JSON names are those of the secret.
type Key struct {
	// Number identifies the key in signed texts, from 1 to MaxKeyNumber.
	Number int `json:"number"`
	// Value is the key, KeySize bytes; none if the key is revoked. It is never logged.
	Value []byte `json:"key,omitempty"`
	// AddedAt is when the key was stored.
	AddedAt time.Time `json:"added"`
	// RevokedAt is when the key was revoked; zero for a live key. A revoked key stays as a tombstone, so that its
	// number is never issued again.
	RevokedAt time.Time `json:"revoked,omitzero"`
}

func (k Key) isLive() bool { return k.RevokedAt.IsZero() }

// Ring is an immutable set of keys, at least one of them live.
type Ring struct {
	keys []Key // by ascending number, with tombstones
}

// storedRing is the content of the secret.
type storedRing struct {
	Keys []Key `json:"keys"`
}

// Parse reads a ring from its secret, {"keys":[{"number":1,"key":"<base64>","added":"<RFC 3339>"}]}. A tombstone has
// "revoked", a time, instead of "key". It ignores unknown fields. Its errors name a key's number at most, never its
// value.
func Parse(text []byte) (*Ring, error) {
	var stored storedRing
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, logsafe.New("the key ring is not valid JSON of its form") // the cause could quote the secret
	}
	ring := &Ring{}
	for _, key := range stored.Keys {
		if err := key.validate(); err != nil {
			return nil, err
		}
		at, duplicate := slices.BinarySearchFunc(ring.keys, key.Number, func(k Key, n int) int { return k.Number - n })
		if duplicate {
			return nil, logsafe.Errorf("key number %d is twice in the ring", key.Number)
		}
		key.AddedAt = key.AddedAt.UTC()
		ring.keys = slices.Insert(ring.keys, at, key)
	}
	if !slices.ContainsFunc(ring.keys, Key.isLive) {
		return nil, logsafe.New("the key ring has no keys: add one")
	}
	return ring, nil
}

func (k Key) validate() error {
	switch {
	case k.Number < 1 || k.Number > MaxKeyNumber:
		return logsafe.Errorf("key number %d is not between 1 and %d", k.Number, MaxKeyNumber)
	case !k.isLive() && len(k.Value) > 0:
		return logsafe.Errorf("key %d is revoked, and the ring has its value still", k.Number)
	case k.isLive() && len(k.Value) != KeySize:
		return logsafe.Errorf("key %d is not %d bytes long", k.Number, KeySize)
	case k.AddedAt.IsZero():
		return logsafe.Errorf("key %d has no time of addition", k.Number)
	}
	return nil
}

// Keys returns all keys by ascending number, with the tombstones.
func (r *Ring) Keys() []Key { return slices.Clone(r.keys) }

// FindKey returns the live key with a number.
func (r *Ring) FindKey(number int) (Key, bool) {
	i := slices.IndexFunc(r.keys, func(key Key) bool { return key.Number == number })
	if i < 0 || !r.keys[i].isLive() {
		return Key{}, false
	}
	return r.keys[i], true
}

// lastNumber returns the highest number that was issued.
func (r *Ring) lastNumber() int { return r.keys[len(r.keys)-1].Number }

// SigningKey returns the key to sign with: the highest number among the live keys that are at least propagationTime
// old, so that every function has read it. If no key is that old, it is the lowest live number: a new ring, or one
// whose older keys were revoked, has no other. RefreshingRing signs with that one only after SigningDelay.
func (r *Ring) SigningKey(now time.Time, propagationTime time.Duration) Key {
	lowest := Key{}
	for _, key := range slices.Backward(r.keys) {
		if !key.isLive() {
			continue
		}
		if !key.AddedAt.Add(propagationTime).After(now) {
			return key
		}
		lowest = key
	}
	return lowest
}

// SignsFrom returns from when a live key may sign, if no older one is revoked meanwhile.
func (r *Ring) SignsFrom(key Key, propagationTime time.Duration) time.Time {
	hasOlder := slices.ContainsFunc(r.keys, func(k Key) bool { return k.isLive() && k.Number < key.Number })
	switch {
	case r.isFirst(key):
		return key.AddedAt
	case hasOlder:
		return key.AddedAt.Add(propagationTime)
	default: // the older keys were revoked
		return key.AddedAt.Add(min(SigningDelay, propagationTime))
	}
}

// isFirst reports whether nothing was signed before a key.
func (r *Ring) isFirst(key Key) bool { return key.Number == r.keys[0].Number }

// SigningEndedAt returns when the last function stopped signing with a live key: propagationTime after the next live
// key was added. It returns false for the newest live key, and for one that is unknown or revoked.
func (r *Ring) SigningEndedAt(number int, propagationTime time.Duration) (at time.Time, found bool) {
	if _, exists := r.FindKey(number); !exists {
		return time.Time{}, false
	}
	for _, key := range r.keys {
		signsFrom := key.AddedAt.Add(propagationTime)
		if key.Number > number && key.isLive() && (!found || signsFrom.Before(at)) {
			at, found = signsFrom, true
		}
	}
	return at, found
}

// windowMargin is how much earlier or later a key may have signed than its times say. A request signs a little before
// it stores, a ring is renewed after a while, and clocks differ.
const windowMargin = time.Minute

// MayHaveSigned reports whether a live key could sign, in any function, at any time of a range. The first key of a ring
// signed from its start on, also if its time of addition is later.
func (r *Ring) MayHaveSigned(number int, from, to time.Time, propagationTime time.Duration) bool {
	key, found := r.FindKey(number)
	if !found {
		return false
	}
	ended, ends := r.SigningEndedAt(number, propagationTime)
	began := r.isFirst(key) || !key.AddedAt.After(to.Add(windowMargin))
	return began && (!ends || !ended.Add(windowMargin).Before(from))
}

// MayHaveLost reports whether a revoked key may have signed at any time of a range.
func (r *Ring) MayHaveLost(from, to time.Time, propagationTime time.Duration) bool {
	for i, key := range r.keys {
		if key.isLive() || i > 0 && key.AddedAt.After(to.Add(windowMargin)) {
			continue
		}
		ended := key.RevokedAt
		for _, next := range r.keys[i+1:] {
			if signs := next.AddedAt.Add(propagationTime); next.isLive() && signs.Before(ended) {
				ended = signs
			}
		}
		if !ended.Add(windowMargin).Before(from) {
			return true
		}
	}
	return false
}

// RemoveKey removes a key from a stored ring and returns the ring to store. The caller must know that no valid
// signature of the key is left. It refuses an unknown key, and the newest one, because the next key would get the same
// number.
func RemoveKey(text []byte, number int) ([]byte, error) {
	ring, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if _, found := ring.FindKey(number); !found {
		return nil, logsafe.Errorf("the key ring has no key %d", number)
	}
	if _, ends := ring.SigningEndedAt(number, 0); !ends {
		return nil, logsafe.Errorf("key %d is the newest: add another key first", number)
	}
	kept := slices.DeleteFunc(ring.keys, func(key Key) bool { return key.Number == number })
	return json.Marshal(storedRing{Keys: kept})
}

// RevokeKey leaves a tombstone in place of a key in a stored ring and returns the ring to store. Nothing is signed with
// the key any more, and nothing that it signed is valid. It refuses the last live key: add another one in the same
// write. It refuses a number that was never issued.
func RevokeKey(text []byte, number int, now time.Time) ([]byte, error) {
	ring, err := Parse(text)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(ring.keys, func(key Key) bool { return key.Number == number })
	switch {
	case i < 0:
		return nil, logsafe.Errorf("the key ring has no key %d", number)
	case !ring.keys[i].isLive():
		return nil, logsafe.Errorf("key %d is revoked already, since %s",
			number, ring.keys[i].RevokedAt.UTC().Format(time.RFC3339))
	}
	ring.keys[i].Value, ring.keys[i].RevokedAt = nil, storedTime(now)
	if !slices.ContainsFunc(ring.keys, Key.isLive) {
		return nil, logsafe.Errorf("key %d is the only one: add another key first", number)
	}
	return json.Marshal(storedRing{Keys: ring.keys})
}

// HasOtherRipeKey reports whether a key other than number may sign now: it is live, and every function has read it.
func (r *Ring) HasOtherRipeKey(number int, now time.Time, propagationTime time.Duration) bool {
	return slices.ContainsFunc(r.keys, func(key Key) bool {
		return key.Number != number && key.isLive() && !key.AddedAt.Add(propagationTime).After(now)
	})
}

// AddKey adds a new random key with the next number to a stored ring and returns the ring to store. An empty text
// begins a ring. It removes no key: old signatures must stay verifiable.
func AddKey(text []byte, random io.Reader, now time.Time) ([]byte, error) {
	value, err := newValue(random)
	if err != nil {
		return nil, err
	}
	keys, last, err := storedKeys(text)
	if err != nil {
		return nil, err
	}
	return appendKey(keys, Key{Number: last + 1, Value: value, AddedAt: now})
}

// newValue reads the bytes of a new key.
func newValue(random io.Reader) ([]byte, error) {
	value := make([]byte, KeySize)
	if _, err := io.ReadFull(random, value); err != nil {
		return nil, logsafe.Errorf("read random bytes: %w", err)
	}
	return value, nil
}

// storedKeys returns the keys of a stored ring and the highest number; none and 0 for an empty text.
func storedKeys(text []byte) (keys []Key, last int, err error) {
	if len(text) == 0 {
		return nil, 0, nil
	}
	ring, err := Parse(text)
	if err != nil {
		return nil, 0, err
	}
	return ring.keys, ring.lastNumber(), nil
}

// appendKey returns the stored form of keys with one more.
func appendKey(keys []Key, added Key) ([]byte, error) {
	if added.Number > MaxKeyNumber {
		return nil, logsafe.New("the key ring is full: its numbers are used up")
	}
	added.AddedAt = storedTime(added.AddedAt)
	return json.Marshal(storedRing{Keys: append(keys, added)})
}

// storedTime is a time in the form of the secret.
func storedTime(at time.Time) time.Time { return at.UTC().Truncate(time.Second) }
