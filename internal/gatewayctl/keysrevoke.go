package gatewayctl

import (
	"fmt"
	"time"

	"mobilegateway/shared/callback"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

type keysRevoke struct {
	ringArgument
	Number      int  `arg:"" help:"The key's number in the list."`
	Compromised bool `help:"Required: the key leaked. A key that only is old is retired."`
	AtOnce      bool `help:"Webhooks: stop signing with the key now. Servers with only the old secret refuse."`
}

// Run revokes a key (decision "key-rings"). The same write adds a key if no other is old enough to sign.
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
	next, err := current.revokeKey(s, c.Number)
	if err != nil {
		return err
	}
	detail := fmt.Sprintf("key %d, compromised", c.Number)
	if c.Ring == ringTokens {
		fmt.Fprintf(s.Stderr, "All short-lived tokens of key %d become invalid: merchants get 401 and request "+
			"new ones. Long-lived tokens stay valid.\n", c.Number)
	} else {
		costs, err := c.callbackCosts(s, current)
		if err != nil {
			return err
		}
		detail += ": " + costs
	}
	views, err := current.views(s, next.Private)
	if err != nil {
		return err
	}
	return s.executeAndShow("revoke a key", "ring "+c.Ring, func() (string, error) {
		return detail, current.put(s, next)
	}, func() error {
		if s.Yes {
			fmt.Fprintf(s.Stderr, "Key %d is refused everywhere from %s on.\n", c.Number,
				formatTime(s.Now().Add(revocationTime)))
		}
		return showList(s, views)
	})
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
	for e, err := range s.openEntries(merchants, s.Now().Add(-smsReceiptDays*day)) {
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
