package merchant

import (
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Limits of a profile.
const (
	// MaxNameLength is the longest merchant name in characters: an order_id of 30 leaves nine for "_" and digits.
	MaxNameLength = 20
	// MaxActive is how many tokens, client secrets or webhook secrets are live at once: the one in use and its successor.
	MaxActive = 2
)

// The refusals of the onboarding steps.
var (
	ErrInvalidName        = errors.New("a merchant name is 1 to 20 letters and digits")
	ErrTooManyActive      = errors.New("two are live already: revoke one, or replace the older")
	ErrCredentialNotFound = errors.New("there is no credential with this number")
)

// idEncoding spells ids in lower-case letters and the digits 2 to 7: fit for URLs, and free of the "_" that ends an id
// in a token.
var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// New makes the profile of a new merchant: active, with a random id, entitled to nothing and without tokens. Whether
// the name is free only Registry.Create can tell. ErrInvalidName: the name breaks its rule (decision "merchant-names").
func New(name string, random io.Reader, now time.Time) (*Profile, error) {
	if !ValidName(name) {
		return nil, ErrInvalidName
	}
	id := make([]byte, idSize)
	if _, err := io.ReadFull(random, id); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	return &Profile{
		ID: idEncoding.EncodeToString(id), Name: name, Status: StatusActive, Version: 1, TokenGeneration: 1,
		CreatedAt: storedTime(now), UpdatedAt: storedTime(now),
	}, nil
}

// ValidName tells whether name is 1 to MaxNameLength letters (A to Z, in either case) and digits.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxNameLength && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// NormalizeName is the form in which names are compared: two names with the same key are the same name.
func NormalizeName(name string) string { return strings.ToLower(name) }

// IssueToken adds a long-lived access token to the profile and returns it: the only time that it can be seen.
// ErrTooManyActive: two are live.
func IssueToken(p *Profile, random io.Reader, now time.Time) (token string, err error) {
	return issueCredential(p, &p.Tokens, longLivedPrefix, random, now, false)
}

// ReplaceToken is IssueToken, but where two are live it drops the older.
func ReplaceToken(p *Profile, random io.Reader, now time.Time) (token string, err error) {
	return issueCredential(p, &p.Tokens, longLivedPrefix, random, now, true)
}

// IssueClientSecret adds a client secret for the token endpoint, whose client id is the merchant's id, and returns it:
// the only time that it can be seen. ErrTooManyActive: two are live.
func IssueClientSecret(p *Profile, random io.Reader, now time.Time) (secret string, err error) {
	return issueCredential(p, &p.ClientSecrets, clientSecretPrefix, random, now, false)
}

// ReplaceClientSecret is IssueClientSecret, but where two are live it drops the older.
func ReplaceClientSecret(p *Profile, random io.Reader, now time.Time) (secret string, err error) {
	return issueCredential(p, &p.ClientSecrets, clientSecretPrefix, random, now, true)
}

// issueCredential adds a credential to a list of the profile. Expired ones make room.
func issueCredential(p *Profile, list *[]Credential, prefix string, random io.Reader, now time.Time, replace bool) (string, error) {
	number := 1
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
	secret, err := newIssuedSecret(prefix, p.ID, random)
	if err != nil {
		return "", err
	}
	*list = append(active, Credential{Number: number, Hash: hashSecret(secret), CreatedAt: storedTime(now)})
	p.UpdatedAt = storedTime(now)
	return secret, nil
}

// RevokeToken ends a long-lived token at a time: now, or later to give the merchant time to change over.
// ErrCredentialNotFound: there is none with this number.
func RevokeToken(p *Profile, number int, at, now time.Time) error {
	return revokeCredential(p, p.Tokens, number, at, now)
}

// RevokeClientSecret ends a client secret at a time (see RevokeToken). Access tokens that it fetched live on until they
// expire; RevokeShortLivedTokens ends them.
func RevokeClientSecret(p *Profile, number int, at, now time.Time) error {
	return revokeCredential(p, p.ClientSecrets, number, at, now)
}

func revokeCredential(p *Profile, list []Credential, number int, at, now time.Time) error {
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

// Suspend refuses every token of the merchant until Resume. Short-lived ones stay revoked after that.
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
// (see webhook.DeriveSecret). Its version is one that no secret of the merchant ever had, or its secret would be one that
// was revoked. Store the profile before the next is issued. Where two are live it drops the older only if told;
// otherwise ErrTooManyActive.
func IssueWebhookSecret(p *Profile, keyNumber int, replace bool, now time.Time) (WebhookSecret, error) {
	active := p.WebhookSecrets
	if len(active) >= MaxActive {
		if !replace {
			return WebhookSecret{}, ErrTooManyActive
		}
		active = active[:MaxActive-1] // the newest stands first
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

// RevokeWebhookSecret stops signing with a secret. ErrCredentialNotFound: there is none with this version.
func RevokeWebhookSecret(p *Profile, version int, now time.Time) error {
	remaining := slices.DeleteFunc(slices.Clone(p.WebhookSecrets), func(s WebhookSecret) bool { return s.Version == version })
	if len(remaining) == len(p.WebhookSecrets) {
		return ErrCredentialNotFound
	}
	p.WebhookSecrets = remaining
	p.UpdatedAt = storedTime(now)
	return nil
}

// storedTime is a time as profiles keep it: UTC, whole milliseconds.
func storedTime(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
