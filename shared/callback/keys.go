// Package callback signs the URLs to which operators send their callbacks, and verifies callback requests (decision
// "callbacks").
//
// The last segment of such a URL is a token: an HMAC over the rest of the path. A forged request is refused without a
// read of the database. It does not read callback bodies. Its invariant: a token is valid only for one path, with its
// kind, operator and id, and for an entry of the time at which its key could sign.
package callback

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
)

// Sizes of a token's parts in bytes.
const (
	keyNumberSize = 2
	macSize       = 24 // 192 bits of HMAC-SHA256
	tokenSize     = keyNumberSize + macSize
)

// The first segments of the callback paths.
const (
	paymentPathPrefix = "/callbacks/v1/payments/"
	receiptPathPrefix = "/callbacks/v1/receipts/"
)

// tokenEncoding is strict, so that a token has exactly one spelling.
var tokenEncoding = base64.RawURLEncoding.Strict()

// TokenLength is the length of every token in characters.
const TokenLength = (tokenSize*8 + 5) / 6

// Ring signs with the callback key of one moment. Take a new one from Keys for every request. While NotYet is set it
// has no key, and no address may be issued.
type Ring struct {
	NotYet     *fault.Fault
	signingKey keyring.Key
}

// KeyNumbers returns the number of the key that signs, for ledger.Entry.CallbackKeys.
func (r *Ring) KeyNumbers() []int { return []int{r.signingKey.Number} }

// Sign returns the token for a path.
func (r *Ring) Sign(path string) string {
	number := uint16(r.signingKey.Number) //nolint:gosec // a ring's numbers fit 16 bits
	token := binary.BigEndian.AppendUint16(nil, number)
	return tokenEncoding.EncodeToString(append(token, pathMAC(r.signingKey, path)...))
}

// PaymentURL is the URL for an operator's callback on a payment.
func (r *Ring) PaymentURL(base, operator, orderID string) string {
	return r.signedURL(base, PaymentPath(operator, orderID))
}

// ReceiptURL is the URL for an operator's delivery receipt of an SMS.
func (r *Ring) ReceiptURL(base, operator, requestID string) string {
	return r.signedURL(base, ReceiptPath(operator, requestID))
}

func (r *Ring) signedURL(base, path string) string {
	return strings.TrimRight(base, "/") + path + "/" + r.Sign(path)
}

// PaymentPath is the signed part of a payment callback's path, from the decoded values of its segments. It does not
// have the deployment's stage.
func PaymentPath(operator, orderID string) string {
	return paymentPathPrefix + url.PathEscape(operator) + "/" + url.PathEscape(orderID)
}

// ReceiptPath is the signed part of a receipt callback's path (see PaymentPath).
func ReceiptPath(operator, requestID string) string {
	return receiptPathPrefix + url.PathEscape(operator) + "/" + url.PathEscape(requestID)
}

// pathMAC is the truncated HMAC over a path.
func pathMAC(key keyring.Key, path string) []byte {
	hash := hmac.New(sha256.New, key.Value)
	hash.Write([]byte(path))
	return hash.Sum(nil)[:macSize]
}

// parseToken splits a token. It needs no key.
func parseToken(token string) (number int, tag []byte, ok bool) {
	if len(token) != TokenLength {
		return 0, nil, false
	}
	raw, err := tokenEncoding.DecodeString(token)
	if err != nil || len(raw) != tokenSize {
		return 0, nil, false
	}
	return int(binary.BigEndian.Uint16(raw)), raw[keyNumberSize:], true
}

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
