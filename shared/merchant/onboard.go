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
	// MaxName is the longest merchant name in characters: an order_id of 30 leaves nine for "_" and digits.
	MaxName = 20
	// MaxLive is how many tokens, client secrets or webhook secrets are live at once: the one in use and its successor.
	MaxLive = 2
)

// The refusals of the onboarding steps.
var (
	ErrName         = errors.New("a merchant name is 1 to 20 letters and digits")
	ErrTwoLive      = errors.New("two are live already: revoke one, or replace the older")
	ErrNoCredential = errors.New("there is no credential with this number")
)

// idEncoding spells ids in lower-case letters and the digits 2 to 7: fit for URLs, and free of the "_" that ends an id
// in a token.
var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// New makes the profile of a new merchant: active, with a random id, entitled to nothing and without tokens. Whether
// the name is free only Registry.Create can tell. ErrName: the name breaks its rule (decision "merchant-names").
func New(name string, random io.Reader, now time.Time) (*Profile, error) {
	if !ValidName(name) {
		return nil, ErrName
	}
	id := make([]byte, idSize)
	if _, err := io.ReadFull(random, id); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	return &Profile{
		ID: idEncoding.EncodeToString(id), Name: name, Status: StatusActive, Version: 1, Generation: 1,
		Created: stamp(now), Updated: stamp(now),
	}, nil
}

// ValidName tells whether name is 1 to MaxName letters (A to Z, in either case) and digits.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxName && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// NameKey is the form in which names are compared: two names with the same key are the same name.
func NameKey(name string) string { return strings.ToLower(name) }

// IssueToken adds a long-lived access token to the profile and returns it: the only time that it can be seen.
// ErrTwoLive: two are live.
func IssueToken(p *Profile, random io.Reader, now time.Time) (token string, err error) {
	return issue(p, &p.Tokens, longPrefix, random, now, false)
}

// ReplaceToken is IssueToken, but where two are live it drops the older.
func ReplaceToken(p *Profile, random io.Reader, now time.Time) (token string, err error) {
	return issue(p, &p.Tokens, longPrefix, random, now, true)
}

// IssueClientSecret adds a client secret for the token endpoint, whose client id is the merchant's id, and returns it:
// the only time that it can be seen. ErrTwoLive: two are live.
func IssueClientSecret(p *Profile, random io.Reader, now time.Time) (secret string, err error) {
	return issue(p, &p.ClientSecrets, clientSecretPrefix, random, now, false)
}

// ReplaceClientSecret is IssueClientSecret, but where two are live it drops the older.
func ReplaceClientSecret(p *Profile, random io.Reader, now time.Time) (secret string, err error) {
	return issue(p, &p.ClientSecrets, clientSecretPrefix, random, now, true)
}

// issue adds a credential to a list of the profile. Expired ones make room.
func issue(p *Profile, list *[]Credential, prefix string, random io.Reader, now time.Time, replace bool) (string, error) {
	number := 1
	for _, c := range *list {
		number = max(number, c.Number+1)
	}
	live := slices.DeleteFunc(slices.Clone(*list), func(c Credential) bool { return !c.live(now) })
	if len(live) >= MaxLive {
		if !replace {
			return "", ErrTwoLive
		}
		live = live[len(live)-MaxLive+1:]
	}
	secret, err := newIssuedSecret(prefix, p.ID, random)
	if err != nil {
		return "", err
	}
	*list = append(live, Credential{Number: number, Hash: hashOf(secret), Created: stamp(now)})
	p.Updated = stamp(now)
	return secret, nil
}

// RevokeToken ends a long-lived token at a time: now, or later to give the merchant time to change over.
// ErrNoCredential: there is none with this number.
func RevokeToken(p *Profile, number int, at, now time.Time) error {
	return revoke(p, p.Tokens, number, at, now)
}

// RevokeClientSecret ends a client secret at a time (see RevokeToken). Access tokens that it fetched live on until they
// expire; RevokeShortTokens ends them.
func RevokeClientSecret(p *Profile, number int, at, now time.Time) error {
	return revoke(p, p.ClientSecrets, number, at, now)
}

func revoke(p *Profile, list []Credential, number int, at, now time.Time) error {
	i := slices.IndexFunc(list, func(c Credential) bool { return c.Number == number })
	if i < 0 {
		return ErrNoCredential
	}
	if list[i].live(at) {
		list[i].Expires = stamp(at)
	}
	p.Updated = stamp(now)
	return nil
}

// RevokeShortTokens ends all access tokens that the token endpoint ever issued to the merchant.
func RevokeShortTokens(p *Profile, now time.Time) {
	p.Generation++
	p.Updated = stamp(now)
}

// Suspend refuses every token of the merchant until Resume. Short-lived ones stay revoked after that.
func Suspend(p *Profile, now time.Time) {
	p.Status = StatusSuspended
	RevokeShortTokens(p, now)
}

// Resume ends a suspension.
func Resume(p *Profile, now time.Time) {
	p.Status = StatusActive
	p.Updated = stamp(now)
}

// IssueWebhookSecret adds a signing secret for the merchant's notifications, derived from a key of the webhook key ring
// (see webhook.DeriveSecret). Its version is one that no secret of the merchant ever had, or its secret would be one that
// was revoked. Store the profile before the next is issued. Where two are live it drops the older only if told;
// otherwise ErrTwoLive.
func IssueWebhookSecret(p *Profile, keyNumber int, replace bool, now time.Time) (WebhookSecret, error) {
	live := p.WebhookSecrets
	if len(live) >= MaxLive {
		if !replace {
			return WebhookSecret{}, ErrTwoLive
		}
		live = live[:MaxLive-1] // the newest stands first
	}
	for _, s := range p.WebhookSecrets {
		p.LastWebhookSecret = max(p.LastWebhookSecret, s.Version)
	}
	p.LastWebhookSecret++
	issued := WebhookSecret{Version: p.LastWebhookSecret, KeyNumber: keyNumber, Created: stamp(now)}
	p.WebhookSecrets = append([]WebhookSecret{issued}, live...)
	p.Updated = stamp(now)
	return issued, nil
}

// RevokeWebhookSecret stops signing with a secret. ErrNoCredential: there is none with this version.
func RevokeWebhookSecret(p *Profile, version int, now time.Time) error {
	left := slices.DeleteFunc(slices.Clone(p.WebhookSecrets), func(s WebhookSecret) bool { return s.Version == version })
	if len(left) == len(p.WebhookSecrets) {
		return ErrNoCredential
	}
	p.WebhookSecrets = left
	p.Updated = stamp(now)
	return nil
}

// stamp is a time as profiles keep it: UTC, whole milliseconds.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
