// Package callback makes the addresses at which operators call the gateway back, and recognises them (decision
// "callbacks").
//
// The last segment of such an address is a token: an HMAC over the rest of the path. So a forged call is refused
// without a read of the database. The invariant: a token is good for one path alone, with its kind, operator and id,
// for as long as its key stands in the ring.
package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strings"

	"mobilegateway/shared/keyring"
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

// Ring signs and verifies with the callback keys as they stood when it was made. Take a fresh one for every request,
// from Keys.
type Ring struct {
	ring       *keyring.Ring
	signingKey keyring.Key
}

// Sign returns the token for a path.
func (r *Ring) Sign(path string) string {
	token := binary.BigEndian.AppendUint16(nil, uint16(r.signingKey.Number)) //nolint:gosec // a ring's numbers fit 16 bits
	return tokenEncoding.EncodeToString(append(token, pathMAC(r.signingKey, path)...))
}

// Verify tells whether token was signed for path by any key of the ring. It takes the same time wherever a wrong
// token differs. A number that the ring does not know is refused; Keys.Verify asks the secret first.
func (r *Ring) Verify(path, token string) bool {
	number, tag, ok := parseToken(token)
	if !ok {
		return false
	}
	key, found := r.ring.FindKey(number)
	return found && hmac.Equal(tag, pathMAC(key, path))
}

// PaymentURL is where an operator reports on a payment. base has no slash at its end.
func (r *Ring) PaymentURL(base, operator, orderID string) string {
	return r.signedURL(base, PaymentPath(operator, orderID))
}

// ReceiptURL is where an operator reports on the delivery of an SMS. base has no slash at its end.
func (r *Ring) ReceiptURL(base, operator, requestID string) string {
	return r.signedURL(base, ReceiptPath(operator, requestID))
}

func (r *Ring) signedURL(base, path string) string {
	return strings.TrimRight(base, "/") + path + "/" + r.Sign(path)
}

// PaymentPath is the signed part of a payment callback's path, from the values of its segments as they are after
// decoding. The deployment's stage is no part of it.
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

// parseToken takes a token apart, without knowing any key.
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
