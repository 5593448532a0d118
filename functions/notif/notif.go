// Package notif handles the operators' payment callbacks: POST /callbacks/v1/payments/{operator}/{orderId}/{token}.
//
// A callback is a claim: its status becomes final only after getStatus has confirmed it, if the operator offers
// getStatus (decision "pay-claims"). Its invariants: a forged request costs no read of the database. A callback with a
// final status gets 200 only after that status is stored, as a claim or as its result.
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

// maxTextLength is the limit of each text of a callback, in characters.
const maxTextLength = 255

// CallbackHandler verifies, confirms and stores payment callbacks.
type CallbackHandler struct {
	Verifier     *callback.Keys
	Book         *ledger.Book
	Reconciler   *reconcile.Reconciler
	DailyAmounts *dailyamount.Counter
	// ClaimRecheckInterval is the wait before the sweep first looks up an unconfirmed claim.
	ClaimRecheckInterval time.Duration
	Now                  func() time.Time
}

// Route returns the function's route, as in template.yaml.
func (i *CallbackHandler) Route() apigw.Route {
	return apigw.Route{
		Method: "POST", Resource: "/callbacks/v1/payments/{operator}/{orderId}/{token}", Handle: i.Handle,
	}
}

// Handle verifies, decodes, confirms and stores a callback. It responds 200 if the callback is stored, now or before,
// or if its status is not final. It responds 404 if the callback is forged or the payment is not the operator's, and
// 400 if it cannot be decoded. It responds 503 if nothing was stored, so that the operator sends the callback again.
func (i *CallbackHandler) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	name, order := req.Params["operator"], req.Params["orderId"]
	proof, err := i.Verifier.VerifyRequest(ctx, req, callback.PaymentPath(name, order))
	if err != nil {
		return apigw.Response{}, err
	}
	req.LogLine.SetTransactionKey(order)
	claim, err := readClaim(req.Body, order)
	if err != nil {
		return apigw.Response{}, err
	}
	entry, err := callback.FindTransaction(ctx, req, i.Book, ledger.Key{Kind: ledger.Payment, ID: order}, proof)
	if err != nil {
		return apigw.Response{}, err
	}
	if !notifTokenMatches(entry, claim.notifToken) {
		return apigw.Response{}, fault.New(fault.RouteNotFound)
	}
	return callback.Response(i.storeClaim(ctx, req, entry, claim))
}

// callbackClaim is the decoded body of a callback.
type callbackClaim struct {
	reconcile.OperatorReport
	notifToken string
}

// readClaim decodes the body of a callback: the payment notification of the specification, with the status texts that
// operators really send. Its fields are at the root or in an object "payload" (decision "pay-terminal"). Status, order,
// amount and currency are read strictly. An id or a number of another form counts as absent; other fields are ignored.
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
	c.StatusDescription = textOrNumber(doc, prefix+"statusDescription")
	c.notifToken = textOrNumber(doc, prefix+"notif_token")
	return c, nil
}

// textOrNumber reads a value that operators send as a text or as a number; "" if it is absent, empty or too long.
func textOrNumber(doc *strictjson.Reader, path string) string {
	if text, present := doc.OptionalText(path, maxTextLength); present {
		return text
	}
	return doc.OptionalNumber(path)
}

// notifTokenMatches compares the web channel's notif_token, if the callback and the entry have one (decision
// "callbacks").
func notifTokenMatches(e *ledger.Entry, received string) bool {
	if received == "" || e.NotifToken == "" {
		return true
	}
	return subtle.ConstantTimeCompare([]byte(received), []byte(e.NotifToken)) == 1
}

// storeClaim confirms a claim and stores the result. A claim whose status is not final changes nothing. A callback may
// come before the response to the payment request is stored; the merchant's notification then has the callback's
// notif_token.
func (i *CallbackHandler) storeClaim(
	ctx context.Context, req *apigw.Request, entry *ledger.Entry, c callbackClaim,
) error {
	if !c.Status.Final() {
		return nil
	}
	apply := i.confirmClaim(ctx, req, entry, c.OperatorReport)
	conflicts := 0
	store := func(change func(*ledger.Entry) bool) (*ledger.Entry, error) {
		return i.Book.ApplyChange(ctx, entry, change)
	}
	updated, refundErr, err := i.DailyAmounts.StoreChange(ctx, store, func(e *ledger.Entry) bool {
		conflictsBefore := len(e.Conflicts)
		effect := apply(e)
		conflicts = len(e.Conflicts) - conflictsBefore
		if effect != ledger.Unchanged && e.NotifToken == "" {
			e.NotifToken = c.notifToken
		}
		return effect != ledger.Unchanged
	})
	if errors.Is(err, dailyamount.ErrNotReserved) {
		// The response 503 makes the operator send the callback again. If it does not, the sweep looks up the claim.
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

// confirmClaim calls getStatus, unless the payment is final already or the claim contradicts the entry, and returns the
// change of the entry. Without a lookup the claimed status becomes final. If the lookup returns another final status,
// that one becomes final and the claim is recorded as a conflict. Otherwise the claim waits for the sweep.
func (i *CallbackHandler) confirmClaim(
	ctx context.Context, req *apigw.Request, entry *ledger.Entry, report reconcile.OperatorReport,
) func(*ledger.Entry) ledger.Effect {
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
			effect := e.ApplyFinalStatus(lookupReport, now)
			if lookupReport.Status == claimReport.Status {
				return effect
			}
			return max(effect, e.AddClaim(i.pendingClaim(report, now), now))
		}
	default:
		return func(e *ledger.Entry) ledger.Effect { return e.AddClaim(i.pendingClaim(report, now), now) }
	}
}

// pendingClaim returns the claim of a report, which the sweep looks up.
func (i *CallbackHandler) pendingClaim(r reconcile.OperatorReport, now time.Time) ledger.Claim {
	return ledger.Claim{
		Status: r.Status, OperatorReference: r.OperatorReference, MSISDN: r.MSISDN,
		CheckAt: now.Add(i.ClaimRecheckInterval),
	}
}
