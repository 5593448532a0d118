package merchant

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/logsafe"
)

// Authenticator finds the merchant behind an Authorization header. It is safe for concurrent use.
type Authenticator struct {
	profiles *CachedStore
	keys     *keyring.RefreshingRing
	verified verifiedTokens
	now      func() time.Time
}

// NewAuthenticator makes an Authenticator. tokenKeys is the public ring. A result of the store is cached for cacheTTL,
// so a revocation takes effect after cacheTTL at the latest.
func NewAuthenticator(
	store Store, tokenKeys *keyring.RefreshingRing, cacheTTL time.Duration, now func() time.Time,
) *Authenticator {
	return &Authenticator{
		profiles: NewCachedStore(store, cacheTTL, now),
		keys:     tokenKeys,
		now:      now,
	}
}

// The causes of a refusal, for the log only.
var (
	errMalformed       = logsafe.New("the token is malformed or its checksum is wrong")
	errWrongSignature  = logsafe.New("the token's signature is wrong")
	errUnknownKey      = logsafe.New("the token's key number is unknown")
	errExpired         = logsafe.New("the token has expired")
	errTooLong         = logsafe.New("the token expires later than any token that is issued")
	errRevoked         = logsafe.New("the token is revoked or was never issued")
	errSuspended       = logsafe.New("the merchant is suspended")
	errUnknownMerchant = logsafe.New("the token belongs to an unknown merchant")
)

// Authenticate returns the merchant whose token an Authorization header carries. The scheme is compared without case.
// Faults: MissingCredentials without a bearer token. InvalidCredentials for a token that is malformed, forged, unknown,
// expired, revoked or of a suspended merchant; only the last one has a Reason. Internal if the store or the key secret
// fails. OperatorUnavailable, 503, for a token of a key that the ring may lack. It reads the store at most once. It
// does not read for a wrong checksum or signature. While the profile is cached, only a long-lived token that the
// profile does not know causes a read, at most one in 5 seconds for each merchant. So a new token works at once
// (decision "authentication").
func (a *Authenticator) Authenticate(ctx context.Context, authorization string) (*Profile, error) {
	token, found := parseBearer(authorization)
	authenticate := a.authenticateLongLived
	switch {
	case !found:
		return nil, fault.New(fault.MissingCredentials)
	case len(token) > maxTokenLength:
		return nil, invalidCredentials(errMalformed)
	case strings.HasPrefix(token, shortLivedPrefix):
		authenticate = a.authenticateShortLived
	}
	profile, err := authenticate(ctx, token)
	if err == nil && !profile.Active() { // the reason is only for a merchant whose token has matched
		return nil, &fault.Fault{Kind: fault.InvalidCredentials, Reason: ReasonSuspended, Cause: errSuspended}
	}
	return profile, err
}

func (a *Authenticator) authenticateLongLived(ctx context.Context, text string) (*Profile, error) {
	merchantID, ok := parseIssuedSecret(longLivedPrefix, text)
	if !ok {
		return nil, invalidCredentials(errMalformed)
	}
	profile, isCached, err := a.profiles.findProfile(ctx, merchantID, 0)
	if err != nil {
		return nil, err
	}
	isKnown, isActive := findCredential(profile.Tokens, text, a.now())
	if !isKnown && isCached && a.profiles.claimFreshRead(merchantID) {
		if renewed, err := a.profiles.refresh(ctx, merchantID); err == nil && renewed != nil {
			profile = renewed
			_, isActive = findCredential(profile.Tokens, text, a.now())
		}
	}
	if !isActive {
		return nil, invalidCredentials(errRevoked)
	}
	return profile, nil
}

func (a *Authenticator) authenticateShortLived(ctx context.Context, text string) (*Profile, error) {
	token, ok := parseShortLivedToken(text)
	if !ok {
		return nil, invalidCredentials(errMalformed)
	}
	now := a.now()
	key, found, err := a.keys.FindKey(ctx, token.keyNumber)
	switch {
	case errors.Is(err, keyring.ErrStaleRing): // the key may be new: a 401 would make the merchant give the token up
		return nil, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	case err != nil:
		return nil, fault.NewInternal(err)
	case !found:
		return nil, invalidCredentials(errUnknownKey)
	case !now.Before(token.expiresAt):
		return nil, invalidCredentials(errExpired)
	case token.expiresAt.After(now.Add(MaxTokenLifetime + maxClockSkew)):
		return nil, invalidCredentials(errTooLong)
	case !a.verified.verify(text, token, key, now):
		return nil, invalidCredentials(errWrongSignature)
	}
	profile, _, err := a.profiles.findProfile(ctx, token.merchantID, token.generation)
	if err != nil {
		return nil, err
	}
	if profile.TokenGeneration != token.generation {
		return nil, invalidCredentials(errRevoked)
	}
	return profile, nil
}

// parseBearer returns the token of an Authorization header (RFC 6750, 2.1).
func parseBearer(authorization string) (token string, found bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	token = strings.TrimLeft(rest, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

func invalidCredentials(cause error) error {
	return &fault.Fault{Kind: fault.InvalidCredentials, Cause: cause}
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
