package check

import (
	"encoding/json"
	"net/http"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/shared/ledger"
)

const finalOrListed invariant = "7: Each accepted order is final, or was listed for a person: first after 15 " +
	"minutes, then within every 26 hours. Without faults no applied payment is listed. No reservation is ended or " +
	"taken over while its attempt is running. A function makes at most 45 calls of one kind for an entry in an hour. " +
	"The next lookup of a payment is in an hour, or in a day if a claim of success has been open for 48 hours"

// The bounds of liveness. Each counts from the time at which the last fault has ended, or from the act itself if that
// is later.
const (
	// FinalBound: a transaction is final or listed for a person. A payment has a lookup at the end of its lifetime of
	// 24 hours; an entry without a lookup is listed daily.
	FinalBound = 27 * time.Hour
	// claimBound: a payment with an open claim of success is final or listed for a person. It is flagged 48 hours after
	// the claim, by the next lookup of the hourly ones.
	claimBound = 51 * time.Hour
)

// The bounds in histories whose functions and tables have no faults.
const (
	// flaggedBound is the longest time from which a charge or an SMS is unknown until it is listed for a person, while
	// the sweep runs each minute.
	flaggedBound = 15*time.Minute + 3*time.Minute
	// pendingBound is the longest time from the last reservation of a payment until it is final, or listed: its
	// lifetime of 24 hours, and the hourly lookup.
	pendingBound = 25*time.Hour + 3*time.Minute
	// claimedBound is that time from an open claim of success: 48 hours, and the hourly lookup.
	claimedBound = 49*time.Hour + 3*time.Minute
)

const (
	// claimAge is the age of an open claim of success, and of the last reservation, from which a person is waited for.
	claimAge = 48 * time.Hour
	// dailyLookup and hourlyLookup bound the wait before the next lookup with such a claim and without it.
	dailyLookup, hourlyLookup = 23 * time.Hour, time.Hour + history.MaxSkew
	// lateWrite is the longest time from a decision of the sweep until its write. The sweep may freeze meanwhile.
	lateWrite = 15 * time.Minute
)

// ends checks that orders end, or are listed for a person.
type ends struct {
	*base
	owners map[string]deployment.Invocation // that made reservations, by stored key
	// unknownSince is when a charge or an SMS became unknown last, by stored key.
	unknownSince map[string]time.Time
	// calls are the times of the last outside calls, by function, call and entry.
	calls map[string][]time.Time
}

// changed checks that no reservation in use is given up. A retry may take one over if the clocks differ.
func (c *ends) changed(t transition) {
	isInUse := c.owners[t.key].IsRunning()
	switch {
	case t.isLapse() && isInUse:
		c.fail(finalOrListed, "%s: the sweep marked a reservation as unknown while its attempt was running", t.key)
	case t.isTaken() && isInUse && c.Rates.Skew == 0:
		c.fail(finalOrListed, "%s: a retry took a reservation over while its attempt was running", t.key)
	}
	c.lookedUp(t)
}

// reserved remembers who made a reservation.
func (c *ends) reserved(t transition) {
	if t.after.State == ledger.Reserved && (t.before == nil || t.before.Owner != t.after.Owner) {
		c.owners[t.key] = t.writer.Invocation()
	}
}

// flagged checks that an entry that was open for longer than its bound was listed for a person. It checks this when the
// entry changes.
func (c *ends) flagged(t transition) {
	before, after := t.before, t.after
	since, bound := c.unknownSince[t.key], flaggedBound
	isOver := before.State == ledger.Unknown && after.State != ledger.Unknown
	if after.Kind == ledger.Payment {
		since, bound = before.ReservedAt, pendingBound
		if before.Claim.Status == ledger.Successful {
			since, bound = history.Latest(before.ReservedAt, before.Claim.At), claimedBound
		}
		isOver = before.State == ledger.Done && !before.StatusFinal() && after.StatusFinal()
	}
	if after.State == ledger.Unknown && before.State != ledger.Unknown {
		c.unknownSince[t.key] = time.Now()
	}
	if isOver && time.Since(since) > bound && c.Entries.ListedAt(after.ID).Before(since) {
		c.fail(finalOrListed, "%s was open for %s, and was not listed for a person", t.key, time.Since(since))
	}
}

// listed follows a log line that lists an entry for a person. isConfined is true if the functions and tables
// have no faults: a charge or an SMS is then listed within its bound.
func (c *ends) listed(line []byte, isConfined bool) {
	var fields struct {
		ID string `json:"TransactionKey"`
	}
	if json.Unmarshal(line, &fields) != nil {
		return
	}
	for _, kind := range []ledger.Kind{ledger.Charge, ledger.SMS} {
		key := ledger.Key{Kind: kind, ID: fields.ID}.String()
		since, found := c.unknownSince[key]
		if isConfined && found && c.Entries.ListedAt(fields.ID).Before(since) && time.Since(since) > flaggedBound {
			c.fail(finalOrListed, "%s was unknown for %s before it was listed for a person", key, time.Since(since))
		}
	}
	c.Entries.MarkListed(fields.ID)
	if e := c.Entries.Payment(fields.ID); e != nil && c.operators.IsSmooth() && c.operators.HasEffect(e) {
		c.fail(finalOrListed, "%s was applied, nothing failed, and it was listed for a person as %s/%s", e.Key, e.State,
			e.Status)
	}
}

// lookedUp checks when the sweep plans the next lookup of a payment (decisions "pay-poll" and "pay-claims").
func (c *ends) lookedUp(t transition) {
	before, after := t.before, t.after
	isPlanned := after.Kind == ledger.Payment && t.writer.Is(deployment.Sweep) && !after.Poll.At.IsZero() &&
		after.Poll.Attempts == before.Poll.Attempts+1
	if !isPlanned {
		return
	}
	wait, age := time.Until(after.Poll.At), time.Duration(0)
	if after.Claim.Status == ledger.Successful {
		age = time.Since(history.Latest(after.ReservedAt, after.Claim.At))
	}
	switch {
	case age > claimAge+lateWrite && wait < dailyLookup:
		c.fail(finalOrListed, "%s: its claim of success is %s old, and the next lookup is in %s", t.key, age, wait)
	case age < claimAge-history.MaxSkew && wait > hourlyLookup:
		c.fail(finalOrListed, "%s: its next lookup is in %s", t.key, wait)
	}
}

// callBounds bound the outside calls of one kind that a function makes for one entry within some time. The lookups for
// the callbacks of a payment come closest to the first bound: its operator sends at most three, ten times each. Within
// a day a notification has at most 50 claims without an outcome and ten attempts, and may be replayed.
var callBounds = []struct {
	calls  int
	within time.Duration
}{{45, time.Hour}, {120, 24 * time.Hour}}

// called checks that no function makes the same call again and again. A history with such a bug would take minutes
// without the bounds. name is that of the call and its entry.
func (c *ends) called(name string) {
	times := append(c.calls[name], time.Now())
	for _, bound := range callBounds {
		if first := len(times) - 1 - bound.calls; first >= 0 && time.Since(times[first]) < bound.within {
			c.fail(finalOrListed, "%s: %d calls within %s", name, bound.calls+1, time.Since(times[first]))
		}
	}
	c.calls[name] = times
}

// Requested counts a request whose entry is in its address or body, or in its header.
func (c *ends) Requested(function string, request *http.Request, body []byte) {
	switch call := deployment.CallOf(request); call {
	case deployment.CallLookup:
		c.called(function + ": " + call + " " + request.URL.RequestURI() + " " + string(body))
	case deployment.CallNotification:
		c.called(function + ": " + call + " " + request.Header.Get("webhook-id"))
	}
}

// progress checks that an entry that had its time is final, or was listed for a person lately.
func (c *ends) progress(e *ledger.Entry) {
	bound, hasClaim := FinalBound, e.Claim.Status == ledger.Successful
	if hasClaim {
		bound = claimBound
	}
	isOpen := e.State == ledger.Reserved || e.State == ledger.Unknown && !e.Unknowable()
	if e.Kind == ledger.Payment {
		isOpen = !e.StatusFinal() && e.State != ledger.Released && e.State != ledger.Refused || hasClaim
	}
	waits := time.Since(history.Latest(e.ReservedAt, e.CreatedAt, e.Claim.At, c.CalmFrom))
	if waits > bound && isOpen && !c.Entries.IsListed(e) {
		c.fail(finalOrListed, "%s is %s/%s, and was last listed at %s", e.Key, e.State, e.Status,
			c.Entries.ListedAt(e.ID))
	}
}

// progressOfIndex checks that the due index has no old entry.
func (c *ends) progressOfIndex() {
	first := c.Entries.FirstDue()
	if !first.IsZero() && time.Since(history.Latest(first, c.CalmFrom)) > 2*time.Hour {
		c.fail(finalOrListed, "the due index still has an entry of %s", first.Sub(history.Start))
	}
}
