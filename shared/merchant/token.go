package merchant

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"io"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/logsafe"
)

// The prefixes of secrets: people and scanners recognise a leaked secret by them.
const (
	longLivedPrefix    = "gwl_" // a long-lived access token
	clientSecretPrefix = "gwc_" // a client secret of the token endpoint
	shortLivedPrefix   = "gws_" // a short-lived, signed access token
)

// Sizes and limits of tokens.
const (
	randomSize           = 32                     // bytes in an issued secret: 256 bits
	randomLength         = (randomSize*8 + 5) / 6 // the same in base64url characters
	checksumLength       = 8                      // CRC-32 in hex
	idSize               = 10                     // random bytes in a merchant id: 80 bits
	idLength             = 16                     // the same in base32 characters
	shortLivedHeaderSize = 2 + 4 + 8              // key number, generation, expiry in Unix seconds
	shortLivedSize       = shortLivedHeaderSize + idLength + ed25519.SignatureSize
	shortLivedLength     = (shortLivedSize*8 + 5) / 6 // the same in base64url characters
	maxTokenLength       = 256                        // characters; a longer token is refused unread
)

// MaxTokenLifetime is the longest lifetime of a short-lived token (ACCESS_TOKEN_LIFETIME).
const MaxTokenLifetime = 24 * time.Hour

// maxClockSkew is how far the clock of the function that issued a token may be ahead of ours.
const maxClockSkew = 5 * time.Minute

// strictBase64 accepts exactly one spelling of each value of a known length. It ignores line ends inside it.
var strictBase64 = base64.RawURLEncoding.Strict()

// newIssuedSecret makes a long-lived token or client secret, <prefix><merchant id>_<random>_<checksum>, of 256 random
// bits.
func newIssuedSecret(prefix, merchantID string, random io.Reader) (string, error) {
	value := make([]byte, randomSize)
	if _, err := io.ReadFull(random, value); err != nil {
		return "", logsafe.Errorf("read random bytes: %w", err)
	}
	body := prefix + merchantID + "_" + base64.RawURLEncoding.EncodeToString(value)
	return body + "_" + checksum(body), nil
}

// SignShortLivedToken makes a short-lived access token for a merchant, signed by Ed25519 with a key of the private
// ring. It is valid until expires (whole seconds), or until the profile's generation is raised or the key revoked.
// Nothing is stored, so their number is not limited (decision "access-tokens").
func SignShortLivedToken(p *Profile, key keyring.Key, expires time.Time) string {
	payload := binary.BigEndian.AppendUint16(nil, uint16(key.Number))           //nolint:gosec // at most MaxKeyNumber
	payload = binary.BigEndian.AppendUint32(payload, uint32(p.TokenGeneration)) //nolint:gosec // counts revocations
	payload = binary.BigEndian.AppendUint64(payload, uint64(expires.Unix()))    //nolint:gosec // after 1970
	payload = append(payload, p.ID...)
	signature := ed25519.Sign(ed25519.NewKeyFromSeed(key.Value), signedText(payload))
	return shortLivedPrefix + base64.RawURLEncoding.EncodeToString(append(payload, signature...))
}

// signedText has the prefix too, so that no other text signed with the key is a valid access token.
func signedText(payload []byte) []byte { return append([]byte(shortLivedPrefix), payload...) }

// IsWellFormedClientSecret reports whether a client secret has its form, a correct checksum and the client id in it. It
// is not a proof: it saves a read of the store.
func IsWellFormedClientSecret(clientID, text string) bool {
	id, ok := parseIssuedSecret(clientSecretPrefix, text)
	return ok && id == clientID
}

// VerifyClientSecret reports whether text is an active client secret of the merchant, active or suspended. It compares
// in constant time.
func (p *Profile) VerifyClientSecret(text string, now time.Time) bool {
	_, isActive := findCredential(p.ClientSecrets, text, now)
	return isActive
}
