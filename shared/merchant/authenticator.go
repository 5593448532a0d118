package merchant

import (
	"context"
	"errors"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/secret"
)

// Authenticator finds the merchant behind an Authorization header. It is safe for parallel use.
type Authenticator struct {
	store Store
	keys  *keyring.RefreshingRing
	cache *profileCache
	now   func() time.Time
}

// NewAuthenticator makes an Authenticator. tokenKeys is the secret TOKEN_KEY_SECRET (a *secret.Cache); cacheLife is how
// long a profile, or that there is none, is believed without asking the store again: it bounds how late a revocation
// works.
func NewAuthenticator(store Store, tokenKeys secret.Reader, cacheTTL time.Duration, now func() time.Time) *Authenticator {
	return &Authenticator{
		store: store,
		keys:  keyring.NewRefreshingRing(tokenKeys, 0, now), // it never signs, so how old a key must be does not matter
		cache: newProfileCache(cacheTTL, now),
		now:   now,
	}
}

// The causes of a refusal, for the log.
var (
	errMalformed       = errors.New("the token is malformed or its checksum is wrong")
	errWrongSignature  = errors.New("the token's signature is wrong")
	errUnknownKey      = errors.New("the token's key number is unknown")
	errExpired         = errors.New("the token has expired")
	errRevoked         = errors.New("the token is revoked or was never issued")
	errSuspended       = errors.New("the merchant is suspended")
	errUnknownMerchant = errors.New("the token names no merchant")
)

// Authenticate returns the merchant whose token an Authorization header carries. The scheme is compared without case.
// Faults: MissingCredentials without a bearer token, InvalidCredentials for one that is malformed, forged, unknown, expired,
// revoked or of a suspended merchant, Internal where the store or the key secret does not answer. It reads the store
// at most once, and not at all for a wrong checksum or signature or while the profile is cached (decision
// "authentication").
func (a *Authenticator) Authenticate(ctx context.Context, authorization string) (*Profile, error) {
	token, found := parseBearer(authorization)
	switch {
	case !found:
		return nil, fault.New(fault.MissingCredentials)
	case len(token) > maxTokenLength:
		return nil, invalidCredentials(errMalformed)
	case strings.HasPrefix(token, shortLivedPrefix):
		return a.authenticateShortLived(ctx, token)
	default:
		return a.authenticateLongLived(ctx, token)
	}
}

// authenticateLongLived authenticates a long-lived token.
func (a *Authenticator) authenticateLongLived(ctx context.Context, text string) (*Profile, error) {
	token, ok := parseIssuedSecret(longLivedPrefix, text)
	if !ok {
		return nil, invalidCredentials(errMalformed)
	}
	profile, err := a.activeProfile(ctx, token.merchantID, func(*Profile) bool { return true })
	if err != nil {
		return nil, err
	}
	if !matchesActive(profile.Tokens, token.secret, a.now()) {
		return nil, invalidCredentials(errRevoked)
	}
	return profile, nil
}

// authenticateShortLived authenticates a short-lived token.
func (a *Authenticator) authenticateShortLived(ctx context.Context, text string) (*Profile, error) {
	token, ok := parseShortLivedToken(text)
	if !ok {
		return nil, invalidCredentials(errMalformed)
	}
	key, found, err := a.keys.FindKey(ctx, token.keyNumber)
	switch {
	case err != nil:
		return nil, fault.NewInternal(err)
	case !found:
		return nil, invalidCredentials(errUnknownKey)
	case !token.verify(key):
		return nil, invalidCredentials(errWrongSignature)
	case !a.now().Before(token.expiresAt):
		return nil, invalidCredentials(errExpired)
	}
	// A genuine token of a later generation than the cached profile's proves that the cached one is out of date.
	isCurrent := func(p *Profile) bool { return p != nil && p.TokenGeneration >= token.generation }
	profile, err := a.activeProfile(ctx, token.merchantID, isCurrent)
	if err != nil {
		return nil, err
	}
	if profile.TokenGeneration != token.generation {
		return nil, invalidCredentials(errRevoked)
	}
	return profile, nil
}

// activeProfile returns an active merchant's profile, from the cache where that is fresh and good enough.
func (a *Authenticator) activeProfile(ctx context.Context, id string, isCurrent func(*Profile) bool) (*Profile, error) {
	profile, found := a.cache.get(id)
	if !found || !isCurrent(profile) {
		readAt := a.now().Round(0)
		var err error
		if profile, err = a.store.Profile(ctx, id); err != nil {
			return nil, fault.NewInternal(err)
		}
		a.cache.put(id, profile, readAt)
	}
	switch {
	case profile == nil:
		return nil, invalidCredentials(errUnknownMerchant)
	case !profile.Active():
		return nil, invalidCredentials(errSuspended)
	}
	return profile, nil
}

// parseBearer takes the token out of an Authorization header (RFC 6750, 2.1).
func parseBearer(authorization string) (token string, found bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	token = strings.TrimLeft(rest, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

func invalidCredentials(cause error) error {
	return &fault.Fault{Kind: fault.InvalidCredentials, Cause: cause}
}
