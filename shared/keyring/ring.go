// Package keyring manages numbered signing keys. It defines the stored format of all signing secrets, selects the key
// that signs, and finds the key that verifies (decision "key-rings").
//
// It signs nothing itself. Its invariants: a number always names the same key. A key signs only after every running
// function had the time to read it. A key leaves the ring only after its successor signs.
package keyring

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
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
	// Value is the key, KeySize bytes. It is never logged.
	Value []byte `json:"key"`
	// AddedAt is when the key entered the ring.
	AddedAt time.Time `json:"added"`
}

// Ring is an immutable set of keys, at least one.
type Ring struct {
	keys []Key // by ascending number
}

// storedRing is the content of the secret.
type storedRing struct {
	Keys []Key `json:"keys"`
}

// Parse reads a ring from its secret, {"keys":[{"number":1,"key":"<base64>","added":"<RFC 3339>"}]}. It ignores unknown
// fields. Its errors name a key's number at most, never its value.
func Parse(text []byte) (*Ring, error) {
	var stored storedRing
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, errors.New("the key ring is not valid JSON of its form") // the cause could quote the secret
	}
	if len(stored.Keys) == 0 {
		return nil, errors.New("the key ring has no keys: add one")
	}
	ring := &Ring{}
	for _, key := range stored.Keys {
		if err := key.validate(); err != nil {
			return nil, err
		}
		at, duplicate := slices.BinarySearchFunc(ring.keys, key.Number, func(k Key, n int) int { return k.Number - n })
		if duplicate {
			return nil, fmt.Errorf("key number %d is twice in the ring", key.Number)
		}
		key.AddedAt = key.AddedAt.UTC()
		ring.keys = slices.Insert(ring.keys, at, key)
	}
	return ring, nil
}

func (k Key) validate() error {
	switch {
	case k.Number < 1 || k.Number > MaxKeyNumber:
		return fmt.Errorf("key number %d is not between 1 and %d", k.Number, MaxKeyNumber)
	case len(k.Value) != KeySize:
		return fmt.Errorf("key %d is not %d bytes long", k.Number, KeySize)
	case k.AddedAt.IsZero():
		return fmt.Errorf("key %d has no time of addition", k.Number)
	}
	return nil
}

// FindKey returns the key with a number.
func (r *Ring) FindKey(number int) (Key, bool) {
	i := slices.IndexFunc(r.keys, func(key Key) bool { return key.Number == number })
	if i < 0 {
		return Key{}, false
	}
	return r.keys[i], true
}

// SigningKey returns the key to sign with: the highest number among the keys that are at least propagationTime old, so
// that every function has read it. If no key is that old, the lowest number signs: a new ring has no other.
func (r *Ring) SigningKey(now time.Time, propagationTime time.Duration) Key {
	for i := len(r.keys) - 1; i > 0; i-- {
		if !r.keys[i].AddedAt.Add(propagationTime).After(now) {
			return r.keys[i]
		}
	}
	return r.keys[0]
}

// SigningEndedAt returns when the last function stopped signing with a key: propagationTime after the next key was
// added. It returns false for the newest key and for an unknown number.
func (r *Ring) SigningEndedAt(number int, propagationTime time.Duration) (at time.Time, found bool) {
	if _, exists := r.FindKey(number); !exists {
		return time.Time{}, false
	}
	for _, key := range r.keys {
		if signsFrom := key.AddedAt.Add(propagationTime); key.Number > number && (!found || signsFrom.Before(at)) {
			at, found = signsFrom, true
		}
	}
	return at, found
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
		return nil, fmt.Errorf("the key ring has no key %d", number)
	}
	if number == ring.keys[len(ring.keys)-1].Number {
		return nil, fmt.Errorf("key %d is the newest: add another key first", number)
	}
	kept := slices.DeleteFunc(ring.keys, func(key Key) bool { return key.Number == number })
	return json.Marshal(storedRing{Keys: kept})
}

// AddKey adds a new random key with the next number to a stored ring and returns the ring to store. An empty text
// begins a ring. It removes no key: old signatures must stay verifiable.
func AddKey(text []byte, random io.Reader, now time.Time) ([]byte, error) {
	var keys []Key
	next := 1
	if len(text) > 0 {
		ring, err := Parse(text)
		if err != nil {
			return nil, err
		}
		keys = ring.keys
		next = keys[len(keys)-1].Number + 1
	}
	if next > MaxKeyNumber {
		return nil, errors.New("the key ring is full: its numbers are used up")
	}
	value := make([]byte, KeySize)
	if _, err := io.ReadFull(random, value); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	added := Key{Number: next, Value: value, AddedAt: now.UTC().Truncate(time.Second)}
	return json.Marshal(storedRing{Keys: append(keys, added)})
}
