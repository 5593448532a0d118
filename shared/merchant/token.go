package merchant

import (
	"crypto/hmac"
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

// The prefixes of secrets, by which people and scanners recognise a leaked one.
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
	shortLivedSize       = shortLivedHeaderSize + idLength + sha256.Size
	maxTokenLength       = 256 // characters of a token that are looked at at all
)

// strictBase64 decodes exactly one spelling of each value.
var strictBase64 = base64.RawURLEncoding.Strict()

// issuedSecret is a long-lived token or a client secret taken apart: <prefix><merchant id>_<random>_<checksum>.
type issuedSecret struct {
	merchantID string
	secret     string
}

// newIssuedSecret makes a secret of 256 random bits.
func newIssuedSecret(prefix, merchantID string, random io.Reader) (string, error) {
	value := make([]byte, randomSize)
	if _, err := io.ReadFull(random, value); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	body := prefix + merchantID + "_" + base64.RawURLEncoding.EncodeToString(value)
	return body + "_" + checksum(body), nil
}

// parseIssuedSecret checks form and checksum. The checksum is no proof; it saves a database read for typing errors and
// for what scanners try.
func parseIssuedSecret(prefix, text string) (issuedSecret, bool) {
	const length = 4 + idLength + 1 + randomLength + 1 + checksumLength
	if len(text) != length || !strings.HasPrefix(text, prefix) {
		return issuedSecret{}, false
	}
	body, sum := text[:length-1-checksumLength], text[length-checksumLength:]
	id := body[4 : 4+idLength]
	if text[len(body)] != '_' || body[4+idLength] != '_' || !validID(id) || sum != checksum(body) {
		return issuedSecret{}, false
	}
	if _, err := strictBase64.DecodeString(body[4+idLength+1:]); err != nil {
		return issuedSecret{}, false
	}
	return issuedSecret{merchantID: id, secret: text}, true
}

func checksum(body string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body)))
}

// validID tells whether id has the form that New gives ids: it keeps anything else out of database keys.
func validID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// hashSecret is what a profile keeps of an issued secret.
func hashSecret(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// matchesActive tells whether text is one of the live credentials. It compares all of them in constant time.
func matchesActive(credentials []Credential, text string, now time.Time) bool {
	hash, found := []byte(hashSecret(text)), 0
	for _, c := range credentials {
		same := subtle.ConstantTimeCompare([]byte(c.Hash), hash)
		if c.isActive(now) {
			found |= same
		}
	}
	return found == 1
}

// shortLivedToken is the content of a short-lived token.
type shortLivedToken struct {
	keyNumber     int
	generation    int
	expiresAt     time.Time // whole seconds
	merchantID    string
	signedPayload []byte // what the signature covers
	signature     []byte
}

// SignShortLivedToken makes a short-lived access token for a merchant, good until expires (whole seconds) or until the
// generation of the profile is raised. Nothing is stored: any number may live at once (decision "access-tokens").
func SignShortLivedToken(p *Profile, key keyring.Key, expires time.Time) string {
	payload := binary.BigEndian.AppendUint16(nil, uint16(key.Number))           //nolint:gosec // a ring's numbers fit 16 bits
	payload = binary.BigEndian.AppendUint32(payload, uint32(p.TokenGeneration)) //nolint:gosec // counts revocations
	payload = binary.BigEndian.AppendUint64(payload, uint64(expires.Unix()))    //nolint:gosec // after 1970
	payload = append(payload, p.ID...)
	return shortLivedPrefix + base64.RawURLEncoding.EncodeToString(append(payload, signature(key, payload)...))
}

// parseShortLivedToken checks the form alone; the signature is yet to be verified.
func parseShortLivedToken(text string) (shortLivedToken, bool) {
	encoded, found := strings.CutPrefix(text, shortLivedPrefix)
	if !found {
		return shortLivedToken{}, false
	}
	raw, err := strictBase64.DecodeString(encoded)
	if err != nil || len(raw) != shortLivedSize {
		return shortLivedToken{}, false
	}
	t := shortLivedToken{
		keyNumber:     int(binary.BigEndian.Uint16(raw)),
		generation:    int(binary.BigEndian.Uint32(raw[2:])),
		expiresAt:     time.Unix(int64(binary.BigEndian.Uint64(raw[6:])), 0), //nolint:gosec // a forged value fails the signature
		merchantID:    string(raw[shortLivedHeaderSize : shortLivedHeaderSize+idLength]),
		signedPayload: raw[:shortLivedHeaderSize+idLength],
		signature:     raw[shortLivedHeaderSize+idLength:],
	}
	return t, validID(t.merchantID)
}

// verify tells whether the token was signed with key.
func (t shortLivedToken) verify(key keyring.Key) bool {
	return hmac.Equal(t.signature, signature(key, t.signedPayload))
}

// signature covers the prefix too, so that nothing else signed with the key could pass for an access token.
func signature(key keyring.Key, payload []byte) []byte {
	hash := hmac.New(sha256.New, key.Value)
	hash.Write([]byte(shortLivedPrefix))
	hash.Write(payload)
	return hash.Sum(nil)
}

// IsWellFormedClientSecret tells whether a client secret has its form, a right checksum and the client id in it. It is no
// proof; it saves a read of the store.
func IsWellFormedClientSecret(clientID, text string) bool {
	secret, ok := parseIssuedSecret(clientSecretPrefix, text)
	return ok && secret.merchantID == clientID
}

// VerifyClientSecret tells whether text is a live client secret of an active merchant. It compares in constant time.
func (p *Profile) VerifyClientSecret(text string, now time.Time) bool {
	return matchesActive(p.ClientSecrets, text, now) && p.Active()
}
