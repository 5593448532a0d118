package simulate

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/money"
)

// markListed remembers that an entry was listed for a person.
func (c *checker) markListed(line []byte) {
	var fields struct {
		Key string `json:"TransactionKey"`
	}
	if json.Unmarshal(line, &fields) == nil {
		c.listedInTime(fields.Key)
		c.listed[fields.Key] = time.Now()
		key := ledger.Key{Kind: ledger.Payment, ID: fields.Key}.String()
		if e := c.entries[key]; e != nil && c.world.isSmooth && c.hasEffect(e) {
			c.fail(7, "%s was applied, nothing failed, and it was listed for a person as %s/%s", key, e.State, e.Status)
		}
	}
}

// effectKinds are the operators' words for the kinds of entries.
var effectKinds = map[ledger.Kind]string{
	ledger.Charge: outside.KindCharge, ledger.Payment: outside.KindPayment, ledger.SMS: outside.KindSMS,
}

// effect checks an effect at an operator when it happens: it is the first one of its key, and its entry was stored
// before (invariants 1 and 6). About keys with a lie, only this is checked: an operator that knows a key has no second
// effect.
func (c *checker) effect(o *outside.Operator, effect outside.Effect) {
	lied := c.world.lied(effect.Key)
	if effect.Count > 1 && (!lied || effect.LastAt.Sub(effect.At) < outside.DefaultKeyWindow) {
		if !c.isReused(effect) {
			c.fail(1, "%s %s has %d effects at %s", effect.Kind, effect.Key, effect.Count, o.Name)
		}
	}
	if effect.Kind == outside.KindPayerSMS {
		e := c.entries[c.byUpstream[outside.KindPayment+" "+effect.Key]]
		if e == nil || e.Status != ledger.Successful {
			c.fail(1, "the payer of %s got an SMS, and its payment is not successful", effect.Key)
			return
		}
		paid := money.Format(e.Amount.Minor, e.Amount.Exponent) + " " + e.Amount.Currency + " "
		text, err := url.PathUnescape(effect.Text)
		for _, part := range []string{paid, e.Merchant.Name, e.ID} {
			if err != nil || !strings.Contains(text, part) {
				c.fail(6, "the payer's SMS of %s lacks %q (%v): %q", e.Key, part, err, effect.Text)
			}
		}
		return
	}
	if lied {
		return
	}
	e := c.entries[c.byUpstream[effect.Kind+" "+effect.Key]]
	if e == nil {
		c.fail(1, "%s %s has an effect and no entry", effect.Kind, effect.Key)
		return
	}
	c.amounts.effect(e, effect)
}

// isReused reports whether the key of an SMS was used again after its entry had expired, which is another SMS.
func (c *checker) isReused(effect outside.Effect) bool {
	e := c.entries[c.byUpstream[effect.Kind+" "+effect.Key]]
	return e != nil && e.CreatedAt.Add(-history.MaxSkew).After(effect.At)
}

// lied reports whether an operator has lied about a key.
func (w *World) lied(key string) bool {
	return slices.ContainsFunc(w.shops[0].Operators, func(name string) bool {
		return w.operators[operatorHost(name)].LiedAbout(key)
	})
}

// checkEnd checks what must hold when the faults are over, the engineer has acted and everything had its time.
func (w *World) checkEnd() {
	c := w.checker
	for _, name := range w.shops[0].Operators {
		w.operators[operatorHost(name)].Advance(time.Now())
	}
	w.checkProgress()
	for e := range c.all() {
		if !e.PastRetention(time.Now()) {
			c.checkEffect(e)
			c.amounts.checkEnd(e)
			c.checkEnded(e)
		}
	}
	for _, o := range w.orders {
		c.checkLinearizable(o)
	}
	c.checkUnaffected()
	if p := w.platforms[platformHost]; p != nil {
		p.messages.checkMessages(c)
	}
}

// checkEffect checks that the ledger says what happened at the operator (invariants 1 and 6).
func (c *checker) checkEffect(e *ledger.Entry) {
	effect, found := c.effectOf(e)
	if c.world.lied(e.Route.UpstreamKey) || isCrowd(e) {
		return
	}
	isOurs := found && c.hasEffect(e)
	succeeded := e.State == ledger.Done && e.Manual.Outcome != ledger.ManuallyNotApplied
	certainlyNot := e.State == ledger.Refused || e.State == ledger.Released
	if e.Kind == ledger.Payment {
		succeeded = e.Status == ledger.Successful
		certainlyNot = e.StatusFinal() && !succeeded && len(e.Conflicts) == 0
	}
	switch {
	case succeeded && !isOurs:
		c.fail(1, "%s is %s/%s, and has no effect", e.Key, e.State, e.Status)
	case certainlyNot && isOurs && !c.expiredBefore(e, effect):
		c.fail(1, "%s is %s/%s, and has an effect", e.Key, e.State, e.Status)
	case isOurs && e.Kind != ledger.SMS && e.Amount.Minor != effect.AmountMinor:
		c.fail(6, "%s: the amount %d was applied as %d", e.Key, e.Amount.Minor, effect.AmountMinor)
	case isOurs && e.Kind != ledger.SMS && (e.Amount.Currency != effect.Currency || e.Merchant.Name != effect.Merchant):
		c.fail(6, "%s of %s in %s was applied for %s in %s", e.Key, e.Merchant.Name, e.Amount.Currency, effect.Merchant,
			effect.Currency)
	case isOurs && e.Kind == ledger.Payment && e.Request.MSISDN != effect.MSISDN:
		c.fail(6, "%s: the payer %s was charged, not %s", e.Key, effect.MSISDN, e.Request.MSISDN)
	}
}

// expiredBefore reports whether a payment had ended, by its operator's own word or after its lifetime, before its payer
// paid after all. A payment that ends too early is found when it ends (see expired).
func (c *checker) expiredBefore(e *ledger.Entry, effect outside.Effect) bool {
	return e.Kind == ledger.Payment && e.StatusFinal() && effect.LastAt.After(e.FinalAt.Add(-history.MaxSkew))
}

// checkProgress checks that everything that had its time is final or listed, and delivered, dead or parked (invariants
// 7 and 8). It runs each day once the world is calm.
func (w *World) checkProgress() {
	c, now := w.checker, time.Now()
	for e := range c.all() {
		if e.PastRetention(now) {
			continue
		}
		bound := finalBound
		if e.Claim.Status == ledger.Successful {
			bound = claimBound
		}
		if now.Sub(history.Latest(e.ReservedAt, e.CreatedAt, e.Claim.At, w.CalmFrom)) > bound {
			c.checkFinal(e)
		}
		for place, n := range e.Outbox.Waiting {
			waits := now.Sub(history.Latest(n.At, w.CalmFrom, lastReplay(e)))
			isParked := n.Parked && !w.isEnabled(e.Merchant.ID, e.Outbox.URL)
			if n.DeadReason == "" && !isParked && !isBehindParked(e, place) && waits > deliveryBound {
				c.fail(8, "%s: the notification of %s (place %d) is neither delivered nor dead", e.Key, n.Status, place)
			}
		}
		if e.UserSMS.State == ledger.UserSMSDue && now.Sub(history.Latest(e.FinalAt, w.CalmFrom)) > finalBound {
			c.fail(8, "%s: the payer's SMS is still due", e.Key)
		}
	}
	first := w.firstDue()
	if !first.IsZero() && now.Sub(history.Latest(first, w.CalmFrom)) > 2*time.Hour {
		c.fail(7, "the due index still has an entry of %s", first.Sub(history.Start))
	}
}

// isBehindParked reports whether an earlier notification of an entry is parked. The later ones wait for it.
func isBehindParked(e *ledger.Entry, place int) bool {
	return slices.ContainsFunc(e.Outbox.Waiting[:place], func(n ledger.Notification) bool { return n.Parked })
}

// lastReplay is when a notification of an entry was last replayed, zero for never.
func lastReplay(e *ledger.Entry) time.Time {
	var last time.Time
	for _, replay := range e.Outbox.Replays {
		last = history.Latest(last, replay.At)
	}
	return last
}

// checkFinal checks that an entry is final, or was listed for a person lately.
func (c *checker) checkFinal(e *ledger.Entry) {
	isOpen := e.State == ledger.Reserved || e.State == ledger.Unknown && !e.Unknowable()
	if e.Kind == ledger.Payment {
		isOpen = !e.StatusFinal() && e.State != ledger.Released && e.State != ledger.Refused ||
			e.Claim.Status == ledger.Successful
	}
	at, listed := c.listed[e.ID]
	if isOpen && (!listed || time.Since(at) > listedBound) {
		since := "never"
		if listed {
			since = at.Sub(history.Start).String()
		}
		c.fail(7, "%s is %s/%s, and was last listed at %s", e.Key, e.State, e.Status, since)
	}
}

// checkEnded checks that the engineer's acts have ended every alarm and delivered what was parked (invariant 10).
func (c *checker) checkEnded(e *ledger.Entry) {
	if c.world.LastRound.IsZero() {
		return // a world without an engineer
	}
	now := time.Now()
	if at, listed := c.listed[e.ID]; listed && now.Sub(at) <= listedBound && at.After(c.world.LastRound) {
		c.fail(10, "%s is %s/%s, and is still listed after the acts of the engineer", e.Key, e.State, e.Status)
	}
	for _, n := range e.Outbox.Waiting {
		if now.Sub(history.Latest(n.At, c.world.LastRound)) > listedBound {
			c.fail(10, "%s: the notification of %s is undelivered after the acts of the engineer: dead %q, parked %v",
				e.Key, n.Status, n.DeadReason, n.Parked)
		}
	}
}

// progress orders the statuses of a notification.
var progress = map[string]int{
	"DeliveredToNetwork": 1, "DeliveredToTerminal": 2, "DeliveryImpossible": 2, "DeliveryUncertain": 2,
	"DeliveryNotificationNotSupported": 2,
}
