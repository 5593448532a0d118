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
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/reconcile"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/telemetry"
)

// Method and Resource are the route as template.yaml has it.
const (
	Method   = "POST"
	Resource = "/callbacks/v1/payments/{operator}/{orderId}/{token}"
)

// maxTextLength is the limit of a text that is read of a callback, in characters.
const maxTextLength = 255

// CallbackHandler takes payment callbacks in.
type CallbackHandler struct {
	Verifier     *callback.Keys
	Book         *ledger.Book
	Reconciler   *reconcile.Reconciler
	DailyAmounts *dailyamount.Counter
	// ClaimRecheckDelay is how long after an unconfirmed claim getStatus is asked again.
	ClaimRecheckDelay time.Duration
	Now               func() time.Time
}

// Route is the function's entry in the gateway.
func (i *CallbackHandler) Route() apigw.Route {
	return apigw.Route{Method: Method, Resource: Resource, Handle: i.Handle}
}

// Handle verifies, reads, confirms and commits a callback. 200 once it is committed or known already; 404 for a forged
// or foreign one; 400 for one that cannot be read; 503 where it could not be committed, so that the operator comes again.
func (i *CallbackHandler) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	name, order := req.Params["operator"], req.Params["orderId"]
	if err := i.Verifier.VerifyRequest(ctx, req, callback.PaymentPath(name, order)); err != nil {
		return apigw.Response{}, err
	}
	req.LogLine.SetTransactionKey(order)
	claim, err := readClaim(req.Body, order)
	if err != nil {
		return apigw.Response{}, err
	}
	entry, err := callback.FindTransaction(ctx, req, i.Book, ledger.Key{Kind: ledger.Payment, ID: order})
	if err != nil {
		return apigw.Response{}, err
	}
	if !notifTokenMatches(entry, claim.notifToken) {
		return apigw.Response{}, fault.New(fault.RouteNotFound)
	}
	return callback.Response(i.storeClaim(ctx, req, entry, claim))
}

// callbackClaim is what a callback says.
type callbackClaim struct {
	reconcile.OperatorReport
	notifToken string
}

// readClaim takes a callback's body, which is the payment notification of the specification, with the words that real
// platforms send for its status; its fields stand at the root or in an object "payload", as in an operator's answers
// (decision "pay-terminal"). What decides is read strictly: status, order, amount, currency. An id or a number of another
// form counts as absent, and whatever else there is, is ignored.
func readClaim(body []byte, order string) (callbackClaim, error) {
	doc, err := strictjson.Parse(body)
	if err != nil {
		return callbackClaim{}, err
	}
	prefix := ""
	if doc.HasObject("payload") {
		prefix = "payload."
	}
	var c callbackClaim
	status, known := operator.ParsePaymentStatus(doc.Text(prefix+"status", maxTextLength))
	if !known {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, prefix+"status"))
	}
	c.Status = status
	if id, present := doc.OptionalText(prefix+"order-id", maxTextLength); present && id != order {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, prefix+"order-id"))
	}
	c.Amount = doc.OptionalNumber(prefix + "amount")
	c.Currency, _ = doc.OptionalText(prefix+"currency", maxTextLength)
	if f := doc.FirstFault(); f != nil {
		return callbackClaim{}, f
	}
	c.OperatorReference = textOrNumber(doc, prefix+"Transaction-id")
	c.MSISDN = textOrNumber(doc, prefix+"user_msisdn")
	c.notifToken = textOrNumber(doc, prefix+"notif_token")
	return c, nil
}

// textOrNumber reads a value that platforms send as a text or as a number; "" where it is absent, empty or too long.
func textOrNumber(doc *strictjson.Reader, path string) string {
	if text, present := doc.OptionalText(path, maxTextLength); present {
		return text
	}
	return doc.OptionalNumber(path)
}

// notifTokenMatches compares the web channel's notif_token where both sides have one (decision "callbacks").
func notifTokenMatches(e *ledger.Entry, received string) bool {
	if received == "" || e.NotifToken == "" {
		return true
	}
	return subtle.ConstantTimeCompare([]byte(received), []byte(e.NotifToken)) == 1
}

// storeClaim makes of the claim what getStatus and the entry allow, and stores it. The payment's end may be reported before the
// answer to its creation is stored: the merchant's notification then has the notif_token from here.
func (i *CallbackHandler) storeClaim(ctx context.Context, req *apigw.Request, entry *ledger.Entry, c callbackClaim) error {
	if !c.Status.Final() {
		return nil
	}
	apply := i.confirmClaim(ctx, req, entry, c.OperatorReport)
	conflicts := 0
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) {
		return i.Book.ChangeKnown(ctx, entry, func(e *ledger.Entry) error {
			if !change(e) {
				return ledger.ErrUnchanged
			}
			return nil
		})
	}
	updated, refundErr, err := i.DailyAmounts.StoreChange(ctx, store, func(e *ledger.Entry) bool {
		conflictsBefore := len(e.Conflicts)
		resolved := apply(e)
		conflicts = len(e.Conflicts) - conflictsBefore
		if resolved != ledger.Unchanged && e.NotifToken == "" {
			e.NotifToken = c.notifToken
		}
		return resolved != ledger.Unchanged
	})
	if errors.Is(err, dailyamount.ErrNotReserved) {
		// The operator is told to come again; should it not, the sweep asks about the claim.
		now := ledger.Timestamp(i.Now())
		_, storeErr := store(func(e *ledger.Entry) bool {
			return e.AddClaim(i.pendingClaim(c.OperatorReport, now), now) != ledger.Unchanged
		})
		return errors.Join(err, storeErr)
	}
	if err != nil {
		return err
	}
	if refundErr != nil {
		req.LogLine.Increment(telemetry.LimitStoreFailures)
		req.LogLine.SetCause(refundErr)
	}
	req.LogLine.SetOutcome(string(updated.Status))
	req.LogLine.Add(telemetry.StatusConflicts, conflicts)
	return nil
}

// confirmClaim asks getStatus, unless the payment is final already, and returns what is to be done with the entry. Where the
// operator offers no lookup the callback itself is the final word; where the lookup says another final status, that one
// stands and the claim is a conflict; where it says nothing final, the claim waits.
func (i *CallbackHandler) confirmClaim(ctx context.Context, req *apigw.Request, entry *ledger.Entry, report reconcile.OperatorReport) func(*ledger.Entry) ledger.Effect {
	now := ledger.Timestamp(i.Now())
	claimReport := i.Reconciler.NewStatusReport(entry, report, reconcile.SourceCallback)
	if entry.StatusFinal() || claimReport.Contradicts(entry) {
		return func(e *ledger.Entry) ledger.Effect { return e.ApplyFinalStatus(claimReport, now) }
	}
	start := i.Now()
	lookup := i.Reconciler.LookUp(ctx, entry)
	req.LogLine.AddOperatorTime(i.Now().Sub(start))
	switch {
	case !lookup.Supported:
		return func(e *ledger.Entry) ledger.Effect { return e.ApplyFinalStatus(claimReport, now) }
	case lookup.StatusFinal:
		lookupReport := i.Reconciler.NewStatusReport(entry, lookup.Report, reconcile.SourceStatus)
		return func(e *ledger.Entry) ledger.Effect {
			resolved := e.ApplyFinalStatus(lookupReport, now)
			if lookupReport.Status == claimReport.Status {
				return resolved
			}
			return max(resolved, e.AddClaim(i.pendingClaim(report, now), now))
		}
	default:
		return func(e *ledger.Entry) ledger.Effect { return e.AddClaim(i.pendingClaim(report, now), now) }
	}
}

// pendingClaim is a report as a claim, which the sweep asks about.
func (i *CallbackHandler) pendingClaim(r reconcile.OperatorReport, now time.Time) ledger.Claim {
	return ledger.Claim{Status: r.Status, OperatorReference: r.OperatorReference, MSISDN: r.MSISDN, CheckAt: now.Add(i.ClaimRecheckDelay)}
}
