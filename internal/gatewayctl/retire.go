package gatewayctl

import (
	"fmt"
	"strings"
	"time"

	"mobilegateway/shared/keyring"
)

// The longest that the functions may be told to keep a secret (SECRET_CACHE_TTL), and to let a short-lived token live
// (ACCESS_TOKEN_LIFETIME): package settings refuses more.
const (
	maxSecretCache   = time.Hour
	maxTokenLifetime = 24 * time.Hour
)

type keysRetire struct {
	ringArgument
	Number int `arg:"" help:"The key's number in the list."`
}

// Run takes a key out of its ring where nothing lives that it signed (decision "key-rings"), or says what does.
func (c *keysRetire) Run(s *session) error {
	if c.Ring == "callbacks" {
		return fmt.Errorf("callback keys are never retired: the addresses that operators were given carry their numbers, and a payment is kept for ever")
	}
	current, err := c.readSecret(s)
	if err != nil {
		return err
	}
	value, err := keyring.RemoveKey(current.Value, c.Number)
	if err != nil {
		return err
	}
	ring, err := keyring.Parse(current.Value)
	if err != nil {
		return err
	}
	stopped, _ := ring.SigningEndedAt(c.Number, maxSecretCache) // it has a later key, or it could not be retired
	if err := c.checkUnused(s, stopped); err != nil {
		return err
	}
	left, err := keyring.Parse(value)
	if err != nil {
		return err
	}
	err = s.changes.execute(Action{"retire a key", "ring " + c.Ring}, func() (string, error) {
		return fmt.Sprintf("key %d, which nobody could sign with since %s", c.Number, formatTime(stopped)), s.changes.putSecret(current, value)
	})
	if err != nil {
		return err
	}
	return showKeys(s, keyViews(c.Ring, left, s.Now(), s.SecretCache))
}

// checkUnused refuses while something may live that the key signed. stopped is when the last function could sign with it.
func (c *keysRetire) checkUnused(s *session, stopped time.Time) error {
	from := stopped
	if c.Ring == "tokens" {
		from = stopped.Add(maxTokenLifetime)
	}
	if s.Now().Before(from) {
		return fmt.Errorf("key %d may be retired from %s on: until then something may live that it signed", c.Number, formatTime(from))
	}
	if c.Ring == "tokens" {
		return nil
	}
	users, err := c.merchantsUsingKey(s)
	if err == nil && len(users) > 0 {
		err = fmt.Errorf("the webhook secrets of %s are derived from key %d: webhook-secret rotate, and revoke the old version when they have changed over",
			strings.Join(users, ", "), c.Number)
	}
	return err
}

// merchantsUsingKey names the merchants with a webhook secret of the key, suspended ones included.
func (c *keysRetire) merchantsUsingKey(s *session) ([]string, error) {
	ids, err := s.stores.Merchants.IDs(s)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range ids {
		p, err := s.stores.Merchants.Profile(s, id)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		for _, w := range p.WebhookSecrets {
			if w.KeyNumber == c.Number {
				names = append(names, fmt.Sprintf("%s (version %d)", p.Name, w.Version))
			}
		}
	}
	return names, nil
}
