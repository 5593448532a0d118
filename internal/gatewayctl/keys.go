package gatewayctl

import (
	"errors"
	"fmt"
	"time"

	"mobilegateway/shared/keyring"
)

// The longest time that package settings lets the functions cache a secret (SECRET_CACHE_TTL), and that it lets a
// short-lived token live (ACCESS_TOKEN_LIFETIME).
const (
	maxSecretCache   = time.Hour
	maxTokenLifetime = 24 * time.Hour
)

type keysCommands struct {
	Add    keysAdd    `cmd:"" help:"Add a key to a ring. It signs when every function has read it."`
	List   keysList   `cmd:"" help:"List the keys of a ring, without their values."`
	Retire keysRetire `cmd:"" help:"Remove a key from its ring if nothing that it signed is still valid."`
}

type ringArgument struct {
	Ring string `arg:"" enum:"tokens,callbacks,webhooks" help:"The ring: tokens, callbacks or webhooks."`
}

// ProvideSecret reads the ring's secret for the Run methods below keys (kong's provider).
func (c ringArgument) ProvideSecret(s *session) (StoredSecret, error) {
	switch c.Ring {
	case "tokens":
		return readSecret(s, s.TokenKeySecret, "TOKEN_KEY_SECRET")
	case "callbacks":
		return readSecret(s, s.CallbackKeySecret, "CALLBACK_KEY_SECRET")
	default:
		return readSecret(s, s.WebhookKeySecret, "WEBHOOK_KEY_SECRET")
	}
}

// keyView is a key without its value.
type keyView struct {
	Ring      string    `json:"ring"`
	Number    int       `json:"number" col:"NUMBER"`
	Added     time.Time `json:"added" col:"ADDED"`
	SignsFrom time.Time `json:"signs_from" col:"SIGNS FROM"`
	Signs     bool      `json:"signs" col:"SIGNS NOW"`
}

// keyViews lists a ring. Its first key signs at once, because there is no other. The value may be empty.
func (c ringArgument) keyViews(s *session, value []byte) ([]keyView, error) {
	if len(value) == 0 {
		return nil, nil
	}
	ring, err := keyring.Parse(value)
	if err != nil {
		return nil, err
	}
	signing := ring.SigningKey(s.Now(), s.SecretCache).Number
	var views []keyView
	for number := 1; number <= keyring.MaxKeyNumber; number++ {
		key, found := ring.FindKey(number)
		if !found {
			continue
		}
		from := key.AddedAt.Add(s.SecretCache)
		if len(views) == 0 {
			from = key.AddedAt
		}
		views = append(views, keyView{c.Ring, number, key.AddedAt, from, number == signing})
	}
	return views, nil
}

type keysAdd struct{ ringArgument }

// Run adds a key and shows when it signs. The older keys stay valid for verification.
func (c *keysAdd) Run(s *session, current StoredSecret) error {
	value, err := keyring.AddKey(current.Value, s.Rand, s.Now())
	if err != nil {
		return err
	}
	views, err := c.keyViews(s, value)
	if err != nil {
		return err
	}
	newest := views[len(views)-1]
	return s.executeAndShow("add a key", "ring "+c.Ring, func() (string, error) {
		return fmt.Sprintf("key %d, signs from %s", newest.Number, formatTime(newest.SignsFrom)),
			s.stores.Secrets.Put(s, current, value)
	}, func() error {
		wait := newest.SignsFrom.Sub(newest.Added)
		fmt.Fprintf(s.Stderr, "Key %d signs in %s, when every function has read it.\n", newest.Number, wait)
		return showList(s, views)
	})
}

type keysList struct{ ringArgument }

// Run lists the ring.
func (c *keysList) Run(s *session, current StoredSecret) error {
	views, err := c.keyViews(s, current.Value)
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
func (c *keysRetire) Run(s *session, current StoredSecret) error {
	if c.Ring == "callbacks" {
		return errors.New("callback keys are never retired: operators keep callback URLs with their numbers")
	}
	value, err := keyring.RemoveKey(current.Value, c.Number)
	if err != nil {
		return err
	}
	ring, err := keyring.Parse(current.Value)
	if err != nil {
		return err
	}
	ended, _ := ring.SigningEndedAt(c.Number, maxSecretCache) // RemoveKey refuses a key without a successor
	if err := c.checkUnused(s, ended); err != nil {
		return err
	}
	views, err := c.keyViews(s, value)
	if err != nil {
		return err
	}
	return s.executeAndShow("retire a key", "ring "+c.Ring, func() (string, error) {
		detail := fmt.Sprintf("key %d, last signed before %s", c.Number, formatTime(ended))
		return detail, s.stores.Secrets.Put(s, current, value)
	}, func() error { return showList(s, views) })
}

// checkUnused refuses if something that the key signed may still be valid. signingEnded is when the last function could
// sign with it.
func (c *keysRetire) checkUnused(s *session, signingEnded time.Time) error {
	from := signingEnded
	if c.Ring == "tokens" {
		from = from.Add(maxTokenLifetime)
	}
	if s.Now().Before(from) {
		return fmt.Errorf("key %d may be retired from %s on: until then something that it signed may be valid",
			c.Number, formatTime(from))
	}
	if c.Ring == "tokens" {
		return nil
	}
	profiles, err := s.allMerchants()
	var users []string // suspended merchants included
	for _, p := range profiles {
		for _, w := range p.WebhookSecrets {
			if w.KeyNumber == c.Number {
				users = append(users, fmt.Sprintf("%s (version %d)", p.Name, w.Version))
			}
		}
	}
	if err == nil && len(users) > 0 {
		err = fmt.Errorf("the webhook secrets of %s are derived from key %d: run webhook-secret rotate, "+
			"and revoke the old version when they use the new one", joinComma(users), c.Number)
	}
	return err
}
