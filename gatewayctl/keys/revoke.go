package keys

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

type revokeCommand struct {
	RingArgument
	Number      int  `arg:"" help:"The key's number in the list."`
	Compromised bool `help:"Required: the key leaked. A key that only is old is retired."`
	AtOnce      bool `help:"Webhooks: stop signing with the key now. Servers with only the old secret refuse."`
}

// Run revokes a key (decision "key-rings"). The same write adds a key if no other is old enough to sign. That key signs
// after keyring.SigningDelay.
func (c *revokeCommand) Run(s *session.Session, current storedRing) error {
	switch {
	case !c.Compromised:
		return output.UsageError("revoke ends everything that key %d signed: give --compromised if it leaked, "+
			"else use keys retire", c.Number)
	case c.AtOnce && c.Ring != Webhooks:
		return output.UsageError("--at-once is only for the ring webhooks: the others are always revoked at once")
	case c.Ring == Webhooks:
		return c.revokeWebhooks(s, current)
	}
	if _, err := current.revokeKey(s, c.Number); err != nil {
		return err
	}
	detail := fmt.Sprintf("key %d, compromised", c.Number)
	if c.Ring == Tokens {
		fmt.Fprintf(s.Stderr, "With this change all short-lived tokens of key %d become invalid: merchants get 401 "+
			"and request new ones. Long-lived tokens stay valid.\n", c.Number)
	} else {
		costs, err := c.callbackCosts(s, current)
		if err != nil {
			return err
		}
		detail += ": " + costs
	}
	var views []View
	return s.ExecuteAndShow("revoke a key", "ring "+c.Ring, func() (_ string, err error) {
		next, err := current.revokeKey(s, c.Number)
		if err != nil {
			return "", err
		}
		views, err = current.Views(s, next.Private)
		if err != nil {
			return "", err
		}
		return detail, current.put(s, next)
	}, func() error {
		c.explainWait(s, views)
		return session.ShowList(s, views)
	})
}

// explainWait writes from when the key is refused everywhere, and what is refused until a new key signs.
func (c *revokeCommand) explainWait(s *session.Session, views []View) {
	if s.Yes {
		fmt.Fprintf(s.Stderr, "Key %d is refused everywhere from %s on.\n", c.Number,
			output.FormatTime(s.Now().Add(revocationTime)))
	}
	if !slices.ContainsFunc(views, func(v View) bool { return v.Signs }) {
		refused := map[string]string{Tokens: "/token", Callbacks: "new payments and SMS"}[c.Ring]
		fmt.Fprintf(s.Stderr, "The new key does not sign yet: until SIGNS FROM there is 503 for %s.\n", refused)
	}
}

// revocationTime is the longest time until every function refuses a revoked key, if it can read its secret.
const revocationTime = time.Minute

// smsReceiptDays is how many days of SMS can still get a receipt: the default retention of SMS.
const smsReceiptDays = 90

// callbackCosts shows what a revoked callback key costs, before anything is changed: the payments that end by a lookup,
// and what is lost. Attention lists what is lost from then on.
func (c *revokeCommand) callbackCosts(s *session.Session, current storedRing) (string, error) {
	ring, err := keyring.Parse(current.Private.Value)
	if err != nil {
		return "", err
	}
	merchants, err := s.AllMerchants()
	if err != nil {
		return "", err
	}
	byLookup, lost := 0, []*ledger.Entry{}
	for e, err := range entries.Open(s, merchants, s.Now().Add(-smsReceiptDays*session.Day)) {
		switch {
		case err != nil:
			return "", err
		case !callback.MayHaveSigned(ring, c.Number, e, s.SecretCache) || !entries.AwaitsCallback(e):
		case entries.ComesByLookup(e):
			byLookup++
		default:
			lost = append(lost, e)
		}
	}
	for _, e := range lost {
		fmt.Fprintf(s.Stderr, "Lost: %s of %s, operator %s, since %s\n", e.Key, e.Merchant.Name, e.Route.Operator,
			output.FormatTime(e.ReservedAt))
	}
	costs := fmt.Sprintf("%s by lookup, %s lost", output.Plural(byLookup, "result"), output.Plural(len(lost), "result"))
	fmt.Fprintf(s.Stderr, "Operators' callbacks to addresses of key %d get 404. This costs: %s. "+
		"gatewayctl attention lists what is lost.\n", c.Number, costs)
	return costs, nil
}

// InformView is a merchant that must be informed that its webhook secret leaked.
type InformView struct {
	Merchant string `json:"merchant" col:"MERCHANT"`
	Version  int    `json:"version" col:"NEW VERSION"`
	Leaked   []int  `json:"leaked_versions" col:"LEAKED VERSIONS"`
	NotifURL string `json:"notif_url" col:"NOTIF_URL"`
}

// revokeWebhooks rotates the webhook secret of every merchant whose secret is derived from the key. Both secrets sign
// until --at-once ends the leaked ones, and the key with them. Each step can be repeated: a merchant whose newest
// secret is of another key keeps it.
func (c *revokeCommand) revokeWebhooks(s *session.Session, current storedRing) error {
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
	views := []InformView{}
	for _, p := range affected {
		view := InformView{Merchant: p.Name, Leaked: versionsOfKey(p, c.Number), NotifURL: p.NotifURL}
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
	fmt.Fprintf(s.Stderr, "With this change: %s to inform. %s", output.Plural(len(affected), "merchant"), remains)
	// The next run of an interrupted change no longer finds the merchants whose leaked secret has ended.
	s.Plan = "inform: " + output.JoinComma(output.MapAll(views, func(v InformView) string { return v.Merchant }))
	err = s.Execute("revoke a key", "ring "+c.Ring, func() (string, error) {
		done := fmt.Sprintf("key %d, compromised: new secrets of key %d for %s, the leaked ones end: %v; %s",
			c.Number, successor, output.Plural(len(affected), "merchant"), c.AtOnce, s.Plan)
		return done, c.storeWebhooks(s, current, next, affected)
	})
	return errors.Join(err, session.ShowList(s, views))
}

// affectedMerchants returns the merchants with a secret of the key, suspended ones included.
func (c *revokeCommand) affectedMerchants(s *session.Session) ([]*merchant.Profile, error) {
	all, err := s.AllMerchants()
	var affected []*merchant.Profile
	for _, p := range all {
		if len(versionsOfKey(p, c.Number)) > 0 {
			affected = append(affected, p.Clone())
		}
	}
	return affected, err
}

// rotate adds a new secret to a profile, unless its newest one is of another key. It does not store the profile.
func (c *revokeCommand) rotate(s *session.Session, p *merchant.Profile, successor int) error {
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
func (c *revokeCommand) storeWebhooks(
	s *session.Session, current storedRing, next keyring.Pair, affected []*merchant.Profile,
) error {
	if string(next.Private) != string(current.Private.Value) {
		if err := current.put(s, next); err != nil {
			return err
		}
	}
	for _, p := range affected {
		if err := s.Stores.Merchants.Update(s, p); err != nil {
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
	stored.Private.Value, err = keyring.RevokeKey(stored.Private.Value, c.Number, s.Now())
	if err != nil {
		return err
	}
	return s.Stores.Secrets.Put(s, stored.Private, stored.Private.Value)
}
