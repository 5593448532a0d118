package callback

import (
	"context"
	"crypto/hmac"
	"errors"
	"slices"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
)

// Keys signs and verifies with the callback key ring. propagationTime is after which time a new key signs.
type Keys struct {
	keys            *keyring.RefreshingRing
	propagationTime time.Duration
}

// New creates Keys over the ring of CALLBACK_KEY_SECRET. propagationTime is the ring's own (decision "key-rings").
func New(keys *keyring.RefreshingRing, propagationTime time.Duration) *Keys {
	return &Keys{keys: keys, propagationTime: propagationTime}
}

// Ring returns the ring to sign with. It fails if the secret could never be read. If no key may sign yet, the ring has
// NotYet and signs nothing.
func (k *Keys) Ring(ctx context.Context) (*Ring, error) {
	key, err := k.keys.SigningKey(ctx)
	if errors.Is(err, keyring.ErrNoSigningKey) {
		return &Ring{NotYet: &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}}, nil
	}
	if err != nil {
		return nil, err
	}
	return &Ring{signingKey: key}, nil
}

// Proof is a verified callback token. It is valid for entries that its key may have signed an address of.
type Proof struct {
	keys      *Keys
	keyNumber int
}

// Verify reports whether a live key signed the token for the path, in constant time. It refreshes the secret for an
// unknown key number, at a limited rate. It reads no database. After an error the token may be valid: the operator
// should retry.
func (k *Keys) Verify(ctx context.Context, path, token string) (Proof, bool, error) {
	number, tag, ok := parseToken(token)
	if !ok {
		return Proof{}, false, nil
	}
	key, found, err := k.keys.FindKey(ctx, number)
	if err != nil || !found {
		return Proof{}, false, err
	}
	return Proof{k, number}, hmac.Equal(tag, pathMAC(key, path)), nil
}

// signingLease is the longest time in which a reservation's request can run.
const signingLease = time.Minute

// Covers reports whether the key may have signed an address of the entry, in any function. Either the entry names it,
// or it could sign from the entry's creation to its last reservation, plus the lease and one cache lifetime. Both the
// old and the new address of an entry that was reserved again after a rotation are valid. An error means that the ring
// is too old to refuse.
func (p Proof) Covers(ctx context.Context, e *ledger.Entry) (bool, error) {
	ring, err := p.keys.keys.Current(ctx)
	if err != nil {
		return false, err
	}
	if MayHaveSigned(ring, p.keyNumber, e, p.keys.propagationTime) {
		return true, nil
	}
	return false, p.keys.keys.CheckFresh()
}

// MayHaveSigned reports whether a key may have signed an address of the entry (see Proof.Covers).
func MayHaveSigned(ring *keyring.Ring, number int, e *ledger.Entry, propagationTime time.Duration) bool {
	if _, live := ring.FindKey(number); live && slices.Contains(e.Route.CallbackKeys, number) {
		return true
	}
	return ring.MayHaveSigned(number, e.CreatedAt, e.ReservedAt.Add(signingLease+propagationTime), propagationTime)
}

// MayHaveLost reports whether an address of the entry may have been signed by a key that is revoked or retired: the
// operator's callback to it is refused. An entry of an earlier version names no keys; its times decide then.
func MayHaveLost(ring *keyring.Ring, e *ledger.Entry, propagationTime time.Duration) bool {
	for _, number := range e.Route.CallbackKeys {
		if _, live := ring.FindKey(number); !live {
			return true
		}
	}
	return len(e.Route.CallbackKeys) == 0 && ring.MayHaveLost(e.CreatedAt, e.ReservedAt, propagationTime)
}
