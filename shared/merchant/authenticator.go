package merchant

import (
	"context"
	"errors"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
)

// Authenticator finds the merchant behind an Authorization header. It is safe for parallel use.
type Authenticator struct {
	store Store
	keys  *keyring.Keys
	cache *profileCache
	now   func() time.Time
}

// NewAuthenticator makes an Authenticator. tokenKeys is the secret TOKEN_KEY_SECRET (a *secret.Cache); cacheLife is how
// long a profile, or that there is none, is believed without asking the store again: it bounds how late a revocation
// works.
func NewAuthenticator(store Store, tokenKeys keyring.Source, cacheLife time.Duration, now func() time.Time) *Authenticator {
	return &Authenticator{
		store: store,
		keys:  keyring.New(tokenKeys, 0, now), // it never signs, so how old a key must be does not matter
		cache: newProfileCache(cacheLife, now),
		now:   now,
	}
}

// The causes of a refusal, for the log.
var (
	errMalformed  = errors.New("the token is malformed or its checksum is wrong")
	errSignature  = errors.New("the token's signature is wrong")
	errUnknownKey = errors.New("the token's key number is unknown")
	errExpired    = errors.New("the token has expired")
	errRevoked    = errors.New("the token is revoked or was never issued")
	errSuspended  = errors.New("the merchant is suspended")
	errNoMerchant = errors.New("the token names no merchant")
)

// Authenticate returns the merchant whose token an Authorization header carries. The scheme is compared without case.
// Faults: NoCredentials without a bearer token, BadCredentials for one that is malformed, forged, unknown, expired,
// revoked or of a suspended merchant, Internal where the store or the key secret does not answer. It reads the store
// at most once, and not at all for a wrong checksum or signature or while the profile is cached (decision
// "authentication").
func (a *Authenticator) Authenticate(ctx context.Context, authorization string) (*Profile, error) {
	token, found := bearer(authorization)
	switch {
	case !found:
		return nil, fault.Of(fault.NoCredentials)
	case len(token) > maxBearer:
		return nil, bad(errMalformed)
	case strings.HasPrefix(token, signedPrefix):
		return a.signed(ctx, token)
	default:
		return a.long(ctx, token)
	}
}

// long authenticates a long-lived token.
func (a *Authenticator) long(ctx context.Context, text string) (*Profile, error) {
	token, ok := parseIssuedSecret(longPrefix, text)
	if !ok {
		return nil, bad(errMalformed)
	}
	profile, err := a.profile(ctx, token.merchantID, func(*Profile) bool { return true })
	if err != nil {
		return nil, err
	}
	if !matches(profile.Tokens, token.text, a.now()) {
		return nil, bad(errRevoked)
	}
	return profile, nil
}

// signed authenticates a short-lived token.
func (a *Authenticator) signed(ctx context.Context, text string) (*Profile, error) {
	token, ok := parseSignedToken(text)
	if !ok {
		return nil, bad(errMalformed)
	}
	key, found, err := a.keys.Find(ctx, token.keyNumber)
	switch {
	case err != nil:
		return nil, fault.Because(err)
	case !found:
		return nil, bad(errUnknownKey)
	case !token.verify(key):
		return nil, bad(errSignature)
	case !a.now().Before(token.expires):
		return nil, bad(errExpired)
	}
	// A genuine token of a later generation than the cached profile's proves that the cached one is out of date.
	upToDate := func(p *Profile) bool { return p != nil && p.Generation >= token.generation }
	profile, err := a.profile(ctx, token.merchantID, upToDate)
	if err != nil {
		return nil, err
	}
	if profile.Generation != token.generation {
		return nil, bad(errRevoked)
	}
	return profile, nil
}

// profile returns an active merchant's profile, from the cache where that is fresh and good enough.
func (a *Authenticator) profile(ctx context.Context, id string, enough func(*Profile) bool) (*Profile, error) {
	profile, found := a.cache.get(id)
	if !found || !enough(profile) {
		readAt := a.now().Round(0)
		var err error
		if profile, err = a.store.Profile(ctx, id); err != nil {
			return nil, fault.Because(err)
		}
		a.cache.put(id, profile, readAt)
	}
	switch {
	case profile == nil:
		return nil, bad(errNoMerchant)
	case !profile.Active():
		return nil, bad(errSuspended)
	}
	return profile, nil
}

// bearer takes the token out of an Authorization header (RFC 6750, 2.1).
func bearer(authorization string) (token string, found bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	token = strings.TrimLeft(rest, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

func bad(cause error) error {
	return &fault.Fault{Kind: fault.BadCredentials, Cause: cause}
}
