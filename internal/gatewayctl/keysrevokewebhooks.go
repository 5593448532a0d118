package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
)

// informView is a merchant that must be informed that its webhook secret leaked.
type informView struct {
	Merchant string `json:"merchant" col:"MERCHANT"`
	Version  int    `json:"version" col:"NEW VERSION"`
	Leaked   []int  `json:"leaked_versions" col:"LEAKED VERSIONS"`
	NotifURL string `json:"notif_url" col:"NOTIF_URL"`
}

// revokeWebhooks rotates the webhook secret of every merchant whose secret is derived from the key. Both secrets sign
// until --at-once ends the leaked ones, and the key with them. Each step can be repeated: a merchant whose newest
// secret is of another key keeps it.
func (c *keysRevoke) revokeWebhooks(s *session, current storedRing) error {
	next, err := current.addSuccessor(s, c.Number)
	if err != nil {
		return err
	}
	successor, err := c.successor(s, next)
	if err != nil {
		return err
	}
	affected, err := c.affectedMerchants(s)
	if err != nil {
		return err
	}
	views := []informView{}
	for _, p := range affected {
		view := informView{Merchant: p.Name, NotifURL: p.NotifURL}
		for _, w := range p.WebhookSecrets {
			if w.KeyNumber == c.Number {
				view.Leaked = append(view.Leaked, w.Version)
			}
		}
		if err := c.rotate(s, p, successor); err != nil {
			return err
		}
		view.Version = p.WebhookSecrets[0].Version
		views = append(views, view)
	}
	c.explainWebhooks(s, len(affected))
	// The next run of an interrupted change no longer finds the merchants whose leaked secret has ended.
	s.plan = "inform: " + joinComma(mapAll(views, func(v informView) string { return v.Merchant }))
	err = s.execute("revoke a key", "ring "+c.Ring, func() (string, error) {
		done := fmt.Sprintf("key %d, compromised: new secrets of key %d for %s, the leaked ones end: %v; %s",
			c.Number, successor, plural(len(affected), "merchant"), c.AtOnce, s.plan)
		return done, c.storeWebhooks(s, current, next, affected)
	})
	return errors.Join(err, showList(s, views))
}

// successor returns the number of the key that new secrets are derived from.
func (c *keysRevoke) successor(s *session, next keyring.Pair) (int, error) {
	without, err := keyring.RevokeKey(next.Private, c.Number, s.Now())
	if err != nil {
		return 0, err
	}
	ring, err := keyring.Parse(without)
	if err != nil {
		return 0, err
	}
	return ring.SigningKey(s.Now(), s.SecretCache).Number, nil
}

// affectedMerchants returns the merchants with a secret of the key, suspended ones included.
func (c *keysRevoke) affectedMerchants(s *session) ([]*merchant.Profile, error) {
	all, err := s.allMerchants()
	var affected []*merchant.Profile
	for _, p := range all {
		if slices.ContainsFunc(p.WebhookSecrets, c.isLeaked) {
			affected = append(affected, p.Clone())
		}
	}
	return affected, err
}

func (c *keysRevoke) isLeaked(w merchant.WebhookSecret) bool { return w.KeyNumber == c.Number }

// rotate adds a new secret to a profile, unless its newest one is of another key. It does not store the profile.
func (c *keysRevoke) rotate(s *session, p *merchant.Profile, successor int) error {
	if c.isLeaked(p.WebhookSecrets[0]) {
		if _, err := merchant.IssueWebhookSecret(p, successor, true, s.Now()); err != nil {
			return err
		}
	}
	if !c.AtOnce {
		return nil
	}
	for _, w := range slices.DeleteFunc(slices.Clone(p.WebhookSecrets), func(w merchant.WebhookSecret) bool {
		return !c.isLeaked(w)
	}) {
		if err := merchant.RevokeWebhookSecret(p, w.Version, s.Now()); err != nil {
			return err
		}
	}
	return nil
}

// storeWebhooks stores the new key before the profiles that use it, and revokes the leaked key after the last profile
// stopped using it. If it dies in between, the same command continues.
func (c *keysRevoke) storeWebhooks(
	s *session, current storedRing, next keyring.Pair, affected []*merchant.Profile,
) error {
	if string(next.Private) != string(current.private.Value) {
		if err := current.put(s, next); err != nil {
			return err
		}
	}
	for _, p := range affected {
		if err := s.stores.Merchants.Update(s, p); err != nil {
			return fmt.Errorf("merchant %s, run the command again: %w", p.Name, err)
		}
	}
	if !c.AtOnce || !s.Yes {
		return nil
	}
	if left, err := c.affectedMerchants(s); err != nil || len(left) > 0 {
		return cmp.Or(err, errors.New("a merchant got a secret of the leaked key meanwhile: run the command again"))
	}
	stored, err := c.ProvideRing(s) // the revision has changed if a key was added
	if err != nil {
		return err
	}
	stored.private.Value, err = keyring.RevokeKey(stored.private.Value, c.Number, s.Now())
	if err != nil {
		return err
	}
	return s.stores.Secrets.Put(s, stored.private, stored.private.Value)
}

// explainWebhooks writes what the change costs and what remains to do.
func (c *keysRevoke) explainWebhooks(s *session, merchants int) {
	text := "Notifications carry both signatures. Send each merchant its new secret (webhook-secret show). " +
		"When they use it, or if you cannot wait, repeat the command with --at-once.\n"
	if c.AtOnce {
		text = "A server that has only the old secret refuses every notification from now on: they are retried for " +
			"about 76 hours. Merchants must get their new secret (webhook-secret show).\n"
	}
	fmt.Fprintf(s.Stderr, "%s to inform. %s", plural(merchants, "merchant"), text)
}
