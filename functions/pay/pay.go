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
	Pipeline *operation.Pipeline
	// CallbackKeys signs the address at which the operator reports.
	CallbackKeys operation.CallbackKeys
	// CallbackBaseURL is the base of that address; "" for the request's own (decision "base-url").
	CallbackBaseURL string
	// OutgoingPolicy is the rule for addresses that merchants choose.
	OutgoingPolicy outgoing.Policy
	// FirstPollDelay is how long after the answer the operator is first asked for the status.
	FirstPollDelay time.Duration
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
	profile, doc, err := o.Pipeline.AuthenticateAndDecode(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	params, err := o.readParams(req, doc, profile)
	if err != nil {
		return apigw.Response{}, err
	}
	if !profile.Allows("pay", params.country.Alpha2, params.capabilities.Operator) || params.merchantName != profile.Name {
		return apigw.Response{}, fault.New(fault.Forbidden)
	}
	// Reserve.
	entry, ring, err := o.newEntry(ctx, profile, params)
	if err != nil {
		return apigw.Response{}, err
	}
	req.LogLine.SetTransactionKey(entry.ID)
	operation.LogRouting(req, entry)
	reservation, existing, err := o.Pipeline.Reserve(ctx, req, entry, entry.ID, partOrderID)
	if err != nil && isFinalWithoutResponse(existing, entry) {
		existing.ResponseStatus, existing.ResponseBody = statusCreated, payment.ResponseBody(existing, ledger.Pending)
		return buildResponse(existing, params, true), nil
	}
	if err != nil {
		return apigw.Response{}, err
	}
	if existing != nil {
		return buildResponse(existing, params, true), nil
	}
	if err := o.Pipeline.ReserveDailyAmount(ctx, req, profile, reservation); err != nil {
		return apigw.Response{}, err
	}
	// Call the operator.
	var response operator.PayResponse
	response.Result = o.Pipeline.CallOperator(ctx, req, reservation, func(ctx context.Context, driver operator.Driver) operator.Result {
		response = driver.Pay(ctx, params.operatorCall(reservation, ring.PaymentURL(cmp.Or(o.CallbackBaseURL, req.BaseURL), reservation.Operator, reservation.ID)))
		return response.Result
	})
	// Settle and respond.
	updated, err := o.Pipeline.RecordOutcome(ctx, req, reservation, response.Result, o.callOutcomes(reservation, response, params))
	if err != nil {
		return apigw.Response{}, err
	}
	return buildResponse(updated, params, false), nil
}

// callOutcomes is what is kept for each end of the call. A payment refused at once is failed, and its merchant has been
// told by the answer; an unknown outcome is pending on a terminal, and has no page to show on the web
// (decision "pay-unknown").
func (o *Operation) callOutcomes(reservation *ledger.Entry, response operator.PayResponse, m *paymentParams) operation.CallOutcomes {
	firstPollAt := o.Pipeline.Now().Add(o.FirstPollDelay)
	outcomes := operation.CallOutcomes{
		Done:    ledger.CallOutcome{Status: ledger.Pending, FirstPollAt: firstPollAt},
		Refused: ledger.CallOutcome{Status: ledger.Failed},
		Unknown: ledger.CallOutcome{Status: ledger.Pending, FirstPollAt: firstPollAt},
	}
	if m.channel == channelWeb {
		outcomes.Done.ResponseStatus = statusCreated
		outcomes.Done.ResponseBody = webResponseBody(response, reservation.MerchantState)
		outcomes.Done.NotifToken = response.NotifToken
		return outcomes
	}
	accepted := *reservation
	accepted.OperatorReference = response.OperatorReference
	outcomes.Done.ResponseStatus, outcomes.Done.ResponseBody = statusCreated, payment.ResponseBody(&accepted, ledger.Pending)
	outcomes.Unknown.ResponseStatus, outcomes.Unknown.ResponseBody = statusCreated, payment.ResponseBody(reservation, ledger.Pending)
	return outcomes
}

// isFinalWithoutResponse is true for the repeat of a terminal's payment that became final before its answer was stored: what the
// answer would have been is known, and it is not sent again (decision "pay-repeat").
func isFinalWithoutResponse(existing, entry *ledger.Entry) bool {
	return existing != nil && existing.Channel != channelWeb && existing.StatusFinal() && existing.ResponseStatus == 0 &&
		existing.Fingerprint == entry.Fingerprint && existing.MerchantID == entry.MerchantID
}

// buildResponse makes the answer from what is stored, with the one-time code of the request in hand where a terminal's
// payment was accepted.
func buildResponse(e *ledger.Entry, m *paymentParams, replayed bool) apigw.Response {
	response := operation.StoredResponse(e, "", replayed)
	if m.channel != channelWeb && response.Status == statusCreated {
		response.Body = payment.InsertOTP(response.Body, m.otp)
	}
	return response
}

// newEntry is the reservation of a payment, with the keys that will sign its callback address: whatever can fail without
// the operator fails here, before anything is stored.
func (o *Operation) newEntry(ctx context.Context, profile *merchant.Profile, m *paymentParams) (*ledger.Entry, *callback.Ring, error) {
	ring, err := o.CallbackKeys.Ring(ctx)
	if err != nil {
		return nil, nil, fault.NewInternal(err)
	}
	now := o.Pipeline.Now()
	e := &ledger.Entry{
		Key:               ledger.Key{Kind: ledger.Payment, ID: m.orderID},
		MerchantID:        profile.ID,
		Merchant:          profile.Name,
		State:             ledger.Reserved,
		Status:            ledger.Pending,
		CreatedAt:         now,
		Fingerprint:       ledger.Fingerprint(m.canonical, m.country.Alpha2, m.capabilities.Operator, m.channel),
		UpstreamKey:       m.orderID,
		Country:           m.country.Alpha2,
		CountryAsSent:     m.countryText,
		Operator:          m.capabilities.Operator,
		Channel:           m.channel,
		Lang:              m.lang,
		AmountMinor:       m.minor,
		Exponent:          m.country.Exponent,
		Currency:          m.currency,
		AmountAsSent:      m.amountText,
		TransactionID:     ledger.PaymentTransactionID(m.orderID),
		MerchantState:     m.state,
		MerchantReference: m.reference,
		MSISDN:            m.msisdn,
		NotifyURL:         m.notifURL,
	}
	_, e.CountsDailyAmount = profile.DailyAmountLimit(m.currency)
	if o.Retention > 0 {
		e.ExpireAt = now.Add(o.Retention)
	}
	return e, ring, nil
}
