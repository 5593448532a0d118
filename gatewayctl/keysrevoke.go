package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/shared/callback"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

type keysRevoke struct {
	ringArgument
	Number      int  `arg:"" help:"The key's number in the list."`
	Compromised bool `help:"Required: the key leaked. A key that only is old is retired."`
	AtOnce      bool `help:"Webhooks: stop signing with the key now. Servers with only the old secret refuse."`
}

// Run revokes a key (decision "key-rings"). The same write adds a key if no other is old enough to sign. That key signs
// after keyring.SigningDelay.
func (c *keysRevoke) Run(s *session, current storedRing) error {
	switch {
	case !c.Compromised:
		return usageError("revoke ends everything that key %d signed: give --compromised if it leaked, "+
			"else use keys retire", c.Number)
	case c.AtOnce && c.Ring != ringWebhooks:
		return usageError("--at-once is only for the ring webhooks: the others are always revoked at once")
	case c.Ring == ringWebhooks:
		return c.revokeWebhooks(s, current)
	}
	if _, err := current.revokeKey(s, c.Number); err != nil {
		return err
	}
	detail := fmt.Sprintf("key %d, compromised", c.Number)
	if c.Ring == ringTokens {
		fmt.Fprintf(s.Stderr, "With this change all short-lived tokens of key %d become invalid: merchants get 401 "+
			"and request new ones. Long-lived tokens stay valid.\n", c.Number)
	} else {
		costs, err := c.callbackCosts(s, current)
		if err != nil {
			return err
		}
		detail += ": " + costs
	}
	var views []keyView
	return s.executeAndShow("revoke a key", "ring "+c.Ring, func() (_ string, err error) {
		next, err := current.revokeKey(s, c.Number)
		if err != nil {
			return "", err
		}
		if views, err = current.views(s, next.Private); err != nil {
			return "", err
		}
		return detail, current.put(s, next)
	}, func() error {
		c.explainWait(s, views)
		return showList(s, views)
	})
}

// explainWait writes from when the key is refused everywhere, and what is refused until a new key signs.
func (c *keysRevoke) explainWait(s *session, views []keyView) {
	if s.Yes {
		fmt.Fprintf(s.Stderr, "Key %d is refused everywhere from %s on.\n", c.Number,
			formatTime(s.Now().Add(revocationTime)))
	}
	if !slices.ContainsFunc(views, func(v keyView) bool { return v.Signs }) {
		refused := map[string]string{ringTokens: "/token", ringCallbacks: "new payments and SMS"}[c.Ring]
		fmt.Fprintf(s.Stderr, "The new key does not sign yet: until SIGNS FROM there is 503 for %s.\n", refused)
	}
}

// revocationTime is the longest time until every function refuses a revoked key, if it can read its secret.
const revocationTime = time.Minute

// revokeKey returns the values with a tombstone in place of a key, and with a new key if no other is ripe.
func (r storedRing) revokeKey(s *session, number int) (next keyring.Pair, err error) {
	if r.name == ringTokens {
		return r.pair().RevokeKey(number, s.Rand, s.Now(), s.SecretCache)
	}
	if next, err = r.addSuccessor(s, number); err == nil {
		next.Private, err = keyring.RevokeKey(next.Private, number, s.Now())
	}
	return next, err
}

// addSuccessor returns the values with a new key, if no key but number is ripe.
func (r storedRing) addSuccessor(s *session, number int) (keyring.Pair, error) {
	ring, err := keyring.Parse(r.private.Value)
	if err != nil || ring.HasOtherRipeKey(number, s.Now(), s.SecretCache) {
		return r.pair(), err
	}
	return r.addKey(s)
}

// smsReceiptDays is how many days of SMS can still get a receipt: the default retention of SMS.
const smsReceiptDays = 90

// callbackCosts shows what a revoked callback key costs, before anything is changed: the payments that end by a lookup,
// and what is lost. Attention lists what is lost from then on.
func (c *keysRevoke) callbackCosts(s *session, current storedRing) (string, error) {
	ring, err := keyring.Parse(current.private.Value)
	if err != nil {
		return "", err
	}
	merchants, err := s.allMerchants()
	if err != nil {
		return "", err
	}
	byLookup, lost := 0, []*ledger.Entry{}
	for e, err := range openEntries(s, merchants, s.Now().Add(-smsReceiptDays*day)) {
		switch {
		case err != nil:
			return "", err
		case !callback.MayHaveSigned(ring, c.Number, e, s.SecretCache) || !awaitsCallback(e):
		case comesByLookup(e):
			byLookup++
		default:
			lost = append(lost, e)
		}
	}
	for _, e := range lost {
		fmt.Fprintf(s.Stderr, "Lost: %s of %s, operator %s, since %s\n", e.Key, e.Merchant, e.Operator,
			formatTime(e.ReservedAt))
	}
	costs := fmt.Sprintf("%s by lookup, %s lost", plural(byLookup, "result"), plural(len(lost), "result"))
	fmt.Fprintf(s.Stderr, "Operators' callbacks to addresses of key %d get 404. This costs: %s. "+
		"gatewayctl attention lists what is lost.\n", c.Number, costs)
	return costs, nil
}

// awaitsCallback reports whether the operator may still report a status of an entry.
func awaitsCallback(e *ledger.Entry) bool {
	return e.Kind != ledger.Charge && !e.StatusFinal() && !e.NotApplied()
}

// comesByLookup reports whether a lookup ends an entry without a callback.
func comesByLookup(e *ledger.Entry) bool {
	return e.Kind == ledger.Payment && operator.CapabilitiesOf(e).HasStatusLookup
}

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
	without, err := keyring.RevokeKey(next.Private, c.Number, s.Now())
	if err != nil {
		return err
	}
	ring, err := keyring.Parse(without)
	if err != nil {
		return err
	}
	successor := ring.SigningKey(s.Now(), s.SecretCache).Number // new secrets are derived from it
	affected, err := c.affectedMerchants(s)
	if err != nil {
		return err
	}
	views := []informView{}
	for _, p := range affected {
		view := informView{Merchant: p.Name, Leaked: versionsOfKey(p, c.Number), NotifURL: p.NotifURL}
		if err := c.rotate(s, p, successor); err != nil {
			return err
		}
		view.Version = p.WebhookSecrets[0].Version
		views = append(views, view)
	}
	remains := "Notifications carry both signatures. Send each merchant its new secret (webhook-secret show). " +
		"When they use it, or if you cannot wait, repeat the command with --at-once.\n"
	if c.AtOnce {
		remains = "A server that has only the old secret refuses every notification from now on: they are retried " +
			"for about 76 hours. Merchants must get their new secret (webhook-secret show).\n"
	}
	fmt.Fprintf(s.Stderr, "With this change: %s to inform. %s", plural(len(affected), "merchant"), remains)
	// The next run of an interrupted change no longer finds the merchants whose leaked secret has ended.
	s.plan = "inform: " + joinComma(mapAll(views, func(v informView) string { return v.Merchant }))
	err = s.execute("revoke a key", "ring "+c.Ring, func() (string, error) {
		done := fmt.Sprintf("key %d, compromised: new secrets of key %d for %s, the leaked ones end: %v; %s",
			c.Number, successor, plural(len(affected), "merchant"), c.AtOnce, s.plan)
		return done, c.storeWebhooks(s, current, next, affected)
	})
	return errors.Join(err, showList(s, views))
}

// affectedMerchants returns the merchants with a secret of the key, suspended ones included.
func (c *keysRevoke) affectedMerchants(s *session) ([]*merchant.Profile, error) {
	all, err := s.allMerchants()
	var affected []*merchant.Profile
	for _, p := range all {
		if len(versionsOfKey(p, c.Number)) > 0 {
			affected = append(affected, p.Clone())
		}
	}
	return affected, err
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

// rotate adds a new secret to a profile, unless its newest one is of another key. It does not store the profile.
func (c *keysRevoke) rotate(s *session, p *merchant.Profile, successor int) error {
	if p.WebhookSecrets[0].KeyNumber == c.Number {
		if _, err := merchant.IssueWebhookSecret(p, successor, true, s.Now()); err != nil {
			return err
		}
	}
	if !c.AtOnce {
		return nil
	}
	for _, version := range versionsOfKey(p, c.Number) {
		if err := merchant.RevokeWebhookSecret(p, version, s.Now()); err != nil {
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
