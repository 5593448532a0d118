package check

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/engineers"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
)

const confidentiality invariant = "5: No secret, token, OTP or MSISDN is in a log line or in a foreign body. No " +
	"connection to a denied address. A forged callback gets no 2xx. Another merchant reads nothing. An expired or " +
	"revoked token, a suspended merchant and requests over a rate are refused after 100 seconds"

// security checks that no party gets what belongs to another one.
type security struct {
	*base
	secrets [][]byte // texts that no log line may contain, and no body of another party
	numbers [][]byte // telephone numbers, which no log line may contain
	limited map[string]*second
}

// second is a second in which a merchant makes requests.
type second struct {
	from     time.Time
	requests int
}

// Confide remembers texts that no log line and no body of another party may contain.
func (c *security) Confide(texts ...string) {
	for _, text := range texts {
		c.secrets = append(c.secrets, []byte(text))
	}
}

// ConfideNumber remembers a complete telephone number that no log line may contain.
func (c *security) ConfideNumber(number string) {
	digits := []byte(strings.TrimPrefix(number, "+"))
	isKnown := slices.ContainsFunc(c.numbers, func(known []byte) bool { return bytes.Equal(known, digits) })
	if len(digits) > 0 && !isKnown {
		c.numbers = append(c.numbers, digits)
	}
}

// logged checks that a log line has no secret.
func (c *security) logged(instance string, line []byte) {
	for _, hidden := range [][][]byte{c.secrets, c.numbers} {
		for _, text := range hidden {
			if bytes.Contains(line, text) {
				c.fail(confidentiality, "%s logged %q: %s", instance, text, line)
			}
		}
	}
}

// merchantGot checks a body that a merchant gets: it has no credential, and nothing of another merchant.
func (c *security) merchantGot(s *fixture.Shop, body []byte) {
	for _, secret := range c.secrets {
		if bytes.Contains(body, secret) {
			c.fail(confidentiality, "%s gets %q: %s", s.Name, secret, body)
		}
	}
	for _, other := range c.merchants.Shops {
		if other.Name != s.Name && bytes.Contains(body, []byte(other.Name)) {
			c.fail(confidentiality, "%s gets a text of %s: %s", s.Name, other.Name, body)
		}
	}
}

// Received checks a body that an operator gets: it has no credential of a merchant.
func (c *security) Received(operatorName string, body []byte) {
	for _, s := range c.merchants.Shops {
		for _, secret := range []string{s.Token, s.Secret, c.merchants.Account(s).Token} {
			if secret != "" && bytes.Contains(body, []byte(secret)) {
				c.fail(confidentiality, "the operator %s gets a credential of %s", operatorName, s.Name)
			}
		}
	}
}

// hasRead checks a read of a status. A reader without a right learns nothing.
func (c *security) hasRead(o *merchants.Order, read merchants.Read) {
	r := read.Response
	c.merchantGot(o.Shop, []byte(r.Body))
	isAuthentic := r.Status == 200 || r.Status == 404
	isRefused := r.Status == 401 || read.Reader == merchants.ReaderForeign && (r.Status == 404 || r.Status == 429)
	switch isOwner := read.Reader == merchants.ReaderOwner; {
	case isOwner && isAuthentic && read.Refusal != "":
		c.fail(confidentiality, "a status read got %d, and its token or merchant was %s", r.Status, read.Refusal)
	case isOwner && isAuthentic:
		c.checkRate(o.Shop)
	case !isOwner && (!isRefused && r.Status < 500 || strings.Contains(r.Body, o.Shop.Name)):
		c.fail(confidentiality, "reader %d of %s %s %d got %d: %s", read.Reader, o.Shop.Name, o.Function, o.Number,
			r.Status, r.Body)
	}
}

// checkRate checks that the rate of a merchant is limited: in no second does it get more than its burst and its rate.
// Clocks agree in this history, functions do not wait, and the table of limits responds.
func (c *security) checkRate(s *fixture.Shop) {
	now, since, r := time.Now(), c.merchants.Account(s).LimitedAt, c.Rates
	if since.IsZero() || now.Sub(since) <= merchants.ProfileAge || r.Skew+r.Freeze+r.Table > 0 {
		return
	}
	if c.limited[s.Name] == nil || now.Sub(c.limited[s.Name].from) >= time.Second {
		c.limited[s.Name] = &second{from: now}
	}
	made := c.limited[s.Name]
	if made.requests++; made.requests > 2*engineers.RequestRate {
		c.fail(confidentiality, "%s may make %d request a second since %s, and made %d", s.Name, engineers.RequestRate,
			since.Sub(history.Start), made.requests)
	}
}

// RespondedToOther checks that another merchant's request is refused.
func (c *security) RespondedToOther(o *merchants.Order, r outside.Response) {
	if r.Status < 400 || r.Status == 409 {
		c.fail(confidentiality, "another merchant's request for %s got %d", o.Key(), r.Status)
	}
}

// GotToken implements merchants.Observer.
func (c *security) GotToken(s *fixture.Shop, reason string) {
	if reason != "" {
		c.fail(confidentiality, "%s got a token, and was %s", s.Name, reason)
	}
}

// NotifiedDenied implements merchants.Observer.
func (c *security) NotifiedDenied(address *url.URL) {
	c.fail(confidentiality, "a notification to the denied address %s", address)
}
