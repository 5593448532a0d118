package check

import (
	"net/http"
	"reflect"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

const finalOutcomes invariant = "2: A final state or status never changes. Each write raises the version by one. An " +
	"older version of the program keeps what a newer one stored. Nothing that a merchant learned from a response, a " +
	"read or a notification is taken back. An outcome is stored before a response reports it"

// finality checks that outcomes are final.
type finality struct{ *base }

// isReadable checks that an entry is there, and can be decoded.
func (c *finality) isReadable(change mirror.Change) bool {
	switch {
	case change.Err != nil:
		c.fail(finalOutcomes, "%s cannot be decoded: %s", change.Key, change.Err)
	case change.After == nil && !change.Expired:
		c.fail(finalOutcomes, "%s was deleted", change.Key)
	}
	return change.After != nil
}

// keepsNewer checks that an older version of the program keeps what a newer one stored.
func (c *finality) keepsNewer(change mirror.Change) {
	if change.Old()[deployment.NewerAttribute] != nil && change.New()[deployment.NewerAttribute] == nil {
		c.fail(finalOutcomes, "%s: an older version lost the attribute of a newer one", change.Key)
	}
}

// isMove reports whether a write moved only the time at which the entry is due. It keeps the version: its condition has
// that and the former time.
func isMove(before, after *ledger.Entry) bool {
	moved := *before
	moved.DueAt = after.DueAt
	return after.DueAt.After(before.DueAt) && reflect.DeepEqual(&moved, after)
}

// changed checks a change of an entry.
func (c *finality) changed(t transition) {
	before, after := t.before, t.after
	if after.Version != before.Version+1 && !isMove(before, after) {
		c.fail(finalOutcomes, "%s: version %d follows %d", t.key, after.Version, before.Version)
	}
	if before.StatusFinal() && after.Status != before.Status {
		c.fail(finalOutcomes, "%s: the final status %s became %s", t.key, before.Status, after.Status)
	}
	final := before.State == ledger.Done || before.State == ledger.Refused
	if final && after.State != before.State {
		c.fail(finalOutcomes, "%s: the state %s became %s", t.key, before.State, after.State)
	}
	mayRepin := before.State == ledger.Released && before.Request.Fingerprint == ""
	if !mayRepin && (after.Route.Account != before.Route.Account ||
		after.Route.UpstreamKey != before.Route.UpstreamKey) {
		c.fail(finalOutcomes, "%s: its account and its key at the operator were %q %q, and are %q %q", t.key,
			before.Route.Account, before.Route.UpstreamKey, after.Route.Account, after.Route.UpstreamKey)
	}
}

// responded checks that the entry has the outcome that leaves the gateway: the response, or for the location of an SMS
// its end. A response may repeat the code (decision "pay-otp"). The key of an expired SMS may come again.
func (c *finality) responded(o *merchants.Order, r outside.Response) {
	if c.reusesKeys(o.Function) {
		return
	}
	e := c.Entries.Of(o.Key().String())
	isStored := e != nil && e.Response.Status == r.Status &&
		(strings.Contains(r.Body, outside.OneTimeCode) || string(e.Response.Body) == r.Body)
	hasEnd := e != nil && e.Kind == ledger.SMS && r.Location != "" &&
		(e.State == ledger.Done || r.Status == 409 && (e.State == ledger.Refused || e.Status != ""))
	if !isStored && !hasEnd {
		c.fail(finalOutcomes, "%s was reported with %d %s, which its entry has not stored", o.Key(), r.Status,
			r.MessageID)
	}
}

const (
	statusOrder invariant = "4: No earlier status of an order arrives at the merchant's server after a later one"
	trueReasons invariant = "12: The gateway refuses no valid request as an invalid one. A payment that its payer " +
		"refused is reported with this reason"
)

// The ranks of facts: no later fact has a lower one.
const (
	rankNothing = iota - 2 // the response has no information about the order
	rankAbsent             // there is no such order
	rankOpen
	rankNetwork // an SMS that was delivered to the network
	rankFinal
)

// fact is something that a merchant has learned about the end of its order. text is its final status.
type fact struct {
	rank int
	text string
	at   int // the kernel's step at which it was known
	// isAccepted is true if the gateway has accepted the order, so that it cannot be absent later.
	isAccepted bool
}

// The texts of facts about a charge.
const (
	textApplied = "applied"
	textRefused = "refused"
)

// factOf is what a response to a request says about the end of an order. A payment's success only accepts it.
func factOf(function string, r outside.Response) fact {
	switch classify(function, r).kind {
	case responseSuccess:
		if function == deployment.Charge {
			return fact{rank: rankFinal, text: textApplied}
		}
		return fact{rank: rankOpen, isAccepted: true}
	case responseRefused:
		return fact{rank: rankFinal, text: map[string]string{
			deployment.Charge: textRefused, deployment.Pay: string(ledger.Failed),
			deployment.SMS: string(ledger.DeliveryImpossible),
		}[function]}
	}
	return fact{rank: rankNothing}
}

// factOfRead is what a response to a status read says about the end of an order.
func factOfRead(function string, r outside.Response) fact {
	switch {
	case r.Status == 404:
		return fact{rank: rankAbsent}
	case r.Status != 200 && function == deployment.Charge:
		return factOf(function, r)
	case r.Status != 200:
		return fact{rank: rankNothing}
	case function == deployment.Charge && r.OperationStatus == "Charged":
		return fact{rank: rankFinal, text: textApplied}
	}
	return factOfStatus(r.OperationStatus)
}

// factOfStatus is what a status in a read or in a notification says.
func factOfStatus(status string) fact {
	switch {
	case status == string(ledger.DeliveredToNetwork):
		return fact{rank: rankNetwork}
	case ledger.Status(status).Final():
		return fact{rank: rankFinal, text: status}
	}
	return fact{rank: rankOpen}
}

// facts checks what merchants learn about the ends of their orders.
type facts struct {
	*base
	known    map[*merchants.Order][]fact
	furthest map[string]reached // what a merchant received last, by merchant and order
}

// reached is the progress of a status that a merchant received last.
type reached struct {
	rank int
	at   time.Time
}

// learn checks a fact that a merchant learned from a request which began at a step. Nothing that it knew before is
// later. No two final statuses differ. A success has its effect.
func (c *facts) learn(o *merchants.Order, began int, given fact) {
	if given.rank == rankNothing || c.reusesKeys(o.Function) {
		return // the key of an expired SMS may be used again, for another one
	}
	given.at = c.Kernel.Steps()
	for _, earlier := range c.known[o] {
		isOver := earlier.at < began && (earlier.rank > max(given.rank, rankOpen) ||
			earlier.isAccepted && given.rank == rankAbsent)
		switch {
		case earlier.rank == rankFinal && given.rank == rankFinal && earlier.text != given.text:
			c.fail(finalOutcomes, "%s %s %d was %s, and then %s", o.Shop.Name, o.Function, o.Number, earlier.text,
				given.text)
		case isOver:
			c.fail(statusOrder, "%s %s %d had the rank %d (%s), and then %d", o.Shop.Name, o.Function, o.Number,
				earlier.rank, earlier.text, given.rank)
		}
	}
	c.known[o] = append(c.known[o], given)
	e := c.Entries.Of(o.Key().String())
	switch {
	case given.text != textApplied && given.text != string(ledger.Successful):
	case e == nil:
		c.fail(finalOrListed, "%s is a success for its merchant, and has no entry", o.Key())
	case e.Merchant.ID != o.Shop.Profile.ID:
		c.fail(sameResponse, "%s is a success for %s, and belongs to another merchant", o.Key(), o.Shop.Name)
	case !c.operators.HasEffect(e) && !c.operators.HasLied(e.Route.UpstreamKey):
		c.fail(oneEffect, "%s is a success for its merchant, and has no effect", o.Key())
	}
}

// notified takes a notification that reached its merchant as a fact, and checks that it does not come after a later
// status. A replay may repeat an earlier one.
func (c *facts) notified(s *fixture.Shop, receipt outside.Receipt) {
	for _, o := range c.merchants.Orders {
		if o.Shop.Name == s.Name && o.Wanted.Key == receipt.Order && o.Function != deployment.Charge {
			c.learn(o, 0, factOfStatus(receipt.Status))
		}
	}
	name := s.Name + " " + receipt.Order
	last, rank := c.furthest[name], progress[receipt.Status]
	if rank < last.rank && !c.wasReplayed(s, receipt.Order, last.at) {
		c.fail(statusOrder, "%s: %s (webhook-id %q) came after a later status", receipt.Order, receipt.Status,
			receipt.ID)
	}
	c.furthest[name] = reached{rank, receipt.At}
}

// wasReplayed reports whether a notification of a merchant's order was replayed since a time, or the order's key was
// used again since then, because its entry had expired.
func (c *facts) wasReplayed(s *fixture.Shop, order string, since time.Time) bool {
	since = since.Add(-history.MaxSkew)
	for e := range c.Entries.All() {
		isIt := e.Merchant.ID == s.Profile.ID && (e.Request.CallbackData == order || e.ID == order)
		isReused := c.SMSRetention != 0 && e.Kind == ledger.SMS && e.CreatedAt.After(since)
		if isIt && (isReused || mirror.LastReplay(e).After(since)) {
			return true
		}
	}
	return false
}

// reasons checks that what a merchant learns about a failure is true.
type reasons struct{ *base }

// invalidInput is the message of the gateway about a value that breaks a rule. A value that no route serves has
// another one.
const invalidInput = "SVC0002"

// responded checks that the gateway takes in each order. An operator may refuse it as invalid. The address of a
// notification may be denied.
func (c *reasons) responded(o *merchants.Order, r outside.Response) {
	isRefused := r.Status == http.StatusBadRequest && r.MessageID == invalidInput
	if isRefused && c.Entries.Of(o.Key().String()) == nil && !c.merchants.HasDeniedAddresses {
		c.fail(trueReasons, "%s is refused as invalid: %s", o.Key(), r.Body)
	}
}

// failed checks the reason in a notification or in a status. A person may have resolved the payment.
func (c *reasons) failed(order string, body []byte) {
	e := c.Entries.Payment(order)
	if e == nil || e.Status != ledger.Failed || e.Manual.Outcome != "" || c.operators.HasLied(e.Route.UpstreamKey) {
		return
	}
	text := outside.ParseDocument(body).Text
	reason := ledger.FailureReason(text("failureReason"))
	if text("status") == string(ledger.Failed) && reason != ledger.RefusedByPayer && c.operators.IsPayersRefusal(e) {
		c.fail(trueReasons, "%s was refused by its payer, and is reported as failed because of %q", e.Key, reason)
	}
}
