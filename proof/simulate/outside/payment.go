package outside

import (
	"net/http"
	"net/url"
	"time"
)

const channelWeb = "web"

// callbackType is meta.type of a callback.
const callbackType = "payment-notif"

// The statuses of a payment as FinalStatus returns them.
const (
	statusPending    = "pending"
	statusSuccessful = "successful"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
	statusExpired    = "expired"
)

// otherSpellings are the texts of some platforms for the statuses.
var otherSpellings = map[string]string{
	statusPending: "INITIATED", statusSuccessful: "SUCCESS", statusFailed: "FAILED", statusCancelled: "CANCELED",
	statusExpired: "EXPIRED",
}

// finalRefusals are the message ids of permanent refusals. Their status is 403, or 400 for a service exception.
var finalRefusals = []string{"POL0253", "POL1000", "POL0001", "SVC0270"}

const (
	payerDelay        = 2 * time.Second
	expiryDelay       = 24 * time.Hour
	earlyCallbackLead = 2 * time.Second
	// replicationDelay is the age until which getStatus may not find a payment.
	replicationDelay = 2 * time.Minute
)

// plan has the decisions about a transaction, drawn when its call arrives.
type plan struct {
	refusal       string // the message id of a permanent refusal
	finalStatus   string // of a payment; "" if the payer never decides
	decidesAfter  time.Duration
	reversedAfter time.Duration
	receipt       Fault
	timing        Fault
	callbackDelay time.Duration
	content       Fault
	forgesKey     bool // a forged callback names another key number; else another MAC
	premature     bool // a contradicting callback comes before the final status
}

func (o *Operator) drawPlan(in call, fault Fault, c Chooser) plan {
	p := plan{}
	if fault == FinalRefusal {
		p.refusal = finalRefusals[c.Choose("operator: message id", len(finalRefusals))]
		return p
	}
	if in.kind == KindPayment {
		o.drawPayer(&p, c)
	} else if in.callbackURL != "" {
		p.receipt = o.Faults.pick(c, Receipts)
	}
	if in.callbackURL == "" {
		return p
	}
	p.timing = o.Faults.pick(c, CallbackTimes)
	switch p.timing {
	case CallbackLate:
		p.callbackDelay = choose(c, "operator: delay of the callback", 10*time.Minute, 6*time.Hour, 49*time.Hour)
	case CallbackEarly:
		p.decidesAfter = 0
	}
	p.content = o.Faults.pick(c, CallbackContents)
	switch p.content {
	case CallbackForged:
		p.forgesKey = c.Choose("operator: forged part of the token", 2) == 1
	case CallbackContradicting:
		p.premature = c.Choose("operator: order of the contradicting callback", 2) == 1
	}
	return p
}

// drawPayer draws the payer's decision and its time.
func (o *Operator) drawPayer(p *plan, c Chooser) {
	p.finalStatus, p.decidesAfter = statusSuccessful, payerDelay
	switch o.Faults.pick(c, Payers) {
	case PayerFails:
		p.finalStatus = statusFailed
	case PayerCancels:
		p.finalStatus = statusCancelled
	case PayerExpires:
		p.finalStatus, p.decidesAfter = statusExpired, expiryDelay
	case PayerNever:
		p.finalStatus = ""
	case PayerLate:
		p.decidesAfter = choose(c, "operator: time of the payer", time.Minute, time.Hour, 23*time.Hour, 25*time.Hour,
			73*time.Hour, 5*24*time.Hour)
	case PayerInstant:
		p.decidesAfter = 0
	case LieReversed:
		p.finalStatus = statusFailed
		p.reversedAfter = choose(c, "operator: time of the reversal", 10*time.Second, 10*time.Minute, 30*time.Hour)
	}
}

// serveLookup handles getStatus.
func (o *Operator) serveLookup(now time.Time, escapedID string, c Chooser) Exchange {
	orderID, err := url.PathUnescape(escapedID)
	if err != nil {
		orderID = escapedID
	}
	key := effectKey{KindPayment, orderID}
	t := o.transactions[key]
	fault := o.pickFault(now, KindLookup, c, Lookups)
	if fault != NoFault {
		o.trace("fault: "+string(fault), key)
	}
	if response := faultTable[fault].response; response != nil {
		return *response
	}
	isYoung := t != nil && now.Before(t.createdAt.Add(replicationDelay))
	switch {
	case fault == LieNotFound && t != nil:
		o.lies = append(o.lies, Lie{KindPayment, orderID, fault, now})
		t = nil
	case fault == NotFoundYet && isYoung:
		t = nil
	}
	if t == nil {
		o.trace("getStatus: not found", key)
		return requestError(http.StatusNotFound, "SVC0002", "order_id")
	}
	status := t.statusAt(now)
	if o.Faults.pick(c, LookupContents) == LookupOther {
		other := *t
		t, status = &other, statusSuccessful
		if c.Choose("operator: part of another payment", 2) == 0 {
			t.amount = "1" + t.amount
		} else {
			t.currency = map[bool]string{true: "XAF", false: "XOF"}[t.currency == "XOF"]
		}
	}
	o.trace("getStatus: "+status+" "+t.amount+" "+t.currency, key)
	response := newResponse(http.StatusOK, string(t.payload("payment", status, now)))
	switch fault {
	case TruncatedAfter:
		response.Failure = TruncatedBody
	case SlowAfter:
		response.Delay = choose(c, "operator: delay of getStatus", 3*time.Second, 9*time.Second, 70*time.Second)
	}
	return response
}

// statusAt returns the status that the operator reports, which a reversal makes a lie.
func (t *transaction) statusAt(now time.Time) string {
	switch {
	case t.finalAt.IsZero() || now.Before(t.finalAt):
		return statusPending
	case now.Before(t.reversedAt):
		return statusSuccessful
	}
	return t.finalStatus
}

// payload is the body of a terminal's response, of getStatus and of a callback. Every third payment has the other
// spellings of the statuses.
func (t *transaction) payload(payloadType, status string, date time.Time) []byte {
	if t.number%3 == 0 {
		status = otherSpellings[status]
	}
	notifToken := ""
	if payloadType == callbackType {
		notifToken = t.notifToken
	}
	p := withoutEmpty(object{
		"meta":   object{"type": payloadType, "source": t.operator, "channel": t.channel},
		"status": status, "amount": t.amount, "order-id": t.key, "currency": t.currency, "reference": t.reference,
		"country-code": t.country, "user_msisdn": t.msisdn, "Transaction-id": t.id, "notif_token": notifToken,
		"date": date.UTC().Format(time.DateTime),
	})
	p["state"] = t.state
	return mustMarshal(p)
}
