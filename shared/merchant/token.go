package merchant

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"mobilegateway/shared/keyring"
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
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	body := prefix + merchantID + "_" + base64.RawURLEncoding.EncodeToString(value)
	return body + "_" + checksum(body), nil
}

// parseIssuedSecret checks form and checksum, and returns the id of the merchant. The checksum is not a proof: it saves
// a database read for typing errors and for guesses of scanners.
func parseIssuedSecret(prefix, text string) (merchantID string, ok bool) {
	const length = 4 + idLength + 1 + randomLength + 1 + checksumLength
	if len(text) != length || !strings.HasPrefix(text, prefix) {
		return "", false
	}
	body, sum := text[:length-1-checksumLength], text[length-checksumLength:]
	id := body[4 : 4+idLength]
	if text[len(body)] != '_' || body[4+idLength] != '_' || !validID(id) || sum != checksum(body) {
		return "", false
	}
	if _, err := strictBase64.DecodeString(body[4+idLength+1:]); err != nil {
		return "", false
	}
	return id, true
}

func checksum(body string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body)))
}

// validID reports whether id has the form of an id from New. It keeps any other text out of database keys.
func validID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// hashSecret returns the stored form of an issued secret.
func hashSecret(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// findCredential reports whether text is one of the credentials, and whether that one is active. It compares with all
// of them in constant time.
func findCredential(credentials []Credential, text string, now time.Time) (isKnown, isActive bool) {
	hash, known, active := []byte(hashSecret(text)), 0, 0
	for _, c := range credentials {
		same := subtle.ConstantTimeCompare([]byte(c.Hash), hash)
		known |= same
		if c.isActive(now) {
			active |= same
		}
	}
	return known == 1, active == 1
}

type shortLivedToken struct {
	keyNumber     int
	generation    int
	expiresAt     time.Time // whole seconds
	merchantID    string
	signedPayload []byte
	signature     []byte
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

// parseShortLivedToken checks only the form; the caller verifies the signature.
func parseShortLivedToken(text string) (shortLivedToken, bool) {
	encoded, found := strings.CutPrefix(text, shortLivedPrefix)
	if !found {
		return shortLivedToken{}, false
	}
	raw, err := strictBase64.DecodeString(encoded)
	if err != nil || len(raw) != shortLivedSize || len(encoded) != shortLivedLength {
		return shortLivedToken{}, false
	}
	t := shortLivedToken{
		keyNumber:     int(binary.BigEndian.Uint16(raw)),
		generation:    int(binary.BigEndian.Uint32(raw[2:])),
		expiresAt:     time.Unix(int64(binary.BigEndian.Uint64(raw[6:])), 0), //nolint:gosec // the signature covers it
		merchantID:    string(raw[shortLivedHeaderSize : shortLivedHeaderSize+idLength]),
		signedPayload: raw[:shortLivedHeaderSize+idLength],
		signature:     raw[shortLivedHeaderSize+idLength:],
	}
	return t, validID(t.merchantID)
}

// verify reports whether a key of the public ring verifies the token's signature.
func (t shortLivedToken) verify(key keyring.Key) bool {
	return ed25519.Verify(key.Value, signedText(t.signedPayload), t.signature)
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
