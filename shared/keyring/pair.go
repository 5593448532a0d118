package keyring

import (
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"slices"
	"time"

	"mobilegateway/shared/logsafe"
)

// Pair is a stored ring of Ed25519 keys in two secrets. Private has the seeds, for the function that signs. Public has
// the public keys under the same numbers, for the functions that verify. An empty text is a ring without a key.
//
// Write the public ring first, always. If the second write is lost, the public ring has a key that nothing signs with,
// or lacks one that must not be accepted. Both are safe, and the same change can be made again.
type Pair struct{ Private, Public []byte }

// AddKey adds a new random key to both rings. Its number is higher than every number of both: a key whose private half
// was never written keeps its number for itself.
func (p Pair) AddKey(random io.Reader, now time.Time) (Pair, error) {
	seed, seedErr := newValue(random)
	private, lastPrivate, privateErr := storedKeys(p.Private)
	public, lastPublic, publicErr := storedKeys(p.Public)
	err := cmp.Or(seedErr, privateErr, publicErr)
	if err != nil {
		return p, err
	}
	added := Key{Number: max(lastPrivate, lastPublic) + 1, Value: seed, AddedAt: now}
	if p.Private, err = appendKey(private, added); err != nil {
		return p, err
	}
	added.Value = ed25519.NewKeyFromSeed(seed)[ed25519.SeedSize:] // the public half
	p.Public, err = appendKey(public, added)
	return p, err
}

// RevokeKey leaves a tombstone in both rings. If no other key of both rings is old enough to sign, it first adds one,
// which signs after SigningDelay. It also revokes a key that only one of the rings has: an earlier change was
// interrupted, or the key is from before there were two rings.
func (p Pair) RevokeKey(
	number int, random io.Reader, now time.Time, propagationTime time.Duration,
) (next Pair, err error) {
	next = p
	if !p.hasOtherRipeKey(number, now, propagationTime) {
		if next, err = p.AddKey(random, now); err != nil {
			return p, err
		}
	}
	private, revokedPrivate, privateErr := revokeIn(next.Private, number, now)
	public, revokedPublic, publicErr := revokeIn(next.Public, number, now)
	if err := cmp.Or(privateErr, publicErr); err != nil {
		return p, err
	}
	if !revokedPrivate && !revokedPublic {
		return p, logsafe.Errorf("the key ring has no live key %d", number)
	}
	return Pair{private, public}, nil
}

// hasOtherRipeKey reports whether another key can sign now, and be verified.
func (p Pair) hasOtherRipeKey(number int, now time.Time, propagationTime time.Duration) bool {
	private, _, privateErr := storedKeys(p.Private)
	public, err := Parse(p.Public)
	return privateErr == nil && err == nil && slices.ContainsFunc(private, func(key Key) bool {
		_, published := public.FindKey(key.Number)
		one := &Ring{keys: []Key{key}}
		return published && one.HasOtherRipeKey(number, now, propagationTime)
	})
}

// revokeIn leaves a tombstone in one stored ring, also if the ring does not have the key. It reports whether a live key
// was revoked.
func revokeIn(text []byte, number int, now time.Time) (next []byte, revoked bool, err error) {
	keys, _, err := storedKeys(text)
	if err != nil {
		return nil, false, err
	}
	i := slices.IndexFunc(keys, func(key Key) bool { return key.Number == number })
	if i < 0 {
		keys = append(keys, Key{Number: number, AddedAt: storedTime(now), RevokedAt: storedTime(now)})
	} else if revoked = keys[i].isLive(); revoked {
		keys[i].Value, keys[i].RevokedAt = nil, storedTime(now)
	}
	next, err = json.Marshal(storedRing{Keys: keys})
	return next, revoked, err
}

// RemoveKey removes a key from both rings (see RemoveKey). It does not need the public ring to have it.
func (p Pair) RemoveKey(number int) (next Pair, err error) {
	if next.Private, err = RemoveKey(p.Private, number); err != nil {
		return p, err
	}
	public, err := Parse(p.Public)
	if err != nil {
		return p, err
	}
	next.Public = p.Public
	if _, found := public.FindKey(number); found {
		next.Public, err = RemoveKey(p.Public, number)
	}
	return next, err
}
