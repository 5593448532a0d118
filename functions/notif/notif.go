// Package notif handles the operators' payment callbacks: POST /callbacks/v1/payments/{operator}/{orderId}/{token}.
//
// A callback is a claim: its status becomes final only after getStatus has confirmed it, or a person where the operator
// has no getStatus (decision "pay-claims"). Its invariants: a forged request costs no read of the database. A callback
// with a final status gets 200 only after that status is stored, as a claim or as its result.
package notif

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/timeline"
)

// CallbackHandler verifies, confirms and stores payment callbacks.
type CallbackHandler struct {
	Verifier  *callback.Keys
	Book      *ledger.Book
	Confirmer *confirm.Confirmer
	// ClaimRecheckInterval is the wait before the sweep first looks up an unconfirmed claim.
	ClaimRecheckInterval time.Duration
	Now                  func() time.Time
}

// Routes returns the function's routes, as in template.yaml. Some platforms call back with PUT.
func (h *CallbackHandler) Routes() []apigw.Route {
	const perPayment = "/callbacks/v1/payments/{operator}/{orderId}/{token}"
	const perAccount = "/callbacks/v1/accounts/payments/{platform}/{account}/{secret}"
	return []apigw.Route{
		{Method: "POST", Resource: perPayment, Handle: h.Handle},
		{Method: "PUT", Resource: perPayment, Handle: h.Handle},
		{Method: "POST", Resource: perAccount, Handle: h.HandleStatic},
	}
}

// Handle verifies, reads, confirms and stores a callback to the address of one payment. It responds 200 if the callback
// is stored, now or before, or if its status is not final. A callback that cannot be read gets 200 once a lookup is due
// (decision "unread-callbacks"). It responds 404 if the callback is forged or the payment is not the operator's, and
// 503 if nothing was stored, so that the operator sends the callback again.
func (h *CallbackHandler) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	name, order := req.Params["operator"], req.Params["orderId"]
	proof, err := h.Verifier.VerifyRequest(ctx, req, callback.PaymentPath(name, order))
	if err != nil {
		return apigw.Response{}, err
	}
	req.LogLine.SetTransactionKey(order)
	entry, err := callback.FindTransaction(ctx, req, h.Book, ledger.Key{Kind: ledger.Payment, ID: order}, proof)
	if err != nil {
		return apigw.Response{}, err
	}
	report := h.readReport(entry, req.Body)
	if !notifTokenMatches(entry, report.NotifToken) {
		return apigw.Response{}, fault.New(fault.RouteNotFound)
	}
	return callback.Response(h.storeReport(ctx, req, entry, report))
}

// HandleStatic does the same for a callback to the one address of an account. The platform is authenticated before
// anything is read, and reports only on payments that are pinned to this account. Any other report gets 200: it
// concerns another system with the same account.
func (h *CallbackHandler) HandleStatic(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	driver, err := callback.VerifyStatic(ctx, req, h.Confirmer.Operators)
	if err != nil {
		return apigw.Response{}, err
	}
	reader, isReader := driver.(operator.PaymentCallbackReader)
	if !isReader {
		return apigw.Response{}, fault.New(fault.RouteNotFound)
	}
	report := reader.ReadPaymentCallback(req.Body)
	if report.OrderID == "" {
		req.LogLine.Increment(telemetry.UnreadCallbacks)
		return callback.Response(nil)
	}
	req.LogLine.SetTransactionKey(report.OrderID)
	entry, err := h.Book.Find(ctx, ledger.Key{Kind: ledger.Payment, ID: report.OrderID})
	if err != nil || !callback.IsPinned(req, entry) || isAboutAnother(report, entry) {
		return callback.Response(err)
	}
	req.LogLine.SetMerchant(entry.Merchant.Name)
	req.LogLine.SetRouting(entry.Route.Operator, entry.Route.Country, entry.Request.Channel)
	return callback.Response(h.storeReport(ctx, req, entry, report))
}

// readReport reads a callback with the driver that its payment is pinned to. A report on another order counts as
// unread.
func (h *CallbackHandler) readReport(entry *ledger.Entry, body []byte) operator.CallbackReport {
	reader, isReader := h.callbackReader(entry)
	if !isReader {
		return operator.CallbackReport{}
	}
	report := reader.ReadPaymentCallback(body)
	if isAboutAnother(report, entry) {
		return operator.CallbackReport{}
	}
	return report
}

// callbackReader returns the reader of the driver that a payment is pinned to, false for none.
func (h *CallbackHandler) callbackReader(entry *ledger.Entry) (operator.PaymentCallbackReader, bool) {
	driver, _ := h.Confirmer.Operators.DriverOf(entry)
	reader, isReader := driver.(operator.PaymentCallbackReader)
	return reader, isReader
}

// isAboutAnother reports whether a callback names another payment than the entry.
func isAboutAnother(report operator.CallbackReport, entry *ledger.Entry) bool {
	return report.OrderID != "" && report.OrderID != entry.ID ||
		report.UpstreamKey != "" && report.UpstreamKey != entry.Route.UpstreamKey
}

// notifTokenMatches compares the web channel's notif_token, if the callback and the entry have one (decision
// "callbacks").
func notifTokenMatches(e *ledger.Entry, received string) bool {
	if received == "" || e.Outbox.NotifToken == "" {
		return true
	}
	return subtle.ConstantTimeCompare([]byte(received), []byte(e.Outbox.NotifToken)) == 1
}

// requestLookup makes the lookup of a payment due, because its callback could not be read. The sweep makes at most one
// a minute. A driver without a reader leaves each callback to the lookup, so that one is not counted.
func (h *CallbackHandler) requestLookup(ctx context.Context, req *apigw.Request, entry *ledger.Entry) error {
	if _, isReader := h.callbackReader(entry); isReader {
		req.LogLine.Increment(telemetry.UnreadCallbacks)
	}
	_, err := h.Book.ApplyChange(ctx, entry, func(e *ledger.Entry) ledger.Transition {
		requested := e.RequestLookup(ledger.Timestamp(h.Now()))
		if requested {
			e.AddReport(timeline.Event{Kind: timeline.Callback, At: e.Poll.At, Outcome: timeline.UnknownStatus})
		}
		return ledger.RequestLookup.If(requested)
	})
	return err
}

// storeReport confirms a report and stores the result. A status that is not final changes nothing. A callback may come
// before the response to the payment request is stored; the merchant's notification then has the callback's
// notif_token.
func (h *CallbackHandler) storeReport(
	ctx context.Context, req *apigw.Request, entry *ledger.Entry, c operator.CallbackReport,
) error {
	switch {
	case c.Status == "":
		return h.requestLookup(ctx, req, entry)
	case !c.Status.Final(), h.isScheduledClaim(entry, c.StatusReport):
		return nil
	}
	apply := h.confirmClaim(ctx, req, entry, c.StatusReport)
	store := func(change func(*ledger.Entry) ledger.Transition) (*ledger.Entry, error) {
		return h.Book.ApplyChange(ctx, entry, change)
	}
	updated, err := h.Confirmer.Store(ctx, req.LogLine, store, func(e *ledger.Entry) ledger.Transition {
		wasFinal := e.StatusFinal() // then the notification is queued, and its body must not change
		made := apply(e)
		if made != ledger.NoTransition && !wasFinal && e.Outbox.NotifToken == "" {
			e.Outbox.NotifToken = c.NotifToken
		}
		return made
	})
	if errors.Is(err, dailyamount.ErrNotReserved) {
		// The response 503 makes the operator send the callback again. If it does not, the sweep looks up the claim.
		// That lookup is due now, so that the repeat is not taken for one that needs none.
		now := ledger.Timestamp(h.Now())
		claim := newClaim(c.StatusReport, now)
		_, storeErr := store(keepReports(func(e *ledger.Entry) ledger.Transition {
			return ledger.AddClaim.After(e.AddClaim(claim, now))
		}, callbackEvent(c.StatusReport, now)))
		return errors.Join(err, storeErr)
	}
	if err == nil {
		req.LogLine.SetOutcome(string(updated.Status))
	}
	return err
}

// isScheduledClaim reports whether a report repeats the stored claim of an entry, whose next lookup is due later. The
// sweep makes that lookup, so that the repeats of one signed callback cost the operator nothing.
func (h *CallbackHandler) isScheduledClaim(entry *ledger.Entry, r operator.StatusReport) bool {
	claim := entry.Claim
	return !entry.StatusFinal() && claim.CheckAt.After(h.Now()) && claim.Status == r.Status &&
		claim.OperatorReference == r.OperatorReference && claim.MSISDN == r.MSISDN &&
		!h.Confirmer.NewStatusReport(entry, r, ledger.SourceCallback).Contradicts(entry)
}

// confirmClaim calls getStatus, unless the payment is final already or the claim contradicts the entry, and returns the
// change of the entry. Without a lookup the claim waits for a person. If the lookup returns another final status,
// that one becomes final and the claim is recorded as a conflict. Otherwise the claim waits for the sweep.
func (h *CallbackHandler) confirmClaim(
	ctx context.Context, req *apigw.Request, entry *ledger.Entry, report operator.StatusReport,
) func(*ledger.Entry) ledger.Transition {
	now := ledger.Timestamp(h.Now())
	claimReport := h.Confirmer.NewStatusReport(entry, report, ledger.SourceCallback)
	if entry.StatusFinal() || claimReport.Contradicts(entry) {
		return keepReports(func(e *ledger.Entry) ledger.Transition {
			return ledger.EndPayment.After(e.ApplyFinalStatus(claimReport, now))
		}, callbackEvent(report, now))
	}
	start := h.Now()
	lookup := h.Confirmer.LookUpClaim(ctx, req.LogLine, entry, start.Sub(req.StartedAt))
	req.LogLine.AddOperatorTime(h.Now().Sub(start))
	claim := newClaim(report, now.Add(h.ClaimRecheckInterval))
	addClaim := func(e *ledger.Entry) ledger.Transition { return ledger.AddClaim.After(e.AddClaim(claim, now)) }
	reports := []timeline.Event{callbackEvent(report, now)}
	if lookup.Supported {
		reports = append(reports, lookup.TimelineEvent(now))
	}
	if !lookup.StatusFinal {
		return keepReports(addClaim, reports...)
	}
	lookupReport := h.Confirmer.NewStatusReport(entry, lookup.Report, ledger.SourceLookup)
	return keepReports(func(e *ledger.Entry) ledger.Transition {
		made := ledger.EndPayment.After(e.ApplyFinalStatus(lookupReport, now))
		if lookupReport.Status != claimReport.Status {
			made = cmp.Or(made, addClaim(e))
		}
		return made
	}, reports...)
}

// keepReports returns a change that also keeps reports in the timeline, if it changes the entry.
func keepReports(
	change func(*ledger.Entry) ledger.Transition, reports ...timeline.Event,
) func(*ledger.Entry) ledger.Transition {
	return func(e *ledger.Entry) ledger.Transition {
		made := change(e)
		if made != ledger.NoTransition {
			for _, report := range reports {
				e.AddReport(report)
			}
		}
		return made
	}
}

// callbackEvent returns a callback as the timeline has it.
func callbackEvent(r operator.StatusReport, at time.Time) timeline.Event {
	return timeline.Event{
		Kind: timeline.Callback, At: at, Outcome: ledger.ReportOutcome(r.Status), Code: r.Code,
	}
}

// newClaim returns the claim of a report, which the sweep looks up at checkAt.
func newClaim(r operator.StatusReport, checkAt time.Time) ledger.Claim {
	return ledger.Claim{Status: r.Status, OperatorReference: r.OperatorReference, MSISDN: r.MSISDN, CheckAt: checkAt}
}
