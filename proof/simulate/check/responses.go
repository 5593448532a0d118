package check

import (
	"bytes"
	"slices"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

const sameResponse invariant = "3: The same key and body get the same response. The operator never gets two bodies " +
	"under one key. The responses of an order are linearizable (porcupine)"

// responses checks that each key has one response.
type responses struct{ *base }

// changed checks that a stored response does not change.
func (c *responses) changed(t transition) {
	before, after := t.before.Response, t.after.Response
	if before.Status != 0 && (after.Status != before.Status || !bytes.Equal(after.Body, before.Body)) {
		c.fail(sameResponse, "%s: the stored response changed", t.key)
	}
}

// responded checks that an order's response is the same each time.
func (c *responses) responded(o *merchants.Order, r outside.Response) {
	if !IsKnown(r) {
		return
	}
	for _, earlier := range o.Responses {
		isSentSMS := earlier.Location != "" && r.Location != "" // the success of an SMS, or the reference to it
		if IsKnown(earlier) && (earlier.Status != r.Status || earlier.Body != r.Body) && !isSentSMS {
			c.fail(sameResponse, "%s %s %d: first %d %s, then %d %s", o.Shop.Name, o.Function, o.Number,
				earlier.Status, earlier.Body, r.Status, r.Body)
		}
	}
}

// ownKey checks that each merchant has its own keys. A charge or an SMS cannot be a duplicate if its merchant has sent
// one body only. The operator may know the key of an expired SMS.
func (c *responses) ownKey(o *merchants.Order, r outside.Response) {
	hasOtherBody := slices.ContainsFunc(o.Calls, func(made *merchants.Call) bool {
		return made.Body != merchants.OwnBody
	})
	isDuplicate := r.Status == 409 && r.Location == "" && r.RetryAfter == ""
	if !isDuplicate || hasOtherBody || c.reusesKeys(o.Function) || o.Function == deployment.Pay {
		return
	}
	upstream := ledger.UpstreamKey(o.Shop.Name, o.Wanted.Key, o.Wanted.Reference)
	if !c.operators.HasLied(upstream) {
		c.fail(sameResponse, "%s %s %d is refused as a duplicate, and its merchant has sent no other body", o.Shop.Name,
			o.Function, o.Number)
	}
}

// otherContent reports a call under a key whose first call had another content. The key of an expired SMS may come
// again.
func (c *responses) otherContent(kind, key string) {
	if kind != outside.KindSMS || c.SMSRetention == 0 {
		c.fail(sameResponse, "%s %s was sent with two different bodies", kind, key)
	}
}
