package simulate

import (
	"bytes"
	"slices"
	"strings"

	"mobilegateway/proof/simulate/outside"
)

// addSecrets remembers texts that no log line and no body of another party may contain (invariant 5).
func (c *checker) addSecrets(texts ...string) {
	for _, text := range texts {
		c.secrets = append(c.secrets, []byte(text))
	}
}

// addNumber remembers a complete telephone number that no log line may contain.
func (c *checker) addNumber(number string) {
	digits := []byte(strings.TrimPrefix(number, "+"))
	isKnown := slices.ContainsFunc(c.numbers, func(known []byte) bool { return bytes.Equal(known, digits) })
	if len(digits) > 0 && !isKnown {
		c.numbers = append(c.numbers, digits)
	}
}

// checkBody checks a body that a merchant gets: it has no credential, and nothing of another merchant (invariant 5).
func (c *checker) checkBody(s *shop, body []byte) {
	for _, secret := range c.secrets {
		if bytes.Contains(body, secret) {
			c.fail(5, "%s gets %q: %s", s.Name, secret, body)
		}
	}
	for _, other := range c.world.shops {
		if other.Name != s.Name && bytes.Contains(body, []byte(other.Name)) {
			c.fail(5, "%s gets a text of %s: %s", s.Name, other.Name, body)
		}
	}
}

// checkOperatorBody checks a body that an operator gets: it has no credential of a merchant (invariant 5).
func (c *checker) checkOperatorBody(o *outside.Operator, body []byte) {
	for _, s := range c.world.shops {
		for _, secret := range []string{s.token, s.secret, c.world.changed[s.Name].token} {
			if secret != "" && bytes.Contains(body, []byte(secret)) {
				c.fail(5, "the operator %s gets a credential of %s", o.Name, s.Name)
			}
		}
	}
}

// otherContent reports a call under a key whose first call had another content (invariant 3). The key of an expired SMS
// may come again.
func (c *checker) otherContent(kind, key string) {
	if kind != outside.KindSMS || c.world.smsRetention == 0 {
		c.fail(3, "%s %s was sent with two different bodies", kind, key)
	}
}
