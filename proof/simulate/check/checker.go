// Package check checks the invariants of a history. docs/reliability.md lists them.
package check

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/engineers"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/proof/simulate/operators"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// invariant is an invariant: its number and its sentences in docs/reliability.md, with a colon between them.
type invariant string

// base has the parts of a history that the invariants read.
type base struct {
	*deployment.Deployment
	operators *operators.Operators
	merchants *merchants.Merchants
	engineers *engineers.Engineers
}

// fail reports a violation of an invariant, and quotes it.
func (b *base) fail(broken invariant, format string, values ...any) {
	number, sentences, _ := strings.Cut(string(broken), ": ")
	b.Fail("invariant %s: %s (%s)", number, fmt.Sprintf(format, values...), sentences)
}

// reusesKeys reports whether the key of a kind may be used again within the history, because its entry expires.
func (b *base) reusesKeys(function string) bool {
	return function == deployment.SMS && b.SMSRetention != 0
}

// transition is a change of an entry, and the instance that made it.
type transition struct {
	key           string
	before, after *ledger.Entry
	writer        *deployment.Instance
}

// isLapse reports whether the sweep marked a reservation as unknown.
func (t transition) isLapse() bool {
	return t.before.State == ledger.Reserved && t.after.State == ledger.Unknown && t.writer.Is(deployment.Sweep)
}

// isTaken reports whether a retry took a reservation over.
func (t transition) isTaken() bool {
	return t.before.State == ledger.Reserved && t.after.State == ledger.Reserved && t.before.Owner != t.after.Owner
}

// Checker checks the invariants. It observes the deployment, the operators, the merchants and the engineers. An event
// that one invariant checks is a method of that invariant's type.
type Checker struct {
	*base
	effects
	finality
	responses
	facts
	security
	amounts
	ends
	notifications
	callbacks
	isolation
	runbooks
	writes
	reasons
	invocations
	rates
	circuits
	resends
}

// New makes a checker of a deployment. Watch completes it.
func New(d *deployment.Deployment, streamOff *outside.Window) *Checker {
	b := &base{Deployment: d}
	c := &Checker{
		base: b, effects: effects{b, map[string]time.Time{}, map[string]time.Time{}}, finality: finality{b},
		responses: responses{b}, facts: facts{b, map[*merchants.Order][]fact{}, map[string]reached{}},
		security: security{base: b, limited: map[string]*second{}}, amounts: newAmounts(b),
		ends: ends{
			b, map[string]deployment.Invocation{}, map[string]time.Time{}, map[string][]time.Time{},
		},
		notifications: notifications{base: b, bodies: map[string][]byte{}},
		callbacks:     callbacks{base: b, released: map[ledger.Key]bool{}},
		isolation:     isolation{base: b, streamOff: streamOff}, runbooks: runbooks{b},
		writes: writes{b}, reasons: reasons{b}, invocations: invocations{b}, rates: rates{b, map[string][]time.Time{}},
		circuits: newCircuits(b), resends: resends{b, map[string][]queuedResend{}},
	}
	d.Observer = c
	c.Confide(fixture.OperatorToken, outside.OneTimeCode, "gw-token-", "alias-", "platform-gw-token")
	return c
}

// Watch sets the drivers of the history.
func (c *Checker) Watch(o *operators.Operators, m *merchants.Merchants, e *engineers.Engineers) {
	c.operators, c.merchants, c.engineers = o, m, e
}

// Confine sets which entries a fault may affect. The invariants of isolation hold for all others.
func (c *Checker) Confine(affected func(*ledger.Entry) bool) { c.isolation.affected = affected }

// Logged implements deployment.Observer.
func (c *Checker) Logged(instance string, line []byte) {
	c.security.logged(instance, line)
	c.runbooks.logged(instance, line)
	if c.HasStory {
		_, text, _ := bytes.Cut(line, []byte(`},"`)) // without the declarations of its metrics
		c.Logf("%s log: %s", instance, bytes.TrimSpace(text))
	}
	if bytes.Contains(line, []byte(`"StaleUnknownOutcomes":1`)) {
		c.ends.listed(line, c.isolation.affected != nil)
	}
}

// Interrupted implements deployment.Observer.
func (c *Checker) Interrupted(function string) {
	c.amounts.mayStay = c.amounts.mayStay || countsAmounts(function)
}

// Failed implements deployment.Observer.
func (c *Checker) Failed(table string) {
	c.amounts.mayStay = c.amounts.mayStay || table == fixture.LimitTable
}

// Changed implements deployment.Observer.
func (c *Checker) Changed(change mirror.Change, writer *deployment.Instance) {
	c.runbooks.changed(change.Key, writer)
	if change.Table == fixture.LimitTable {
		c.amounts.follow(change.Change)
		c.circuits.follow(change.Change, writer)
	}
	if !change.IsEntry || !c.finality.isReadable(change) {
		return
	}
	t := transition{change.Key, change.Before, change.After, writer}
	c.circuits.entryChanged(t)
	defer c.writes.changed(t, change.Made) // what another invariant says about a write comes first
	if t.after.State == ledger.Released {
		c.callbacks.released[t.after.Key] = true
	}
	if c.HasStory {
		c.Logf("%s: stored %s %s", writer.Program(), change.Key, mirror.Describe(t.after))
	}
	if t.before != nil && !t.before.PastRetention(time.Now().Add(history.MaxSkew)) {
		c.finality.keepsNewer(change)
		c.changed(t)
	}
	c.ends.reserved(t)
}

// changed checks a change of an entry.
func (c *Checker) changed(t transition) {
	c.finality.changed(t)
	c.responses.changed(t)
	c.effects.changed(t)
	c.ends.changed(t)
	c.notifications.changed(t)
	c.resends.changed(t)
	c.invocations.changed(t)
	c.effects.expired(t)
	c.effects.neverSent(t)
	if c.isolation.affected != nil {
		c.ends.flagged(t)
	}
	c.notifications.deadLetters(t)
	c.amounts.changed(t)
}

// Followed implements deployment.Observer.
func (c *Checker) Followed(hasChanged bool) {
	c.callbacks.followed()
	if hasChanged {
		c.amounts.followed()
	}
}

// Called implements operators.Observer.
func (c *Checker) Called(kind, key string, response outside.Exchange) {
	c.ends.called(kind + " " + key)
	c.effects.called(kind, key, response)
}

// Applied implements operators.Observer.
func (c *Checker) Applied(operatorName string, effect outside.Effect) {
	if e := c.effects.applied(operatorName, effect); e != nil {
		c.amounts.applied(e, effect)
	}
}

// PlatformCalledBack implements operators.Observer.
func (c *Checker) PlatformCalledBack(report operators.Report, status int) {
	c.callbacks.PlatformCalledBack(report, status)
	c.rates.calledBack(report)
}

// Responded implements merchants.Observer.
func (c *Checker) Responded(o *merchants.Order, made *merchants.Call) {
	response, own := made.Response, made.Body == merchants.OwnBody
	if made.HasCome && IsKnown(response) {
		if made.Refusal != "" {
			c.fail(confidentiality, "a request got %d, and its token or merchant was %s", response.Status, made.Refusal)
		}
		c.finality.responded(o, response)
		c.responses.replayed(o, made)
	}
	// A response may repeat the code (decision "pay-otp").
	c.security.merchantGot(o.Shop, []byte(strings.ReplaceAll(response.Body, outside.OneTimeCode, "")))
	c.isolation.responded(o, made)
	c.circuits.responded(o, made)
	if made.HasCome && own {
		c.reasons.responded(o, response)
		c.responses.ownKey(o, response)
		if isOverLimit(response) {
			c.amounts.refusal(o, made.Start)
		}
	}
	if !made.IsLost && own {
		c.RespondedAgain(o, response)
		c.facts.learn(o, 0, factOf(o.Function, response)) // a repeat gets the first response, also after later ones
	}
}

// RespondedAgain checks that the response to an order's own body is the same each time.
func (c *Checker) RespondedAgain(o *merchants.Order, response outside.Response) {
	c.responses.responded(o, response)
}

// HasRead implements merchants.Observer.
func (c *Checker) HasRead(o *merchants.Order, read merchants.Read) {
	c.security.hasRead(o, read)
	if read.Reader == merchants.ReaderOwner && !read.IsLost {
		c.facts.learn(o, read.Began, factOfRead(o.Function, read.Response))
		c.reasons.failed(o.Wanted.Key, []byte(read.Response.Body))
	}
}

// Notified implements merchants.Observer.
func (c *Checker) Notified(s *fixture.Shop, receipt outside.Receipt) {
	if !receipt.Signed {
		c.fail(confidentiality, "the notification of %s for %q (webhook-id %s) is not signed as it should",
			receipt.Status, receipt.Order, receipt.ID)
	}
	c.notifications.received(s, receipt, c.resends.hasResentSince)
	c.notifications.sameBody(s, receipt)
	c.security.merchantGot(s, receipt.Body)
	c.facts.notified(s, receipt)
	c.reasons.failed(receipt.Order, receipt.Body)
}

// Progress checks that everything that had its time is final or listed, and delivered, dead or parked. It runs each day
// once the world is calm.
func (c *Checker) Progress() {
	for e := range c.Entries.All() {
		if !e.PastRetention(time.Now()) {
			c.ends.progress(e)
			c.notifications.progress(e)
		}
	}
	c.ends.progressOfIndex()
}

// AtEnd checks what must hold when the faults are over, the engineer has acted and everything had its time.
func (c *Checker) AtEnd() {
	c.operators.Each(func(o *outside.Operator) { o.Advance(time.Now()) })
	c.Progress()
	for e := range c.Entries.All() {
		if !e.PastRetention(time.Now()) {
			c.effects.atEnd(e)
			c.amounts.atEnd(e)
			c.runbooks.atEnd(e)
		}
	}
	for _, o := range c.merchants.Orders {
		c.responses.linearizable(o)
	}
	books{c.base}.atEnd()
	c.isolation.atEnd()
	for e := range c.Entries.All() {
		c.callbacks.atEnd(e)
	}
}

// HasEffects checks the number of an order's effects at the end: a success has exactly one.
func (c *Checker) HasEffects(o *merchants.Order, effects int) {
	for _, r := range o.Responses {
		if r.Status == http.StatusCreated && o.Function != deployment.Pay && effects != 1 {
			c.fail(oneEffect, "a response was %d, and there are %d effects", r.Status, effects)
		}
	}
}
