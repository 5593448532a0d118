package merchant

import (
	"context"
	"errors"
	"strings"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/keyring"
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
	errMalformed       = errors.New("the token is malformed or its checksum is wrong")
	errWrongSignature  = errors.New("the token's signature is wrong")
	errUnknownKey      = errors.New("the token's key number is unknown")
	errExpired         = errors.New("the token has expired")
	errTooLong         = errors.New("the token expires later than any token that is issued")
	errRevoked         = errors.New("the token is revoked or was never issued")
	errSuspended       = errors.New("the merchant is suspended")
	errUnknownMerchant = errors.New("the token belongs to an unknown merchant")
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

func (a *Authenticator) authenticateLongLived(ctx context.Context, text string) (*Profile, error) {
	merchantID, ok := parseIssuedSecret(longLivedPrefix, text)
	if !ok {
		return nil, invalidCredentials(errMalformed)
	}
	profile, isCached, err := a.findProfile(ctx, merchantID, 0)
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
	return requireActive(profile)
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
	profile, _, err := a.findProfile(ctx, token.merchantID, token.generation)
	if err != nil {
		return nil, err
	}
	if profile.TokenGeneration != token.generation {
		return nil, invalidCredentials(errRevoked)
	}
	return requireActive(profile)
}

// findProfile returns a merchant's profile with at most one read, and whether it is from the cache. A verified token of
// a later generation proves that the cached profile is stale.
func (a *Authenticator) findProfile(
	ctx context.Context, id string, minGeneration int,
) (profile *Profile, isCached bool, err error) {
	profile, isCached = a.profiles.cached(id)
	cachedGeneration := 0
	if profile != nil {
		cachedGeneration = profile.TokenGeneration
	}
	if !isCached || cachedGeneration < minGeneration {
		isCached = false
		if profile, err = a.profiles.refresh(ctx, id); err != nil {
			return nil, false, fault.NewInternal(err)
		}
	}
	if profile == nil {
		return nil, false, invalidCredentials(errUnknownMerchant)
	}
	return profile, isCached, nil
}

// requireActive refuses a suspended merchant. Call it after the token has matched: the reason is only for the merchant.
func requireActive(profile *Profile) (*Profile, error) {
	if !profile.Active() {
		return nil, &fault.Fault{Kind: fault.InvalidCredentials, Reason: ReasonSuspended, Cause: errSuspended}
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
