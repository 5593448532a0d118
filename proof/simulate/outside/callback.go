package outside

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
)

const (
	maxCallbackAttempts = 10
	firstCallbackRetry  = time.Second // doubles with each attempt
	receiptInterval     = time.Second
)

// The delivery statuses of receipts.
const (
	deliveredToNetwork  = "DeliveredToNetwork"
	deliveredToTerminal = "DeliveredToTerminal"
	deliveryImpossible  = "DeliveryImpossible"
	deliveryUncertain   = "DeliveryUncertain"
)

// Callback is a request that the operator sends to the gateway: a payment callback or an SMS receipt.
type Callback struct {
	Kind   string // KindPayment or KindSMS
	Key    string
	Status string // that the body claims
	Method string
	URL    string
	Body   []byte
	// Content is the fault of the callback, or NoFault. CallbackForged comes from an attacker without the callback key.
	Content Fault

	at       time.Time
	number   int // the order of callbacks with the same time
	t        *transaction
	attempts int
}

// queueCallbacks queues the callbacks of a new transaction.
func (o *Operator) queueCallbacks(t *transaction) {
	if t.callbackURL == "" {
		return
	}
	base := t.createdAt
	if t.kind == KindPayment {
		base = t.finalAt
	}
	if base.IsZero() {
		base = t.createdAt.Add(payerDelay) // the payer never decides: only false callbacks come
	}
	statuses := t.callbackStatuses()
	content := NoFault
	switch t.content {
	case CallbackReordered:
		slices.Reverse(statuses)
	case CallbackWrongAmount, CallbackWrongToken, CallbackGarbage:
		content = t.content
	case CallbackForged:
		o.enqueue(t.createdAt.Add(receiptInterval), t, t.contradictingStatus(), CallbackForged)
	case CallbackContradicting:
		at := base.Add(t.callbackDelay + 10*time.Second)
		if t.premature {
			at = t.createdAt.Add(receiptInterval)
		}
		o.enqueue(at, t, t.contradictingStatus(), CallbackContradicting)
	}
	if t.timing == CallbackNever {
		return
	}
	for i, status := range statuses {
		at := base.Add(t.callbackDelay)
		if t.timing != CallbackEarly {
			at = at.Add(time.Duration(i) * receiptInterval)
		}
		o.enqueue(at, t, status, content)
		if t.content == CallbackTwice {
			o.enqueue(at, t, status, content)
		}
	}
	if t.reversedAfter > 0 {
		o.enqueue(t.reversedAt, t, t.finalStatus, NoFault)
	}
}

// callbackStatuses lists the statuses of a transaction's correct callbacks.
func (t *transaction) callbackStatuses() []string {
	if t.kind == KindPayment {
		switch {
		case t.finalStatus == "":
			return nil
		case t.content == CallbackReordered:
			return []string{statusPending, t.finalStatus}
		}
		return []string{t.statusAt(t.finalAt)}
	}
	switch t.receipt {
	case ReceiptImpossible:
		return []string{deliveredToNetwork, deliveryImpossible}
	case ReceiptUncertain:
		return []string{deliveredToNetwork, deliveryUncertain}
	case ReceiptNetworkOnly:
		return []string{deliveredToNetwork}
	}
	return []string{deliveredToNetwork, deliveredToTerminal}
}

// contradictingStatus is a final status that is not true.
func (t *transaction) contradictingStatus() string {
	switch {
	case t.kind != KindPayment:
		return deliveryImpossible
	case t.finalStatus == statusSuccessful:
		return statusFailed
	}
	return statusSuccessful
}

func (o *Operator) enqueue(at time.Time, t *transaction, status string, content Fault) {
	o.queued++
	o.queue = append(o.queue, Callback{
		Kind: t.kind, Key: t.key, Status: status, Method: http.MethodPost, Content: content,
		at: at, number: o.queued, t: t,
	})
}

// Due returns the callbacks that the operator sends now, in its order, and removes them. Report the outcome of each one
// with Report, or it is never retried.
func (o *Operator) Due(now time.Time) []Callback {
	o.Advance(now)
	slices.SortFunc(o.queue, func(a, b Callback) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.number, b.number))
	})
	var due []Callback
	for len(o.queue) > 0 && !o.queue[0].at.After(now) {
		next := o.queue[0]
		o.queue = o.queue[1:]
		next.render(now)
		due = append(due, next)
		o.trace(strings.TrimSpace("sends "+next.Status+" "+string(next.Content)), effectKey{next.Kind, next.Key})
	}
	return due
}

// Report records the status of the response to a callback, 0 for none. The operator retries a callback without a 2xx
// response at most ten times, with growing waits. A forged one is never retried.
func (o *Operator) Report(now time.Time, callback Callback, status int) {
	callback.attempts++
	isDelivered := status >= 200 && status <= 299
	if isDelivered || callback.Content == CallbackForged || callback.attempts >= maxCallbackAttempts {
		return
	}
	o.queued++
	callback.number = o.queued
	callback.at = now.Add(firstCallbackRetry << (callback.attempts - 1))
	o.queue = append(o.queue, callback)
}

// render writes the URL and the body when the callback is sent, because the URL may change until then.
func (c *Callback) render(now time.Time) {
	t := *c.t
	c.URL = t.callbackURL
	switch c.Content {
	case CallbackForged:
		c.URL = kit.ForgeToken(t.callbackURL, t.forgesKey)
	case CallbackWrongAmount:
		t.amount = "9" + t.amount
	case CallbackWrongToken:
		t.notifToken = "notif-of-another-payment"
	}
	c.Body = t.payload(callbackType, c.Status, now)
	if t.kind != KindPayment {
		c.Body = c.receiptBody()
	}
	if c.Content == CallbackGarbage {
		c.Body = c.Body[:len(c.Body)/2]
	}
}

// receiptBody writes a delivery receipt. Platforms send deliveryInfo as an object or as an array.
func (c *Callback) receiptBody() []byte {
	info := object{"address": "acr:X-Operator-ISE2", "deliveryStatus": c.Status}
	var infos any = info
	if c.number%2 == 1 {
		infos = []object{info}
	}
	return mustMarshal(object{"deliveryInfoNotification": object{"deliveryInfo": infos}})
}
