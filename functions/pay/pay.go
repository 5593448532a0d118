// Package pay is the mobile money payment: POST /mobilemoney/v1, for the channels web, tpe and ussd.
//
// It creates at most one payment for each order_id, however often requests are lost or repeated. Its invariant: the
// operator is called only under a reservation of ours, and always with the same order_id. A one-time code is never
// stored.
package pay

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/payment"
)

// Operation is the payment operation and its dependencies.
type Operation struct {
	Pipeline *operation.Pipeline
	// CallbackKeys signs the URL to which the operator sends its callback.
	CallbackKeys *callback.Keys
	// CallbackBaseURL is the base of that URL; "" for the request's own (decision "base-url").
	CallbackBaseURL string
	// OutgoingPolicy restricts the URLs that merchants choose.
	OutgoingPolicy outgoing.Policy
	// FirstPollDelay is the time from the response to the first lookup at the operator.
	FirstPollDelay time.Duration
	// Retention is how long a payment is kept; 0 keeps it without limit.
	Retention time.Duration
}

// Route returns the operation's route, as in template.yaml.
func (o *Operation) Route() apigw.Route {
	return apigw.Route{Method: "POST", Resource: "/mobilemoney/v1", Handle: o.Handle}
}

// Handle creates a payment in seven steps. It returns 201 with the page of the web channel or the pending payment of
// a terminal. It replays a stored response, and returns the operator's refusal. Else it returns a fault: of the order
// of refusals, of the order_id (409) or of the daily amount (403 POL0001). The faults of the operator call are 502
// and 503, and 504 on the web channel.
func (o *Operation) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	// Authenticate and read the body.
	profile, doc, err := o.Pipeline.AuthenticateAndReadBody(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	params, err := o.readParams(ctx, req, doc, profile)
	if err != nil {
		return apigw.Response{}, err
	}
	if err := params.checkEntitled(profile); err != nil {
		return apigw.Response{}, err
	}
	// Reserve. Everything that can fail without the operator fails before anything is stored.
	ring, err := o.CallbackKeys.Ring(ctx)
	if err != nil {
		return apigw.Response{}, fault.NewInternal(err)
	}
	entry, err := o.newEntry(params)
	if err != nil {
		return apigw.Response{}, fault.NewInternal(err)
	}
	entry.CallbackKeys, params.choice.NotYet = ring.KeyNumbers(), ring.NotYet
	req.LogLine.SetTransactionKey(entry.ID)
	operation.LogRouting(req, entry)
	key := operation.IdempotencyKey{Value: entry.ID, Part: partOrderID}
	reservation, existing, err := o.Pipeline.Reserve(ctx, req, profile, entry, params.choice, key)
	if err != nil && isFinalWithoutResponse(existing, entry) {
		existing, err = o.storeMissingResponse(ctx, existing)
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
	callbackBase := cmp.Or(o.CallbackBaseURL, req.BaseURL)
	callbackURL := ring.PaymentURL(callbackBase, reservation.Operator, reservation.ID)
	var response operator.PayResponse
	response.Result = o.Pipeline.CallOperator(ctx, req, reservation,
		func(ctx context.Context, driver operator.Driver, common operator.Call) operator.Result {
			call := params.operatorCall(common, callbackURL)
			var refused operator.Result
			if reservation, refused = o.Pipeline.Prepare(ctx, driver, reservation, &call); refused.Fault != nil {
				return refused
			}
			response = operator.Pay(ctx, driver, call)
			return response.Result
		})
	// Record the outcome and respond.
	outcomes := o.callOutcomes(reservation, response, params)
	updated, err := o.Pipeline.RecordOutcome(ctx, req, reservation, response.Result, outcomes)
	if err != nil {
		return apigw.Response{}, err
	}
	return buildResponse(updated, params, false), nil
}

// callOutcomes returns the outcome to store for each end of the call. A payment that is refused at once is failed; the
// response already reports that to the merchant. An unknown outcome is pending on a terminal; on the web there is no
// page to show (decision "pay-unknown").
func (o *Operation) callOutcomes(
	reservation *ledger.Entry, response operator.PayResponse, params *paymentParams,
) operation.CallOutcomes {
	pending := ledger.CallOutcome{Status: ledger.Pending, FirstPollAt: o.Pipeline.Now().Add(o.FirstPollDelay)}
	outcomes := operation.CallOutcomes{
		Done: pending, Refused: ledger.CallOutcome{Status: ledger.Failed}, Unknown: pending,
	}
	outcomes.Refused.FailureReason = operator.RefusalReason(response.Fault)
	outcomes.Done.ResponseStatus, outcomes.Done.Material = http.StatusCreated, response.DriverData
	if response.Status.Final() {
		outcomes.Done.Report = &ledger.StatusReport{
			Status: response.Status, Source: ledger.SourceResponse, OperatorReference: response.OperatorReference,
		}
	}
	if response.DuplicateKey {
		outcomes.Unknown.FirstPollAt = o.Pipeline.Now() // the operator knows the payment: look it up at once
	}
	if params.channel == channelWeb {
		outcomes.Done.ResponseBody = webResponseBody(response, reservation.MerchantState)
		outcomes.Done.NotifToken = response.NotifToken
		return outcomes
	}
	accepted := *reservation
	accepted.OperatorReference = response.OperatorReference
	outcomes.Done.ResponseBody = payment.ResponseBody(&accepted, ledger.Pending)
	outcomes.Unknown.ResponseStatus = http.StatusCreated
	outcomes.Unknown.ResponseBody = payment.ResponseBody(reservation, ledger.Pending)
	return outcomes
}

// isFinalWithoutResponse reports whether this is the retry of a terminal's payment that became final before its
// response was stored. The response can be made from the entry, and the payment is not sent again (decision
// "pay-repeat").
func isFinalWithoutResponse(existing, entry *ledger.Entry) bool {
	return existing != nil && existing.Channel != channelWeb &&
		existing.StatusFinal() && existing.ResponseStatus == 0 &&
		existing.Fingerprint == entry.Fingerprint && existing.MerchantID == entry.MerchantID
}

// storeMissingResponse stores the response of a payment that became final without one, and returns the entry. The first
// attempt may still store its outcome, with another operator's reference in the response. The response that is stored
// first is the one that every repeat gets.
func (o *Operation) storeMissingResponse(ctx context.Context, existing *ledger.Entry) (*ledger.Entry, error) {
	updated, err := o.Pipeline.Book.StoreOutcome(ctx, existing, ledger.CallOutcome{
		State: ledger.Done, ResponseStatus: http.StatusCreated,
		ResponseBody: payment.ResponseBody(existing, ledger.Pending),
	})
	if err != nil {
		return nil, &fault.Fault{Kind: fault.OutcomeUnknown, Cause: err}
	}
	return updated, nil
}

// buildResponse builds the response from the stored one. If a terminal's payment was accepted, it adds the one-time
// code of this request, unless the platform that the payment is pinned to has no use for it (decision "pay-otp").
func buildResponse(e *ledger.Entry, params *paymentParams, replayed bool) apigw.Response {
	response := operation.StoredResponse(e, "", replayed)
	isUsed := operator.CapabilitiesOf(e).OTPRule != operator.OTPUnused
	if isUsed && params.channel != channelWeb && response.Status == http.StatusCreated {
		response.Body = payment.InsertOTP(response.Body, params.otp)
	}
	return response
}

// newEntry prepares the reservation of a payment. The error is that of the random source.
func (o *Operation) newEntry(params *paymentParams) (*ledger.Entry, error) {
	country, operatorName := params.country.Alpha2, params.operatorName
	key, err := operator.NewPaymentKey(params.choice.KeyForm, params.orderID, o.Pipeline.Book.Rand)
	if err != nil {
		return nil, err
	}
	return &ledger.Entry{
		Key:               ledger.Key{Kind: ledger.Payment, ID: params.orderID},
		Fingerprint:       ledger.Fingerprint(params.canonical, country, operatorName, params.channel),
		UpstreamKey:       key,
		Country:           country,
		CountryAsSent:     params.countryText,
		Operator:          operatorName,
		Channel:           params.channel,
		Lang:              params.lang,
		AmountMinor:       params.minor,
		Exponent:          params.country.Exponent,
		Currency:          params.currency,
		AmountAsSent:      params.amountText,
		TransactionID:     ledger.PaymentTransactionID(params.orderID),
		MerchantState:     params.state,
		MerchantReference: params.reference,
		MSISDN:            params.msisdn,
		NotifyURL:         params.notifURL,
		NotifyFrom:        params.notifFrom,
		ExpireAt:          o.Pipeline.ExpireAt(o.Retention),
	}, nil
}
