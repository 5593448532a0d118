package simulate

import (
	"bytes"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

// checker checks the invariants of a history.
type checker struct {
	world   *World
	entries map[string]*ledger.Entry // by stored key, as they are now
	keys    []string                 // of entries, in the order of their insertion
	// byUpstream has the stored keys by kind and key at the operator, owners the attempts that made reservations.
	byUpstream map[string]string
	owners     map[string]attempt
	due        dueList
	amounts    *amounts
	secrets    [][]byte             // texts that no log line may contain, and no body of another party
	numbers    [][]byte             // telephone numbers, which no log line may contain
	maybeSent  map[string]time.Time // when a call may have been applied, by kind and key at the operator
	furthest   map[string]reached   // what a merchant received last, by merchant and order
	listed     map[string]time.Time // by entry: when it was last listed for a person
	// unknownSince is when a charge or an SMS became unknown last, by stored key.
	unknownSince map[string]time.Time
	// accepted are the callbacks that got 2xx since the last step.
	accepted []outside.Callback
	released map[ledger.Key]bool // entries that were ever released
	// calls are the times of the last outside calls, by function, call and entry.
	calls map[string][]time.Time
}

func newChecker(w *World) *checker {
	c := &checker{
		world: w, entries: map[string]*ledger.Entry{}, listed: map[string]time.Time{},
		maybeSent: map[string]time.Time{}, furthest: map[string]reached{}, byUpstream: map[string]string{},
		owners: map[string]attempt{}, unknownSince: map[string]time.Time{},
		calls: map[string][]time.Time{}, released: map[ledger.Key]bool{},
	}
	c.amounts = newAmounts(c)
	for _, s := range w.shops {
		c.addSecrets(s.token, s.secret, s.clientSecret)
	}
	c.addSecrets(operatorToken, outside.OneTimeCode, "gw-token-", "alias-", "platform-gw-token")
	return c
}

// all iterates over the entries as they are now, in the order of their insertion.
func (c *checker) all() iter.Seq[*ledger.Entry] {
	return func(yield func(*ledger.Entry) bool) {
		for _, key := range c.keys {
			if e := c.entries[key]; e != nil && !yield(e) {
				return
			}
		}
	}
}

// fail reports a violation of a numbered invariant of docs/reliability.md.
func (c *checker) fail(invariant int, format string, values ...any) {
	c.world.Fail("invariant %d: %s", invariant, fmt.Sprintf(format, values...))
}

// storedKinds are the prefixes of the keys of transactions. Other items of the ledger's table are references, and the
// health of servers and endpoints.
var storedKinds = []string{string(ledger.Charge) + "#", string(ledger.Payment) + "#", string(ledger.SMS) + "#"}

// change checks one committed change of the ledger's table.
func (c *checker) change(change *model.Change) {
	item := change.New()
	isEntry := slices.ContainsFunc(storedKinds, func(prefix string) bool {
		return strings.HasPrefix(change.Key, prefix)
	})
	switch {
	case !isEntry || change.Key == undecodableKey:
		return
	case item == nil && change.Expired:
		delete(c.entries, change.Key)
		return
	case item == nil:
		c.fail(2, "%s was deleted", change.Key)
		return
	}
	after, err := ledgerdynamo.Decode(item)
	if err != nil {
		c.fail(2, "%s cannot be decoded: %s", change.Key, err)
		return
	}
	before := c.entries[change.Key]
	if before == nil {
		c.keys = append(c.keys, change.Key)
	}
	c.entries[change.Key] = after
	if after.State == ledger.Released {
		c.released[after.Key] = true
	}
	c.byUpstream[effectKinds[after.Kind]+" "+after.Route.UpstreamKey] = change.Key
	c.due.add(change.Key, after.DueAt)
	if c.world.HasStory {
		c.world.Logf("stored %s v%d: %s/%s%s", change.Key, after.Version, after.State, after.Status, outboxText(after))
	}
	if before != nil && !before.PastRetention(time.Now().Add(history.MaxSkew)) {
		if change.Old()[newerAttribute] != nil && item[newerAttribute] == nil {
			c.fail(2, "%s: an older version lost the attribute of a newer one", change.Key)
		}
		c.transition(change.Key, before, after)
		c.notified(change.Key, before, after)
		c.kept(change.Key, before, after)
		c.expired(change.Key, before, after)
		c.flagged(change.Key, before, after)
		c.deadLetters(change.Key, before, after)
		c.amounts.transition(change.Key, before, after)
	}
	if after.State == ledger.Reserved && (before == nil || before.Owner != after.Owner) {
		c.owners[change.Key] = c.newAttempt()
	}
}

func outboxText(e *ledger.Entry) string {
	text := ""
	for _, n := range e.Outbox.Waiting {
		text += fmt.Sprintf(" [%s n=%d next %s dead %q parked %v]", n.Status, n.Attempts,
			n.NextAttemptAt.Sub(history.Start), n.DeadReason, n.Parked)
	}
	if !e.DueAt.IsZero() {
		text += " due " + e.DueAt.Sub(history.Start).String()
	}
	return text
}

// transition checks that a final state does not change (invariant 2). It checks that no reservation in use is given up;
// a retry may take one over if the clocks differ.
func (c *checker) transition(key string, before, after *ledger.Entry) {
	if after.Version != before.Version+1 {
		c.fail(2, "%s: version %d follows %d", key, after.Version, before.Version)
	}
	if before.StatusFinal() && after.Status != before.Status {
		c.fail(2, "%s: the final status %s became %s", key, before.Status, after.Status)
	}
	final := before.State == ledger.Done || before.State == ledger.Refused
	if final && after.State != before.State {
		c.fail(2, "%s: the state %s became %s", key, before.State, after.State)
	}
	mayRepin := before.State == ledger.Released && before.Request.Fingerprint == ""
	if !mayRepin && (after.Route.Account != before.Route.Account ||
		after.Route.UpstreamKey != before.Route.UpstreamKey) {
		c.fail(2, "%s: its account and its key at the operator were %q %q, and are %q %q", key, before.Route.Account,
			before.Route.UpstreamKey, after.Route.Account, after.Route.UpstreamKey)
	}
	if before.Response.Status != 0 && (after.Response.Status != before.Response.Status ||
		!bytes.Equal(after.Response.Body, before.Response.Body)) {
		c.fail(3, "%s: the stored response changed", key)
	}
	isDone := after.State == ledger.Done && before.State != ledger.Done && after.Manual.Outcome == ""
	if isDone && after.Kind != ledger.Payment && !c.hasEffect(after) && !c.world.lied(after.Route.UpstreamKey) &&
		!c.mistakesEarlier(after) {
		c.fail(1, "%s is done, and has no effect", key)
	}
	writer := c.world.writer
	lapsed := before.State == ledger.Reserved && after.State == ledger.Unknown && writer != nil &&
		writer.function == functionSweep
	taken := before.State == ledger.Reserved && after.State == ledger.Reserved && before.Owner != after.Owner
	if taken || lapsed {
		// an attempt ended without an outcome
		c.maybeSent[effectKinds[after.Kind]+" "+after.Route.UpstreamKey] = time.Now()
	}
	if lapsed && c.inUse(key) {
		c.fail(7, "%s: the sweep marked a reservation as unknown while its attempt was running", key)
	}
	if taken && c.world.Rates.Skew == 0 && c.inUse(key) {
		c.fail(7, "%s: a retry took a reservation over while its attempt was running", key)
	}
}

// mistakesEarlier reports whether an SMS may be done without an effect of its own. Its key was used before, the earlier
// SMS has expired here, and the operator still knows its key. An attempt of this SMS ended without an outcome, so it
// may have been sent. If the operator then reports a duplicate, it may mean either SMS (decision "sms-duplicate"), and
// so may a late receipt under the key.
// The retention of SMS must be longer than the time for which operators know their keys.
func (c *checker) mistakesEarlier(e *ledger.Entry) bool {
	_, hasEarlier := c.effectOf(e)
	isReceipt := c.world.writer != nil && c.world.writer.function == functionReceipt
	return e.Kind == ledger.SMS && hasEarlier && (isReceipt ||
		c.maybeSent[effectKinds[e.Kind]+" "+e.Route.UpstreamKey].After(e.CreatedAt.Add(-history.MaxSkew)))
}

// operatorCall counts a call, and remembers it if its response leaves open whether it was applied.
func (c *checker) operatorCall(kind, key string, response outside.Exchange) {
	c.countCall(kind + " " + key)
	cut := response.Failure != outside.NoFailure && response.Failure != outside.ConnectionRefused
	hasNoReason := response.Status >= 300 && !bytes.Contains(response.Body, []byte("requestError"))
	if cut || response.Delay > 0 || hasNoReason || response.Status == 200 {
		c.maybeSent[kind+" "+key] = time.Now()
	}
	if w := c.world; response.Status == 403 && w.losesRefusals && w.HappensNow("refusal lost", 300) {
		w.readOnly = history.Window{From: time.Now(), To: time.Now().Add(10 * time.Second)}
	}
}

// attempt is an invocation that made a reservation.
type attempt struct {
	*instance
	number int // of the instance's invocations
}

// newAttempt is the invocation that wrote last.
func (c *checker) newAttempt() attempt {
	if c.world.writer == nil {
		return attempt{}
	}
	return attempt{c.world.writer, c.world.writer.invocations}
}

// inUse reports whether the attempt that owns a reservation is still running.
func (c *checker) inUse(key string) bool {
	owner := c.owners[key]
	return owner.instance != nil && owner.busy && owner.invocations == owner.number && !owner.overdue &&
		!owner.doomed && !owner.Crashed()
}

// notified checks that a new status has its notification, and that a notification counts as delivered only after its
// server acknowledged it (invariant 8). A refusal is the response itself, and MessageWaiting is that of the request.
func (c *checker) notified(key string, before, after *ledger.Entry) {
	isLate := before.State == ledger.Unknown ||
		before.State == ledger.Reserved && after.UpdatedAt.After(before.LeaseUntil.Add(time.Second))
	isReported := after.Status != before.Status && after.Outbox.URL != "" && after.State != ledger.Refused &&
		after.Status != ledger.Pending && (after.Status != ledger.MessageWaiting || isLate)
	hasStatus := func(n ledger.Notification) bool { return n.Status == after.Status }
	if isReported && !slices.ContainsFunc(after.Outbox.Waiting, hasStatus) &&
		!slices.ContainsFunc(after.Outbox.Delivered, hasStatus) {
		c.fail(8, "%s became %s without a notification", key, after.Status)
	}
	c.lateCharge(key, isLate, before, after)
	for _, n := range after.Outbox.Delivered {
		isNew := !slices.ContainsFunc(before.Outbox.Delivered, func(b ledger.Notification) bool { return b.ID == n.ID })
		if isNew && !c.acknowledged(after, n.ID) {
			c.fail(8, "%s: the notification of %s counts as delivered, and was not acknowledged", key, n.Status)
		}
	}
}

// lateCharge checks that a charge is notified once, and exactly if its outcome was unknown before the write that
// records it (invariant 8). Every merchant here wants it (decision "charge-notif").
func (c *checker) lateCharge(key string, isLate bool, before, after *ledger.Entry) {
	if after.Kind != ledger.Charge {
		return
	}
	had, has := len(before.Outbox.Waiting)+len(before.Outbox.Delivered),
		len(after.Outbox.Waiting)+len(after.Outbox.Delivered)
	isKnown := after.State == ledger.Done || after.State == ledger.Refused
	switch {
	case isLate && isKnown && has != 1:
		c.fail(8, "%s: its outcome became known late (%s until %s), with %d notifications", key, before.State,
			before.LeaseUntil.Sub(history.Start), has)
	case has > 1, has != had && before.State != ledger.Unknown && before.State != ledger.Reserved:
		c.fail(8, "%s has %d notifications, and had %d", key, has, had)
	}
}

// acknowledged reports whether the server of an entry acknowledged a notification.
func (c *checker) acknowledged(e *ledger.Entry, id string) bool {
	address, err := url.Parse(e.Outbox.URL)
	if err != nil {
		return false
	}
	server := c.world.servers[address.Host]
	return server != nil && server.Acknowledged(id)
}

// deadLetters checks that a notification becomes a dead letter only after its whole schedule, or after many claims
// without an outcome (invariant 8).
func (c *checker) deadLetters(key string, before, after *ledger.Entry) {
	for _, n := range after.Outbox.Waiting {
		wasDead := slices.ContainsFunc(before.Outbox.Waiting, func(b ledger.Notification) bool {
			return b.ID == n.ID && b.DeadReason != ""
		})
		isNew := n.DeadReason != "" && !wasDead && n.DeadReason != ledger.ReasonNoOutcome
		if age := time.Since(history.Latest(n.At, lastReplay(after))); isNew && age < deadLetterAge {
			c.fail(8, "%s: the notification of %s is dead after %s", key, n.Status, age)
		}
	}
}

// response checks that an order's response is the same each time (invariant 3).
func (c *checker) response(o *order, r outside.Response) {
	if !isKnown(r) {
		return
	}
	for _, earlier := range o.responses {
		if isKnown(earlier) && (earlier.Status != r.Status || earlier.Body != r.Body) && !isSentSMS(earlier, r) {
			c.fail(3, "%s %s %d: first %d %s, then %d %s", o.shop.Name, o.function, o.number,
				earlier.Status, earlier.Body, r.Status, r.Body)
		}
	}
}

// storedOutcome checks that the entry has the outcome that leaves the gateway (invariant 2): the response, or for the
// location of an SMS its end. A response may repeat the code (decision "pay-otp"). The key of an expired SMS may come
// again.
func (c *checker) storedOutcome(o *order, r outside.Response) {
	if o.function == functionSMS && c.world.smsRetention != 0 {
		return
	}
	e := c.entries[o.key().String()]
	isStored := e != nil && e.Response.Status == r.Status &&
		(strings.Contains(r.Body, outside.OneTimeCode) || string(e.Response.Body) == r.Body)
	hasEnd := e != nil && e.Kind == ledger.SMS && r.Location != "" &&
		(e.State == ledger.Done || r.Status == 409 && (e.State == ledger.Refused || e.Status != ""))
	if !isStored && !hasEnd {
		c.fail(2, "%s was reported with %d %s, which its entry has not stored", o.key(), r.Status, r.MessageID)
	}
}

// isKnown reports whether a response reports the outcome of the request: a success, or the operator's final refusal.
func isKnown(r outside.Response) bool {
	isRefusal := r.Status == 403 && !isOverLimit(r)
	return r.Status == 201 || r.Status == 200 || isRefusal || r.Status == 409 && r.Location != ""
}

// isSentSMS reports whether two responses are the success of an SMS and the reference to it.
func isSentSMS(a, b outside.Response) bool { return a.Location != "" && b.Location != "" }

// callback checks that the gateway never returns 404 for a correct callback, and 2xx for a forged one (invariant 5) or
// for one that is not stored. An operator that denied a payment may call back for two payments under one key.
func (c *checker) callback(callback outside.Callback, status int) {
	if callback.Content == outside.CallbackForged && status >= 200 && status < 300 {
		c.fail(5, "a forged callback for %s got %d", callback.Key, status)
	}
	if callback.Content == outside.NoFault && status == 404 && !c.world.lied(callback.Key) && !c.hasExpired(callback) {
		c.fail(8, "a correct callback for %s got 404", callback.Key)
	}
	if status >= 200 && status < 300 {
		c.accepted = append(c.accepted, callback)
	}
}

// hasExpired reports whether a callback is about an SMS whose retention is over, or was when the callback came: there
// is nothing left that it could change.
func (c *checker) hasExpired(callback outside.Callback) bool {
	if callback.Kind != outside.KindSMS || c.world.smsRetention == 0 {
		return false
	}
	e := c.entries[c.byUpstream[callback.Kind+" "+callback.Key]]
	return e == nil || e.PastRetention(time.Now().Add(history.MaxSkew))
}
