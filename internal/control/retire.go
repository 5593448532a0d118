package control

import (
	"fmt"
	"strings"
	"time"

	"mobilegateway/shared/keyring"
)

// The longest that the functions may be told to keep a secret (SECRET_CACHE), and to let a short-lived token live
// (ACCESS_TOKEN_LIFETIME): package settings refuses more.
const (
	longestSecretCache = time.Hour
	longestToken       = 24 * time.Hour
)

type keysRetire struct {
	ringName
	Number int `arg:"" help:"The key's number in the list."`
}

// Run takes a key out of its ring where nothing lives that it signed (decision "key-rings"), or says what does.
func (c *keysRetire) Run(s *session) error {
	if c.Ring == "callbacks" {
		return fmt.Errorf("callback keys are never retired: the addresses that operators were given carry their numbers, and a payment is kept for ever")
	}
	held, err := c.held(s)
	if err != nil {
		return err
	}
	value, err := keyring.Retire(held.Value, c.Number)
	if err != nil {
		return err
	}
	ring, err := keyring.Parse(held.Value)
	if err != nil {
		return err
	}
	stopped, _ := ring.StoppedSigning(c.Number, longestSecretCache) // it has a later key, or it could not be retired
	if err := c.unused(s, stopped); err != nil {
		return err
	}
	left, err := keyring.Parse(value)
	if err != nil {
		return err
	}
	err = s.hand.act(Act{"retire a key", "ring " + c.Ring}, func() (string, error) {
		return fmt.Sprintf("key %d, which nobody could sign with since %s", c.Number, moment(stopped)), s.hand.putSecret(held, value)
	})
	if err != nil {
		return err
	}
	return showKeys(s, keysOf(c.Ring, left, s.Now(), s.SecretCache))
}

// unused refuses while something may live that the key signed. stopped is when the last function could sign with it.
func (c *keysRetire) unused(s *session, stopped time.Time) error {
	from := stopped
	if c.Ring == "tokens" {
		from = stopped.Add(longestToken)
	}
	if s.Now().Before(from) {
		return fmt.Errorf("key %d may be retired from %s on: until then something may live that it signed", c.Number, moment(from))
	}
	if c.Ring == "tokens" {
		return nil
	}
	users, err := c.users(s)
	if err == nil && len(users) > 0 {
		err = fmt.Errorf("the webhook secrets of %s are derived from key %d: webhook-secret rotate, and revoke the old version when they have changed over",
			strings.Join(users, ", "), c.Number)
	}
	return err
}

// users names the merchants with a webhook secret of the key, suspended ones included.
func (c *keysRetire) users(s *session) ([]string, error) {
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
