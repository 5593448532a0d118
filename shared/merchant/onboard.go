package merchant

import (
	"encoding/base32"
	"io"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/logsafe"
)

// Limits of a profile.
const (
	// MaxNameLength is the longest merchant name in characters: an order_id of 30 leaves nine for "_" and digits.
	MaxNameLength = 20
	// MaxActive is the highest number of active tokens, client secrets or webhook secrets: one in use and its
	// successor.
	MaxActive = 2
)

// The errors of the onboarding steps.
var (
	ErrInvalidName        = logsafe.New("a merchant name is 1 to 20 letters and digits")
	ErrTooManyActive      = logsafe.New("two are live already: revoke one, or replace the older")
	ErrCredentialNotFound = logsafe.New("no credential has this number: list the merchant's credentials")
)

// idEncoding writes ids in lower-case letters and the digits 2 to 7: fit for URLs, and without the "_" that ends an id
// in a token.
var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// New makes the profile of a new merchant: active, with a random id, without entitlements and tokens. Registry.Create
// checks that the name is free. ErrInvalidName: the name breaks its rule (decision "merchant-names").
func New(name string, random io.Reader, now time.Time) (*Profile, error) {
	if !ValidName(name) {
		return nil, ErrInvalidName
	}
	id := make([]byte, idSize)
	if _, err := io.ReadFull(random, id); err != nil {
		return nil, logsafe.Errorf("read random bytes: %w", err)
	}
	return &Profile{
		ID: idEncoding.EncodeToString(id), Name: name, Status: StatusActive, Version: 1, TokenGeneration: 1,
		CreatedAt: storedTime(now), UpdatedAt: storedTime(now),
	}, nil
}

// ValidName reports whether name is 1 to MaxNameLength letters (A to Z, in either case) and digits.
func ValidName(name string) bool {
	return len(name) <= MaxNameLength && ascii.ConsistsOf(name, ascii.Letters+ascii.Digits)
}

// NormalizeName returns the form in which names are compared: names with the same form are the same name.
func NormalizeName(name string) string { return strings.ToLower(name) }

// CredentialKind is a kind of credentials that a merchant has up to MaxActive of.
type CredentialKind struct {
	Name   string // in English, for messages
	prefix string
	list   func(*Profile) *[]Credential
}

// The kinds of credentials. They are never changed.
var (
	// LongLivedToken is an access token that is valid until it is revoked.
	LongLivedToken = CredentialKind{"token", longLivedPrefix, func(p *Profile) *[]Credential { return &p.Tokens }}
	// ClientSecret is a secret for the token endpoint. The client id is the merchant's id. Access tokens that were
	// issued for it stay valid after its end until they expire; RevokeShortLivedTokens ends them.
	ClientSecret = CredentialKind{
		"client secret", clientSecretPrefix, func(p *Profile) *[]Credential { return &p.ClientSecrets },
	}
)

// List returns the merchant's credentials of the kind, the oldest first. The caller must not change them.
func (k CredentialKind) List(p *Profile) []Credential { return *k.list(p) }

// Issue adds a credential to the profile and returns its secret, which cannot be displayed again. It removes expired
// ones. ErrTooManyActive: two are active.
func (k CredentialKind) Issue(p *Profile, random io.Reader, now time.Time) (secret string, err error) {
	return k.issue(p, random, now, false)
}

// Replace is Issue, but drops the older credential if two are active.
func (k CredentialKind) Replace(p *Profile, random io.Reader, now time.Time) (secret string, err error) {
	return k.issue(p, random, now, true)
}

func (k CredentialKind) issue(p *Profile, random io.Reader, now time.Time, replace bool) (string, error) {
	list, number := k.list(p), 1
	for _, c := range *list {
		number = max(number, c.Number+1)
	}
	active := slices.DeleteFunc(slices.Clone(*list), func(c Credential) bool { return !c.isActive(now) })
	if len(active) >= MaxActive {
		if !replace {
			return "", ErrTooManyActive
		}
		active = active[len(active)-MaxActive+1:]
	}
	secret, err := newIssuedSecret(k.prefix, p.ID, random)
	if err != nil {
		return "", err
	}
	*list = append(active, Credential{Number: number, Hash: hashSecret(secret), CreatedAt: storedTime(now)})
	p.UpdatedAt = storedTime(now)
	return secret, nil
}

// Revoke ends a credential at a time: now, or later to give the merchant time for the change. ErrCredentialNotFound: no
// credential of the kind has this number.
func (k CredentialKind) Revoke(p *Profile, number int, at, now time.Time) error {
	list := k.List(p)
	i := slices.IndexFunc(list, func(c Credential) bool { return c.Number == number })
	if i < 0 {
		return ErrCredentialNotFound
	}
	if list[i].isActive(at) {
		list[i].ExpiresAt = storedTime(at)
	}
	p.UpdatedAt = storedTime(now)
	return nil
}

// RevokeShortLivedTokens ends all access tokens that the token endpoint ever issued to the merchant.
func RevokeShortLivedTokens(p *Profile, now time.Time) {
	p.TokenGeneration++
	p.UpdatedAt = storedTime(now)
}

// Suspend refuses every token of the merchant until Resume. Short-lived ones stay revoked afterwards.
func Suspend(p *Profile, now time.Time) {
	p.Status = StatusSuspended
	RevokeShortLivedTokens(p, now)
}

// Resume ends a suspension.
func Resume(p *Profile, now time.Time) {
	p.Status = StatusActive
	p.UpdatedAt = storedTime(now)
}

// IssueWebhookSecret adds a signing secret for the merchant's notifications, derived from a key of the webhook key ring
// (see webhook.DeriveSecret). Its version is new: a reused version would restore a revoked secret. Store the profile
// before you issue the next one. If two are active, replace drops the older; otherwise the result is ErrTooManyActive.
func IssueWebhookSecret(p *Profile, keyNumber int, replace bool, now time.Time) (WebhookSecret, error) {
	active := p.WebhookSecrets
	if len(active) >= MaxActive {
		if !replace {
			return WebhookSecret{}, ErrTooManyActive
		}
		active = active[:MaxActive-1] // the newest is first
	}
	for _, s := range p.WebhookSecrets {
		p.LastWebhookSecretVersion = max(p.LastWebhookSecretVersion, s.Version)
	}
	p.LastWebhookSecretVersion++
	issued := WebhookSecret{Version: p.LastWebhookSecretVersion, KeyNumber: keyNumber, CreatedAt: storedTime(now)}
	p.WebhookSecrets = append([]WebhookSecret{issued}, active...)
	p.UpdatedAt = storedTime(now)
	return issued, nil
}

// RevokeWebhookSecret stops signing with a secret. ErrCredentialNotFound: no secret has this version.
func RevokeWebhookSecret(p *Profile, version int, now time.Time) error {
	i := slices.IndexFunc(p.WebhookSecrets, func(s WebhookSecret) bool { return s.Version == version })
	if i < 0 {
		return ErrCredentialNotFound
	}
	p.WebhookSecrets = slices.Delete(slices.Clone(p.WebhookSecrets), i, i+1)
	p.UpdatedAt = storedTime(now)
	return nil
}

// storedTime returns a time as profiles store it: UTC, whole milliseconds.
func storedTime(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
