package check

import (
	"bytes"
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/proof/simulate/operators"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

const oneEffect invariant = "1: An order has at most one effect at the operator; a success has exactly one, a " +
	"failure none"

// paymentLifetime is how long a payment may stay pending before the gateway may end it as expired.
const paymentLifetime = 24 * time.Hour

// effects checks that orders have one effect.
type effects struct {
	*base
	maybeSent map[string]time.Time // when a call may have been applied, by kind and key at the operator
	// lastAttempt is the last reservation of each entry, also if a restore of the ledger lost it.
	lastAttempt map[string]time.Time
}

// applied checks an effect at an operator when it happens: it is the first one of its key, and its entry was stored
// before. About keys with a lie, only this is checked: an operator that knows a key has no second effect. It returns
// the entry of an order's effect, nil if nothing is known of it.
func (c *effects) applied(operatorName string, effect outside.Effect) *ledger.Entry {
	lied := c.operators.HasLied(effect.Key)
	if effect.Count > 1 && (!lied || effect.LastAt.Sub(effect.At) < outside.DefaultKeyWindow) && !c.isReused(effect) {
		c.fail(oneEffect, "%s %s has %d effects at %s", effect.Kind, effect.Key, effect.Count, operatorName)
	}
	if effect.Kind == outside.KindPayerSMS {
		c.appliedPayerSMS(effect)
		return nil
	}
	e := c.Entries.AtOperator(effect.Kind, effect.Key)
	switch {
	case lied:
		return nil
	case e == nil:
		c.fail(oneEffect, "%s %s has an effect and no entry", effect.Kind, effect.Key)
	}
	return e
}

// appliedPayerSMS checks the SMS to the payer of a payment.
func (c *effects) appliedPayerSMS(effect outside.Effect) {
	e := c.Entries.AtOperator(outside.KindPayment, effect.Key)
	if e == nil || e.Status != ledger.Successful {
		c.fail(oneEffect, "the payer of %s got an SMS, and its payment is not successful", effect.Key)
		return
	}
	paid := money.Format(e.Amount.Minor, e.Amount.Exponent) + " " + e.Amount.Currency + " "
	text, err := url.PathUnescape(effect.Text)
	for _, part := range []string{paid, e.Merchant.Name, e.ID} {
		if err != nil || !strings.Contains(text, part) {
			c.fail(exactAmounts, "the payer's SMS of %s lacks %q (%v): %q", e.Key, part, err, effect.Text)
		}
	}
}

// isReused reports whether the key of an SMS was used again after its entry had expired, which is another SMS.
func (c *effects) isReused(effect outside.Effect) bool {
	e := c.Entries.AtOperator(effect.Kind, effect.Key)
	return e != nil && e.CreatedAt.Add(-history.MaxSkew).After(effect.At)
}

// called remembers a call whose response leaves open whether it was applied.
func (c *effects) called(kind, key string, response outside.Exchange) {
	cut := response.Failure != outside.NoFailure && response.Failure != outside.ConnectionRefused
	hasNoReason := response.Status >= 300 && !bytes.Contains(response.Body, []byte("requestError"))
	if cut || response.Delay > 0 || hasNoReason || response.Status == 200 {
		c.maybeSent[kind+" "+key] = time.Now()
	}
}

// changed checks that an entry that becomes done has its effect.
func (c *effects) changed(t transition) {
	after := t.after
	isDone := after.State == ledger.Done && t.before.State != ledger.Done && after.Manual.Outcome == ""
	if isDone && after.Kind != ledger.Payment && !c.operators.HasEffect(after) &&
		!c.operators.HasLied(after.Route.UpstreamKey) && !c.mistakesEarlier(t) {
		c.fail(oneEffect, "%s is done, and has no effect", t.key)
	}
	if t.isTaken() || t.isLapse() { // an attempt ended without an outcome
		c.maybeSent[mirror.EffectKind(after)+" "+after.Route.UpstreamKey] = time.Now()
	}
}

// mistakesEarlier reports whether an SMS may be done without an effect of its own. Its key was used before, the earlier
// SMS has expired here, and the operator still knows its key. An attempt of this SMS ended without an outcome, so it
// may have been sent. If the operator then reports a duplicate, it may mean either SMS (decision "sms-duplicate"), and
// so may a late receipt under the key.
// The retention of SMS must be longer than the time for which operators know their keys.
func (c *effects) mistakesEarlier(t transition) bool {
	e := t.after
	_, hasEarlier := c.operators.EffectOf(e)
	return e.Kind == ledger.SMS && hasEarlier && (t.writer.Is(deployment.Receipt) ||
		c.maybeSent[mirror.EffectKind(e)+" "+e.Route.UpstreamKey].After(e.CreatedAt.Add(-history.MaxSkew)))
}

// expired checks that a payment expires only after its lifetime, or when its operator has ended it so.
func (c *effects) expired(t transition) {
	if t.after.Status != ledger.Expired || t.before.Status == ledger.Expired {
		return
	}
	if row, isPlatform := operators.RowOf(t.after); isPlatform && row.Expires {
		return
	}
	status, at, found := c.operators.FinalStatus(t.after)
	isEnded := found && status == string(ledger.Expired) && !at.After(time.Now())
	if age := time.Since(t.after.ReservedAt); age < paymentLifetime-history.MaxSkew && !isEnded {
		c.fail(oneEffect, "%s expired %s after its reservation, and its operator may still end it", t.key, age)
	}
}

// neverSent checks that the sweep takes no payment for one that was never sent before its time, counted from the last
// attempt. After a restore of the ledger that attempt may be known only by restore check.
func (c *effects) neverSent(t transition) {
	before, after := t.before, t.after
	if last := c.lastAttempt[t.key]; after.ReservedAt.After(last) {
		c.lastAttempt[t.key] = after.ReservedAt
	}
	ends := after.Kind == ledger.Payment && before.State == ledger.Unknown && after.State == ledger.Released &&
		t.writer.Is(deployment.Sweep)
	if !ends {
		return
	}
	row, age := operator.CapabilitiesOf(before), time.Since(history.Latest(before.ReservedAt, c.lastAttempt[t.key]))
	switch {
	case before.Request.Restored():
		c.fail(oneEffect, "%s was released, and its attempts are not known", t.key)
	case !row.Prepares && age < row.NeverSentAfter-history.MaxSkew:
		c.fail(oneEffect, "%s was released %s after its last attempt, and may still be applied", t.key, age)
	}
}

// atEnd checks that the ledger says what happened at the operator.
func (c *effects) atEnd(e *ledger.Entry) {
	effect, found := c.operators.EffectOf(e)
	if c.operators.HasLied(e.Route.UpstreamKey) || deployment.IsCrowd(e) {
		return
	}
	isOurs := found && c.operators.HasEffect(e)
	succeeded := e.State == ledger.Done && e.Manual.Outcome != ledger.ManuallyNotApplied
	certainlyNot := e.State == ledger.Refused || e.State == ledger.Released
	if e.Kind == ledger.Payment {
		succeeded = e.Status == ledger.Successful
		certainlyNot = e.StatusFinal() && !succeeded && len(e.Conflicts) == 0
	}
	switch {
	case succeeded && !isOurs:
		c.fail(oneEffect, "%s is %s/%s, and has no effect", e.Key, e.State, e.Status)
	case certainlyNot && isOurs && !expiredBefore(e, effect):
		c.fail(oneEffect, "%s is %s/%s, and has an effect", e.Key, e.State, e.Status)
	case isOurs && e.Kind != ledger.SMS && e.Amount.Minor != effect.AmountMinor:
		c.fail(exactAmounts, "%s: the amount %d was applied as %d", e.Key, e.Amount.Minor, effect.AmountMinor)
	case isOurs && e.Kind != ledger.SMS && (e.Amount.Currency != effect.Currency || e.Merchant.Name != effect.Merchant):
		c.fail(exactAmounts, "%s of %s in %s was applied for %s in %s", e.Key, e.Merchant.Name, e.Amount.Currency,
			effect.Merchant, effect.Currency)
	case isOurs && e.Kind == ledger.Payment && e.Request.MSISDN != effect.MSISDN:
		c.fail(exactAmounts, "%s: the payer %s was charged, not %s", e.Key, effect.MSISDN, e.Request.MSISDN)
	}
}

// expiredBefore reports whether a payment had ended, by its operator's own word or after its lifetime, before its payer
// paid after all. A payment that ends too early is found when it ends (see expired).
func expiredBefore(e *ledger.Entry, effect outside.Effect) bool {
	return e.Kind == ledger.Payment && e.StatusFinal() && effect.LastAt.After(e.FinalAt.Add(-history.MaxSkew))
}

const booksAgree invariant = "17: At the end the money that the operators moved is that of the ledger's successes, " +
	"to the minor unit, for each merchant and currency. Only transactions that are listed for a person, and reports " +
	"that contradict a final status, may differ"

// books compares the sums of the operators' journals with those of the ledger.
type books struct{ *base }

// account is a merchant's money in a currency.
type account struct{ merchant, currency string }

// atEnd sums the effects of all operators less the successes of the ledger. Keys with a lie are on neither side.
func (b books) atEnd() {
	sums := map[account]int64{}
	b.operators.Each(func(o *outside.Operator) {
		for _, effect := range o.Effects() {
			if movesMoney(effect.Kind) && !b.operators.HasLied(effect.Key) {
				sums[account{effect.Merchant, effect.Currency}] += moved(effect)
			}
		}
	})
	for e := range b.Entries.All() {
		if e.Kind == ledger.SMS || deployment.IsCrowd(e) || b.operators.HasLied(e.Route.UpstreamKey) {
			continue
		}
		effect, found := b.operators.EffectOf(e)
		_, isPlatform := operators.RowOf(e)
		if found && isPlatform && b.operators.Platforms != nil { // the others' effects are summed above
			sums[account{effect.Merchant, effect.Currency}] += moved(effect)
		}
		switch {
		case isSuccess(e):
			sums[account{e.Merchant.Name, e.Amount.Currency}] -= e.Amount.Minor
		case found && b.mayDiffer(e, effect):
			sums[account{effect.Merchant, effect.Currency}] -= moved(effect)
		}
	}
	order := func(a, b account) int {
		return cmp.Or(cmp.Compare(a.merchant, b.merchant), cmp.Compare(a.currency, b.currency))
	}
	for _, of := range slices.SortedFunc(maps.Keys(sums), order) {
		if sums[of] != 0 {
			b.fail(booksAgree, "the operators moved %d minor units of %s of %s more than the ledger has", sums[of],
				of.currency, of.merchant)
		}
	}
}

// movesMoney reports whether a kind of effects is a payment or a charge.
func movesMoney(kind string) bool { return kind == outside.KindPayment || kind == outside.KindCharge }

// moved is the money of all effects under a key.
func moved(effect outside.Effect) int64 { return effect.AmountMinor * int64(effect.Count) }

// isSuccess reports whether the ledger has a success of a payment or a charge.
func isSuccess(e *ledger.Entry) bool {
	if e.Kind == ledger.Payment {
		return e.Status == ledger.Successful
	}
	return e.State == ledger.Done && e.Manual.Outcome != ledger.ManuallyNotApplied
}

// mayDiffer reports whether an entry without a success may have an effect. An open one is listed for a person, or its
// bound is not over. A final status came before the effect, or a conflict contradicts it.
func (b books) mayDiffer(e *ledger.Entry, effect outside.Effect) bool {
	if e.NotApplied() {
		return expiredBefore(e, effect) || e.Kind == ledger.Payment && len(e.Conflicts) > 0
	}
	return b.Entries.IsListed(e) || time.Since(e.ReservedAt) < FinalBound
}
