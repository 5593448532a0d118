// Package keyring holds numbered signing keys: the ring format that all signing secrets share, the choice of the key
// that signs, and the look-up of the key that verifies (decision "key-rings").
//
// It signs nothing itself. Its invariants: a number names the same key for ever, a key signs only when every running
// function has had the time to learn of it, and a key leaves the ring only when another has long signed in its place.
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
	// MaxKeyNumber is the largest key number: signed things carry it in two bytes.
	MaxKeyNumber = 1<<16 - 1
)

// Key is one signing key.
type Key struct {
	// Number names the key in what it signed, from 1 to MaxKeyNumber.
	Number int
	// Value is the key itself, KeySize bytes. It is never logged.
	Value []byte
	// AddedAt is when the key entered the ring.
	AddedAt time.Time
}

// Ring is an immutable set of keys, at least one.
type Ring struct {
	keys []Key // by ascending number
}

// storedRing is a ring as it is stored in a secret.
type storedRing struct {
	Keys []storedKey `json:"keys"`
}

type storedKey struct {
	Number int       `json:"number"`
	Key    []byte    `json:"key"`
	Added  time.Time `json:"added"`
}

// Parse reads a ring from its secret, {"keys":[{"number":1,"key":"<base64>","added":"<RFC 3339>"}]}. Fields that it
// does not know are ignored. Its errors name a key's number at most, never its value.
func Parse(text []byte) (*Ring, error) {
	var stored storedRing
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, errors.New("the key ring is not the JSON that it should be") // the cause could quote the secret
	}
	if len(stored.Keys) == 0 {
		return nil, errors.New("the key ring has no keys")
	}
	ring := &Ring{}
	for _, e := range stored.Keys {
		if err := e.validate(); err != nil {
			return nil, err
		}
		if _, duplicate := ring.FindKey(e.Number); duplicate {
			return nil, fmt.Errorf("key number %d stands twice in the ring", e.Number)
		}
		ring.keys = append(ring.keys, Key{Number: e.Number, Value: e.Key, AddedAt: e.Added.UTC()})
	}
	slices.SortFunc(ring.keys, func(a, b Key) int { return a.Number - b.Number })
	return ring, nil
}

func (e storedKey) validate() error {
	switch {
	case e.Number < 1 || e.Number > MaxKeyNumber:
		return fmt.Errorf("key number %d is not between 1 and %d", e.Number, MaxKeyNumber)
	case len(e.Key) != KeySize:
		return fmt.Errorf("key %d is not %d bytes long", e.Number, KeySize)
	case e.Added.IsZero():
		return fmt.Errorf("key %d does not say when it was added", e.Number)
	}
	return nil
}

// FindKey returns the key with a number.
func (r *Ring) FindKey(number int) (Key, bool) {
	for _, key := range r.keys {
		if key.Number == number {
			return key, true
		}
	}
	return Key{}, false
}

// SigningKey returns the key to sign with: the one with the highest number among those that are at least life old, so
// that every function has read it by now. Where none is, the lowest number signs: on a new ring there is no other.
func (r *Ring) SigningKey(now time.Time, propagationTime time.Duration) Key {
	for i := len(r.keys) - 1; i > 0; i-- {
		if !r.keys[i].AddedAt.Add(propagationTime).After(now) {
			return r.keys[i]
		}
	}
	return r.keys[0]
}

// SigningEndedAt is when the last function stopped to sign with a key: once a later one was at least life old. It is
// false where no later key is, and for a number that the ring does not have.
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

// RemoveKey takes a key out of a stored ring and returns the ring to store. Whether anything lives that the key signed is
// the caller's to know. Errors: there is no such key, or it is the newest one, whose number the next key would be given
// again.
func RemoveKey(text []byte, number int) ([]byte, error) {
	ring, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if _, found := ring.FindKey(number); !found {
		return nil, fmt.Errorf("the key ring has no key %d", number)
	}
	if number == ring.keys[len(ring.keys)-1].Number {
		return nil, fmt.Errorf("key %d is the newest: add another first", number)
	}
	var remaining storedRing
	for _, key := range ring.keys {
		if key.Number != number {
			remaining.Keys = append(remaining.Keys, storedKey{Number: key.Number, Key: key.Value, Added: key.AddedAt})
		}
	}
	return json.Marshal(remaining)
}

// AddKey adds a fresh random key with the next number to a stored ring and returns the ring to store. An empty text
// begins a ring. Nothing is taken away: what an old key signed must stay verifiable.
func AddKey(text []byte, random io.Reader, now time.Time) ([]byte, error) {
	var stored storedRing
	next := 1
	if len(text) > 0 {
		ring, err := Parse(text)
		if err != nil {
			return nil, err
		}
		for _, key := range ring.keys {
			stored.Keys = append(stored.Keys, storedKey{Number: key.Number, Key: key.Value, Added: key.AddedAt})
		}
		next = ring.keys[len(ring.keys)-1].Number + 1
	}
	if next > MaxKeyNumber {
		return nil, errors.New("the key ring is full")
	}
	value := make([]byte, KeySize)
	if _, err := io.ReadFull(random, value); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	stored.Keys = append(stored.Keys, storedKey{Number: next, Key: value, Added: now.UTC().Truncate(time.Second)})
	return json.Marshal(stored)
}
