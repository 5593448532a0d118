// Package notif takes in the operators' payment callbacks: POST /callbacks/v1/payments/{operator}/{orderId}/{token}.
//
// A callback is a claim: getStatus confirms it before it becomes final (decision "pay-claims"). Its invariants: a forged
// call costs no read of the database; 200 is answered only when the state is committed.
package notif

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/settlement"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/telemetry"
)

// Method and Resource are the route as template.yaml has it.
const (
	Method   = "POST"
	Resource = "/callbacks/v1/payments/{operator}/{orderId}/{token}"
)

// maxText is the limit of a text that is read of a callback, in characters.
const maxText = 255

// Inbox takes payment callbacks in.
type Inbox struct {
	Callbacks  operation.Verifier
	Book       *ledger.Book
	Settlement *settlement.Desk
	// Recheck is how long after an unconfirmed claim getStatus is asked again.
	Recheck time.Duration
	Now     func() time.Time
}

// Route is the function's entry in the gateway.
func (i *Inbox) Route() apigw.Route {
	return apigw.Route{Method: Method, Resource: Resource, Handle: i.Handle}
}

// Handle verifies, reads, confirms and commits a callback. 200 once it is committed or known already; 404 for a forged
// or foreign one; 400 for one that cannot be read; 503 where it could not be committed, so that the operator comes again.
func (i *Inbox) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	name, order := req.Params["operator"], req.Params["orderId"]
	if err := operation.Genuine(ctx, req, i.Callbacks, callback.PaymentPath(name, order)); err != nil {
		return apigw.Response{}, err
	}
	req.Event.SetKey(order)
	claim, err := read(req.Body, order)
	if err != nil {
		return apigw.Response{}, err
	}
	entry, err := operation.Reported(ctx, req, i.Book, ledger.Key{Kind: ledger.Payment, ID: order})
	if err != nil {
		return apigw.Response{}, err
	}
	if !tokenHolds(entry, claim.notifToken) {
		return apigw.Response{}, fault.Of(fault.NoRoute)
	}
	return operation.Committed(i.commit(ctx, req, entry, claim))
}

// claim is what a callback says.
type claim struct {
	settlement.Report
	notifToken string
}

// read takes a callback's body, which is the payment notification of the specification, with the words that real
// platforms send for its status; its fields stand at the root or in an object "payload", as in an operator's answers
// (decision "pay-terminal"). What decides is read strictly: status, order, amount, currency. An id or a number of another
// form counts as absent, and whatever else there is, is ignored.
func read(body []byte, order string) (claim, error) {
	doc, err := strictjson.Parse(body)
	if err != nil {
		return claim{}, err
	}
	at := ""
	if doc.Object("payload") {
		at = "payload."
	}
	var c claim
	status, known := operator.StatusWord(doc.Text(at+"status", maxText))
	if !known {
		doc.Fail(fault.In(fault.Invalid, at+"status"))
	}
	c.Status = status
	if id, present := doc.OptionalText(at+"order-id", maxText); present && id != order {
		doc.Fail(fault.In(fault.Invalid, at+"order-id"))
	}
	c.Amount = doc.OptionalNumber(at + "amount")
	c.Currency, _ = doc.OptionalText(at+"currency", maxText)
	if f := doc.Fault(); f != nil {
		return claim{}, f
	}
	c.OperatorReference = scalar(doc, at+"Transaction-id")
	c.MSISDN = scalar(doc, at+"user_msisdn")
	c.notifToken = scalar(doc, at+"notif_token")
	return c, nil
}

// scalar reads a value that platforms send as a text or as a number; "" where it is absent, empty or too long.
func scalar(doc *strictjson.Reader, path string) string {
	if text, present := doc.OptionalText(path, maxText); present {
		return text
	}
	return doc.OptionalNumber(path)
}

// tokenHolds compares the web channel's notif_token where both sides have one (decision "callbacks").
func tokenHolds(e *ledger.Entry, given string) bool {
	if given == "" || e.NotifToken == "" {
		return true
	}
	return subtle.ConstantTimeCompare([]byte(given), []byte(e.NotifToken)) == 1
}

// commit makes of the claim what getStatus and the entry allow, and stores it. The payment's end may be reported before the
// answer to its creation is stored: the merchant's notification then has the notif_token from here.
func (i *Inbox) commit(ctx context.Context, req *apigw.Request, entry *ledger.Entry, c claim) error {
	if !c.Status.Final() {
		return nil
	}
	apply := i.confirm(ctx, req, entry, c.Report)
	conflicts := 0
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) {
		return i.Book.Apply(ctx, entry, func(e *ledger.Entry) error {
			if !change(e) {
				return ledger.ErrUnchanged
			}
			return nil
		})
	}
	settled, uncounted, err := i.Settlement.Keep(ctx, store, func(e *ledger.Entry) bool {
		kept := len(e.Conflicts)
		resolved := apply(e)
		conflicts = len(e.Conflicts) - kept
		if resolved != ledger.Same && e.NotifToken == "" {
			e.NotifToken = c.notifToken
		}
		return resolved != ledger.Same
	})
	if errors.Is(err, settlement.ErrUncounted) {
		// The operator is told to come again; should it not, the sweep asks about the claim.
		now := ledger.Moment(i.Now())
		_, failed := store(func(e *ledger.Entry) bool { return e.NoteClaim(i.waiting(c.Report, now), now) != ledger.Same })
		return errors.Join(err, failed)
	}
	if err != nil {
		return err
	}
	if uncounted != nil {
		req.Event.Count(telemetry.LimitFailures)
		req.Event.SetCause(uncounted)
	}
	req.Event.SetOutcome(string(settled.Status))
	req.Event.Add(telemetry.Conflicts, conflicts)
	return nil
}

// confirm asks getStatus, unless the payment is final already, and returns what is to be done with the entry. Where the
// operator offers no lookup the callback itself is the final word; where the lookup says another final status, that one
// stands and the claim is a conflict; where it says nothing final, the claim waits.
func (i *Inbox) confirm(ctx context.Context, req *apigw.Request, entry *ledger.Entry, report settlement.Report) func(*ledger.Entry) ledger.Resolved {
	now := ledger.Moment(i.Now())
	claimed := i.Settlement.Resolution(entry, report, settlement.SourceCallback)
	if entry.Settled() || claimed.Contradicts(entry) {
		return func(e *ledger.Entry) ledger.Resolved { return e.Resolve(claimed, now) }
	}
	start := i.Now()
	answer := i.Settlement.Ask(ctx, entry)
	req.Event.AddUpstream(i.Now().Sub(start))
	switch {
	case !answer.Offered:
		return func(e *ledger.Entry) ledger.Resolved { return e.Resolve(claimed, now) }
	case answer.Final:
		confirmed := i.Settlement.Resolution(entry, answer.Report, settlement.SourceStatus)
		return func(e *ledger.Entry) ledger.Resolved {
			resolved := e.Resolve(confirmed, now)
			if confirmed.Status == claimed.Status {
				return resolved
			}
			return max(resolved, e.NoteClaim(i.waiting(report, now), now))
		}
	default:
		return func(e *ledger.Entry) ledger.Resolved { return e.NoteClaim(i.waiting(report, now), now) }
	}
}

// waiting is a report as a claim, which the sweep asks about.
func (i *Inbox) waiting(r settlement.Report, now time.Time) ledger.Claim {
	return ledger.Claim{Status: r.Status, OperatorReference: r.OperatorReference, MSISDN: r.MSISDN, Due: now.Add(i.Recheck)}
}
