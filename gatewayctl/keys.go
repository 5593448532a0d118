package gatewayctl

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
)

// maxSecretCache is the longest time that package settings lets the functions cache a secret (SECRET_CACHE_TTL).
const maxSecretCache = time.Hour

type keysCommands struct {
	Add    keysAdd    `cmd:"" help:"Add a key to a ring. It signs when every function has read it."`
	List   keysList   `cmd:"" help:"List the keys of a ring, without their values."`
	Retire keysRetire `cmd:"" help:"Remove a key from its ring if nothing that it signed is still valid."`
	Revoke keysRevoke `cmd:"" help:"Revoke a key that leaked: within a minute nothing that it signed is valid."`
}

const (
	ringTokens    = "tokens"
	ringCallbacks = "callbacks"
	ringWebhooks  = "webhooks"
)

type ringArgument struct {
	Ring string `arg:"" enum:"tokens,callbacks,webhooks" help:"The ring: tokens, callbacks or webhooks."`
}

// storedRing is a ring as it was read. The ring of tokens has a public ring in a second secret.
type storedRing struct {
	name            string
	private, public StoredSecret
}

// ProvideRing reads the ring for the Run methods below keys (kong's provider).
func (c ringArgument) ProvideRing(s *session) (ring storedRing, err error) {
	ring.name = c.Ring
	switch c.Ring {
	case ringTokens:
		if ring.private, err = readSecret(s, s.TokenKeySecret, "TOKEN_KEY_SECRET"); err == nil {
			ring.public, err = readSecret(s, s.TokenPublicKeySecret, "TOKEN_PUBLIC_KEY_SECRET")
		}
	case ringCallbacks:
		ring.private, err = readSecret(s, s.CallbackKeySecret, "CALLBACK_KEY_SECRET")
	default:
		ring.private, err = readSecret(s, s.WebhookKeySecret, "WEBHOOK_KEY_SECRET")
	}
	return ring, err
}

// parse reads the ring and parses it; nil if it has no key.
func (c ringArgument) parse(s *session) (*keyring.Ring, error) {
	stored, err := c.ProvideRing(s)
	if err != nil || len(stored.private.Value) == 0 {
		return nil, err
	}
	return keyring.Parse(stored.private.Value)
}

// pair returns the stored values. Public is nil for a ring without a public one.
func (r storedRing) pair() keyring.Pair {
	return keyring.Pair{Private: r.private.Value, Public: r.public.Value}
}

// addKey returns the values with one more key. Functions start to sign by its time, so call it just before put.
func (r storedRing) addKey(s *session) (next keyring.Pair, err error) {
	if r.name == ringTokens {
		return r.pair().AddKey(s.Rand, s.Now())
	}
	next.Private, err = keyring.AddKey(r.private.Value, s.Rand, s.Now())
	return next, err
}

func (r storedRing) removeKey(number int) (next keyring.Pair, err error) {
	if r.name == ringTokens {
		return r.pair().RemoveKey(number)
	}
	next.Private, err = keyring.RemoveKey(r.private.Value, number)
	return next, err
}

// put stores the values, the public ring first (see keyring.Pair).
func (r storedRing) put(s *session, next keyring.Pair) error {
	if r.name == ringTokens && !bytes.Equal(next.Public, r.public.Value) {
		if err := s.stores.Secrets.Put(s, r.public, next.Public); err != nil {
			return err
		}
	}
	if err := s.stores.Secrets.Put(s, r.private, next.Private); err != nil {
		if r.name == ringTokens {
			err = fmt.Errorf("the public ring was written and the private one was not, run the command again: %w", err)
		}
		return err
	}
	return nil
}

// keyView is a key without its value.
type keyView struct {
	Ring      string    `json:"ring"`
	Number    int       `json:"number" col:"NUMBER"`
	Added     time.Time `json:"added" col:"ADDED"`
	SignsFrom time.Time `json:"signs_from,omitzero" col:"SIGNS FROM"`
	Signs     bool      `json:"signs" col:"SIGNS NOW"`
	Revoked   time.Time `json:"revoked,omitzero" col:"REVOKED"`
}

// views lists a ring by the value of its private secret, which may be empty. A webhook key signs as soon as a profile
// names it, so that the first live one has no delay.
func (r storedRing) views(s *session, value []byte) ([]keyView, error) {
	if len(value) == 0 {
		return nil, nil
	}
	ring, err := keyring.Parse(value)
	if err != nil {
		return nil, err
	}
	signing := ring.SigningKey(s.Now(), s.SecretCache).Number
	var views []keyView
	for _, key := range ring.Keys() {
		view := keyView{Ring: r.name, Number: key.Number, Added: key.AddedAt, Revoked: key.RevokedAt}
		if key.RevokedAt.IsZero() {
			view.SignsFrom = ring.SignsFrom(key, s.SecretCache)
			if r.name == ringWebhooks && key.Number == signing {
				view.SignsFrom = key.AddedAt
			}
			view.Signs = key.Number == signing && !view.SignsFrom.After(s.Now())
		}
		views = append(views, view)
	}
	return views, nil
}

type keysAdd struct{ ringArgument }

// Run adds a key and shows when it signs. The older keys stay valid for verification.
func (c *keysAdd) Run(s *session, current storedRing) error {
	var views []keyView
	var newest keyView
	return s.executeAndShow("add a key", "ring "+c.Ring, func() (_ string, err error) {
		next, err := current.addKey(s)
		if err != nil {
			return "", err
		}
		if views, err = current.views(s, next.Private); err != nil {
			return "", err
		}
		newest = views[len(views)-1]
		return fmt.Sprintf("key %d, signs from %s", newest.Number, formatTime(newest.SignsFrom)), current.put(s, next)
	}, func() error {
		wait := newest.SignsFrom.Sub(newest.Added)
		if s.Yes {
			fmt.Fprintf(s.Stderr, "Key %d signs in %s, when every function has read it.\n", newest.Number, wait)
		}
		return showList(s, views)
	})
}

type keysList struct{ ringArgument }

// Run lists the ring.
func (c *keysList) Run(s *session, current storedRing) error {
	views, err := current.views(s, current.private.Value)
	if err != nil {
		return err
	}
	return showList(s, views)
}

type keysRetire struct {
	ringArgument
	Number int `arg:"" help:"The key's number in the list."`
}

// Run removes a key from its ring, or reports what still depends on it (decision "key-rings").
func (c *keysRetire) Run(s *session, current storedRing) error {
	if c.Ring == ringCallbacks {
		return errors.New("callback keys are never retired: operators keep callback URLs with their numbers")
	}
	next, err := current.removeKey(c.Number)
	if err != nil {
		return err
	}
	ring, err := keyring.Parse(current.private.Value)
	if err != nil {
		return err
	}
	ended, _ := ring.SigningEndedAt(c.Number, maxSecretCache) // removeKey refuses a key without a successor
	if err := c.checkUnused(s, ended); err != nil {
		return err
	}
	views, err := current.views(s, next.Private)
	if err != nil {
		return err
	}
	return s.executeAndShow("retire a key", "ring "+c.Ring, func() (string, error) {
		return fmt.Sprintf("key %d, last signed before %s", c.Number, formatTime(ended)), current.put(s, next)
	}, func() error { return showList(s, views) })
}

// checkUnused refuses if something that the key signed may still be valid. signingEnded is when the last function could
// sign with it.
func (c *keysRetire) checkUnused(s *session, signingEnded time.Time) error {
	from := signingEnded
	if c.Ring == ringTokens {
		from = from.Add(merchant.MaxTokenLifetime)
	}
	if s.Now().Before(from) {
		return fmt.Errorf("key %d may be retired from %s on: until then something that it signed may be valid",
			c.Number, formatTime(from))
	}
	if c.Ring == ringTokens {
		return nil
	}
	profiles, err := s.allMerchants()
	var users []string // suspended merchants included
	for _, p := range profiles {
		for _, version := range versionsOfKey(p, c.Number) {
			users = append(users, fmt.Sprintf("%s (version %d)", p.Name, version))
		}
	}
	if err == nil && len(users) > 0 {
		err = fmt.Errorf("the webhook secrets of %s are derived from key %d: run webhook-secret rotate, "+
			"and revoke the old version when they use the new one", joinComma(users), c.Number)
	}
	return err
}
