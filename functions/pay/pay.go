// Package pay is the mobile money payment: POST /mobilemoney/v1, for the web, tpe and ussd channels.
//
// It creates one payment per order_id, whatever gets lost or repeated. Its invariant: the operator is called only under
// a reservation that is ours, and always with the same order_id; a one-time code is never stored.
package pay

import (
	"cmp"
	"context"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/payment"
)

// Method and Resource are the route of the operation as template.yaml has it.
const (
	Method   = "POST"
	Resource = "/mobilemoney/v1"
)

// Operation is the payment operation with all it needs.
type Operation struct {
	Desk *operation.Desk
	// Callbacks signs the address at which the operator reports.
	Callbacks operation.Callbacks
	// CallbackBase is the base of that address; "" for the request's own (decision "base-url").
	CallbackBase string
	// Outgoing is the rule for addresses that merchants choose.
	Outgoing outgoing.Policy
	// FirstPoll is how long after the answer the operator is first asked for the status.
	FirstPoll time.Duration
	// Retention is how long a payment is kept; 0: for ever.
	Retention time.Duration
}

// Route is the operation's entry in the gateway.
func (o *Operation) Route() apigw.Route {
	return apigw.Route{Method: Method, Resource: Resource, Handle: o.Handle}
}

// Handle is the flow of a payment in its seven steps. It answers 201 with the web channel's page or the terminal's
// pending payment; the stored answer on a repeat; the operator's refusal; or a fault of the order of refusals, of the
// order_id (409), of the merchant's amount of the day (403 POL0001) or of the operator call (502, 503, on the web channel 504).
func (o *Operation) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	// Decode and authenticate.
	profile, doc, err := o.Desk.Admit(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	message, err := o.read(req, doc, profile)
	if err != nil {
		return apigw.Response{}, err
	}
	if !profile.Allows("pay", message.country.Alpha2, message.able.Operator) || message.owner != profile.Name {
		return apigw.Response{}, fault.Of(fault.Forbidden)
	}
	// Reserve.
	entry, ring, err := o.entry(ctx, profile, message)
	if err != nil {
		return apigw.Response{}, err
	}
	req.Event.SetKey(entry.ID)
	operation.Note(req, entry)
	held, stored, err := o.Desk.Hold(ctx, req, entry, entry.ID, partOrder)
	if err != nil && finalUnanswered(stored, entry) {
		stored.AnswerStatus, stored.AnswerBody = created, payment.Answer(stored, ledger.Pending)
		return respond(stored, message, true), nil
	}
	if err != nil {
		return apigw.Response{}, err
	}
	if stored != nil {
		return respond(stored, message, true), nil
	}
	if err := o.Desk.Spend(ctx, req, profile, held); err != nil {
		return apigw.Response{}, err
	}
	// Call the operator.
	var answer operator.PayAnswer
	answer.Result = o.Desk.Call(ctx, req, held, func(ctx context.Context, driver operator.Driver) operator.Result {
		answer = driver.Pay(ctx, message.call(held, ring.PaymentURL(cmp.Or(o.CallbackBase, req.BaseURL), held.Operator, held.ID)))
		return answer.Result
	})
	// Settle and respond.
	settled, err := o.Desk.Settle(ctx, req, held, answer.Result, o.outcomes(held, answer, message))
	if err != nil {
		return apigw.Response{}, err
	}
	return respond(settled, message, false), nil
}

// outcomes is what is kept for each end of the call. A payment refused at once is failed, and its merchant has been
// told by the answer; an unknown outcome is pending on a terminal, and has no page to show on the web
// (decision "pay-unknown").
func (o *Operation) outcomes(held *ledger.Entry, answer operator.PayAnswer, m *message) operation.Outcomes {
	poll := o.Desk.Now().Add(o.FirstPoll)
	outcomes := operation.Outcomes{
		Done:    ledger.Settlement{Status: ledger.Pending, Due: poll},
		Refused: ledger.Settlement{Status: ledger.Failed},
		Unknown: ledger.Settlement{Status: ledger.Pending, Due: poll},
	}
	if m.channel == channelWeb {
		outcomes.Done.AnswerStatus = created
		outcomes.Done.AnswerBody = webAnswer(answer, held.MerchantState)
		outcomes.Done.NotifToken = answer.NotifToken
		return outcomes
	}
	told := *held
	told.OperatorReference = answer.OperatorReference
	outcomes.Done.AnswerStatus, outcomes.Done.AnswerBody = created, payment.Answer(&told, ledger.Pending)
	outcomes.Unknown.AnswerStatus, outcomes.Unknown.AnswerBody = created, payment.Answer(held, ledger.Pending)
	return outcomes
}

// finalUnanswered is true for the repeat of a terminal's payment that became final before its answer was stored: what the
// answer would have been is known, and it is not sent again (decision "pay-repeat").
func finalUnanswered(stored, entry *ledger.Entry) bool {
	return stored != nil && stored.Channel != channelWeb && stored.Settled() && stored.AnswerStatus == 0 &&
		stored.Fingerprint == entry.Fingerprint && stored.MerchantID == entry.MerchantID
}

// respond makes the answer from what is stored, with the one-time code of the request in hand where a terminal's
// payment was accepted.
func respond(e *ledger.Entry, m *message, replayed bool) apigw.Response {
	response := operation.Stored(e, "", replayed)
	if m.channel != channelWeb && response.Status == created {
		response.Body = payment.WithOTP(response.Body, m.otp)
	}
	return response
}

// entry is the reservation of a payment, with the keys that will sign its callback address: whatever can fail without
// the operator fails here, before anything is stored.
func (o *Operation) entry(ctx context.Context, profile *merchant.Profile, m *message) (*ledger.Entry, *callback.Ring, error) {
	ring, err := o.Callbacks.Ring(ctx)
	if err != nil {
		return nil, nil, fault.Because(err)
	}
	now := o.Desk.Now()
	e := &ledger.Entry{
		Key:           ledger.Key{Kind: ledger.Payment, ID: m.orderID},
		MerchantID:    profile.ID,
		Merchant:      profile.Name,
		State:         ledger.Reserved,
		Status:        ledger.Pending,
		CreatedAt:     now,
		Fingerprint:   ledger.Fingerprint(m.canonical, m.country.Alpha2, m.able.Operator, m.channel),
		UpstreamKey:   m.orderID,
		Country:       m.country.Alpha2,
		CountryText:   m.countryText,
		Operator:      m.able.Operator,
		Channel:       m.channel,
		Lang:          m.lang,
		Minor:         m.minor,
		Exponent:      m.country.Exponent,
		Currency:      m.currency,
		AmountText:    m.amountText,
		PaymentID:     ledger.PaymentTransactionID(m.orderID),
		MerchantState: m.state,
		RefText:       m.reference,
		MSISDN:        m.msisdn,
		NotifyURL:     m.notifURL,
	}
	_, e.Limited = profile.DailyLimit(m.currency)
	if o.Retention > 0 {
		e.ExpireAt = now.Add(o.Retention)
	}
	return e, ring, nil
}
