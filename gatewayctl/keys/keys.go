// Package keys has gatewayctl's commands for the rings of signing keys.
package keys

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
)

// The names of the rings.
const (
	Tokens    = "tokens"
	Callbacks = "callbacks"
	Webhooks  = "webhooks"
)

// RingArgument names a ring.
type RingArgument struct {
	Ring string `arg:"" enum:"tokens,callbacks,webhooks" help:"The ring: tokens, callbacks or webhooks."`
}

// ProvideRing reads the ring for the Run methods below keys (kong's provider).
func (c RingArgument) ProvideRing(s *session.Session) (ring storedRing, err error) {
	ring.name = c.Ring
	switch c.Ring {
	case Tokens:
		ring.Private, err = session.ReadSecret(s, s.TokenKeySecret, "TOKEN_KEY_SECRET")
		if err == nil {
			ring.public, err = session.ReadSecret(s, s.TokenPublicKeySecret, "TOKEN_PUBLIC_KEY_SECRET")
		}
	case Callbacks:
		ring.Private, err = session.ReadSecret(s, s.CallbackKeySecret, "CALLBACK_KEY_SECRET")
	default:
		ring.Private, err = session.ReadSecret(s, s.WebhookKeySecret, "WEBHOOK_KEY_SECRET")
	}
	return ring, err
}

// Parse reads the ring and parses it; nil if it has no key.
func (c RingArgument) Parse(s *session.Session) (*keyring.Ring, error) {
	stored, err := c.ProvideRing(s)
	if err != nil || len(stored.Private.Value) == 0 {
		return nil, err
	}
	return keyring.Parse(stored.Private.Value)
}

// storedRing is a ring as it was read. The ring of tokens has a public ring in a second secret.
type storedRing struct {
	name            string
	Private, public deployment.StoredSecret
}

// pair returns the stored values. Public is nil for a ring without a public one.
func (r storedRing) pair() keyring.Pair {
	return keyring.Pair{Private: r.Private.Value, Public: r.public.Value}
}

// addKey returns the values with one more key. Functions start to sign by its time, so call it just before put.
func (r storedRing) addKey(s *session.Session) (next keyring.Pair, err error) {
	if r.name == Tokens {
		return r.pair().AddKey(s.Rand, s.Now())
	}
	next.Private, err = keyring.AddKey(r.Private.Value, s.Rand, s.Now())
	return next, err
}

func (r storedRing) removeKey(number int) (next keyring.Pair, err error) {
	if r.name == Tokens {
		return r.pair().RemoveKey(number)
	}
	next.Private, err = keyring.RemoveKey(r.Private.Value, number)
	return next, err
}

// put stores the values, the public ring first (see keyring.Pair).
func (r storedRing) put(s *session.Session, next keyring.Pair) error {
	if r.name == Tokens && !bytes.Equal(next.Public, r.public.Value) {
		if err := s.Stores.Secrets.Put(s, r.public, next.Public); err != nil {
			return err
		}
	}
	if err := s.Stores.Secrets.Put(s, r.Private, next.Private); err != nil {
		if r.name == Tokens {
			err = fmt.Errorf("the public ring was written and the private one was not, run the command again: %w", err)
		}
		return err
	}
	return nil
}

// Views lists a ring by the value of its private secret, which may be empty.
func (r storedRing) Views(s *session.Session, value []byte) ([]View, error) {
	if len(value) == 0 {
		return nil, nil
	}
	ring, err := keyring.Parse(value)
	if err != nil {
		return nil, err
	}
	signing := ring.SigningKey(s.Now(), s.SecretCache).Number
	var views []View
	for _, key := range ring.Keys() {
		view := View{Ring: r.name, Number: key.Number, Added: key.AddedAt, Revoked: key.RevokedAt}
		if key.RevokedAt.IsZero() {
			view.SignsFrom = r.signsFrom(ring, key, s.SecretCache)
			view.Signs = key.Number == signing && !view.SignsFrom.After(s.Now())
		}
		views = append(views, view)
	}
	return views, nil
}

// signsFrom returns from when a live key signs, or signed first: later changes of the ring do not move a time that is
// past. It is when every function has read the key, or earlier if all older keys were revoked by then. Older keys that
// are not in the ring were retired, and until then live. A webhook key signs as soon as a profile names it.
func (r storedRing) signsFrom(ring *keyring.Ring, key keyring.Key, propagationTime time.Duration) time.Time {
	from, alone, revoked := key.AddedAt.Add(propagationTime), ring.SignsFrom(key, propagationTime), 0
	if r.name == Webhooks {
		alone = key.AddedAt
	}
	for _, older := range ring.Keys() {
		if older.Number < key.Number && !older.RevokedAt.IsZero() {
			revoked++
			alone = session.Latest(alone, older.RevokedAt)
		}
	}
	if revoked == key.Number-1 && alone.Before(from) {
		return alone
	}
	return from
}

// MaxSecretCache is the longest time that package settings lets the functions cache a secret (SECRET_CACHE_TTL).
const MaxSecretCache = time.Hour

// View is a key without its value.
type View struct {
	Ring      string    `json:"ring"`
	Number    int       `json:"number" col:"NUMBER"`
	Added     time.Time `json:"added" col:"ADDED"`
	SignsFrom time.Time `json:"signs_from,omitzero" col:"SIGNS FROM"`
	Signs     bool      `json:"signs" col:"SIGNS NOW"`
	Revoked   time.Time `json:"revoked,omitzero" col:"REVOKED"`
}

// revokeKey returns the values with a tombstone in place of a key, and with a new key if no other is ripe.
func (r storedRing) revokeKey(s *session.Session, number int) (next keyring.Pair, err error) {
	if r.name == Tokens {
		return r.pair().RevokeKey(number, s.Rand, s.Now(), s.SecretCache)
	}
	next, err = r.addSuccessor(s, number)
	if err == nil {
		next.Private, err = keyring.RevokeKey(next.Private, number, s.Now())
	}
	return next, err
}

// addSuccessor returns the values with a new key, if no key but number is ripe.
func (r storedRing) addSuccessor(s *session.Session, number int) (keyring.Pair, error) {
	ring, err := keyring.Parse(r.Private.Value)
	if err != nil || ring.HasOtherRipeKey(number, s.Now(), s.SecretCache) {
		return r.pair(), err
	}
	return r.addKey(s)
}

// Commands are the commands below keys.
type Commands struct {
	Add    addCommand    `cmd:"" help:"Add a key to a ring. It signs when every function has read it."`
	List   listCommand   `cmd:"" help:"List the keys of a ring, without their values."`
	Retire retireCommand `cmd:"" help:"Remove a key from its ring if nothing that it signed is still valid."`
	Revoke revokeCommand `cmd:"" help:"Revoke a key that leaked: within a minute nothing that it signed is valid."`
}

type addCommand struct{ RingArgument }

// Run adds a key and shows when it signs. The older keys stay valid for verification.
func (c *addCommand) Run(s *session.Session, current storedRing) error {
	var views []View
	var newest View
	return s.ExecuteAndShow("add a key", "ring "+c.Ring, func() (_ string, err error) {
		next, err := current.addKey(s)
		if err != nil {
			return "", err
		}
		views, err = current.Views(s, next.Private)
		if err != nil {
			return "", err
		}
		newest = views[len(views)-1]
		return fmt.Sprintf("key %d, signs from %s", newest.Number, output.FormatTime(newest.SignsFrom)),
			current.put(s, next)
	}, func() error {
		wait := newest.SignsFrom.Sub(newest.Added)
		if s.Yes {
			fmt.Fprintf(s.Stderr, "Key %d signs in %s, when every function has read it.\n", newest.Number, wait)
		}
		return session.ShowList(s, views)
	})
}

type listCommand struct{ RingArgument }

// Run lists the ring.
func (c *listCommand) Run(s *session.Session, current storedRing) error {
	views, err := current.Views(s, current.Private.Value)
	if err != nil {
		return err
	}
	return session.ShowList(s, views)
}

type retireCommand struct {
	RingArgument
	Number int `arg:"" help:"The key's number in the list."`
}

// Run removes a key from its ring, or reports what still depends on it (decision "key-rings").
func (c *retireCommand) Run(s *session.Session, current storedRing) error {
	if c.Ring == Callbacks {
		return errors.New("callback keys are never retired: operators keep callback URLs with their numbers")
	}
	next, err := current.removeKey(c.Number)
	if err != nil {
		return err
	}
	ring, err := keyring.Parse(current.Private.Value)
	if err != nil {
		return err
	}
	ended, _ := ring.SigningEndedAt(c.Number, MaxSecretCache) // removeKey refuses a key without a successor
	if err := c.checkUnused(s, ended); err != nil {
		return err
	}
	views, err := current.Views(s, next.Private)
	if err != nil {
		return err
	}
	return s.ExecuteAndShow("retire a key", "ring "+c.Ring, func() (string, error) {
		return fmt.Sprintf("key %d, last signed before %s", c.Number, output.FormatTime(ended)), current.put(s, next)
	}, func() error { return session.ShowList(s, views) })
}

// checkUnused refuses if something that the key signed may still be valid. signingEnded is when the last function could
// sign with it. Merchants with a webhook secret of the key come first: for them it does not help to wait.
func (c *retireCommand) checkUnused(s *session.Session, signingEnded time.Time) (err error) {
	from, profiles := signingEnded.Add(merchant.MaxTokenLifetime), []*merchant.Profile{}
	if c.Ring != Tokens {
		from = signingEnded
		profiles, err = s.AllMerchants()
	}
	var users []string // suspended merchants included
	for _, p := range profiles {
		for _, version := range versionsOfKey(p, c.Number) {
			users = append(users, fmt.Sprintf("%s (version %d)", p.Name, version))
		}
	}
	switch {
	case err == nil && len(users) > 0:
		return fmt.Errorf("the webhook secrets of %s are derived from key %d: run webhook-secret rotate, "+
			"and revoke the old version when they use the new one", output.JoinComma(users), c.Number)
	case err == nil && s.Now().Before(from):
		return fmt.Errorf("key %d may be retired from %s on: until then something that it signed may be valid",
			c.Number, output.FormatTime(from))
	}
	return err
}

// versionsOfKey lists the versions of a merchant's webhook secret that are derived from a key.
func versionsOfKey(p *merchant.Profile, number int) (versions []int) {
	for _, w := range p.WebhookSecrets {
		if w.KeyNumber == number {
			versions = append(versions, w.Version)
		}
	}
	return versions
}
