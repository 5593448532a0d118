// Package callback signs the URLs to which operators send their callbacks, and verifies callback requests (decision
// "callbacks").
//
// The last segment of such a URL is a token: an HMAC over the rest of the path. A forged request is refused without a
// read of the database. It does not read callback bodies. Its invariant: a token is valid only for one path, with its
// kind, operator and id, and for an entry of the time at which its key could sign.
package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strings"

	"mobilegateway/shared/fault"
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
