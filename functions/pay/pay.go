// Package pay is the mobile money payment: POST /mobilemoney/v1, for the channels web, tpe and ussd.
//
// It creates at most one payment for each order_id, however often requests are lost or repeated. Its invariant: the
// operator is called only under a reservation of ours, and always with the same order_id. A one-time code is never
// stored.
package pay

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
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

// Handle creates a payment in five parts. It returns 201 with the page of the web channel or the pending payment of
// a terminal. It replays a stored response, and returns the operator's refusal. Else it returns a fault: of the order
// of refusals, of the order_id (409) or of the daily amount (403 POL0001). The faults of the operator call are 502
// and 503, and 504 on the web channel.
func (o *Operation) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	// Authenticate and read the body.
	a, err := o.Pipeline.AuthenticateAndReadBody(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate, and select the operator.
	params, err := o.readParams(ctx, a)
	if err != nil {
		return apigw.Response{}, err
	}
	// Reserve. Everything that can fail without the operator fails before anything is stored.
	ring, err := o.CallbackKeys.Ring(ctx)
	if err != nil {
		return apigw.Response{}, fault.NewInternal(err)
	}
	a.Entry, err = o.newEntry(a, params)
	if err != nil {
		return apigw.Response{}, fault.NewInternal(err)
	}
	a.Entry.Route.CallbackKeys, a.Choice.NotYet = ring.KeyNumbers(), ring.NotYet
	a.Key = operation.IdempotencyKey{Value: a.Entry.ID, Part: partOrderID}
	reserved, err := o.Pipeline.Reserve(ctx, a, params.check)
	switch {
	case reserved:
		err = o.Pipeline.ReserveDailyAmount(ctx, a)
	case lacksResponse(err, a):
		body := payment.ResponseBody(a.Stored, ledger.Pending)
		err = o.Pipeline.StoreMissingResponse(ctx, a, ledger.RespondAfterFinal, body)
	}
	if err != nil {
		return apigw.Response{}, err
	}
	if !reserved {
		return buildResponse(a, params, true), nil
	}
	// Call the operator.
	callbackBase := cmp.Or(o.CallbackBaseURL, req.BaseURL)
	callbackURL := ring.PaymentURL(callbackBase, a.Stored.Route.Operator, a.Stored.ID)
	response := o.Pipeline.CallOperator(ctx, a,
		func(ctx context.Context, driver operator.Driver, common operator.Call) operator.PayResponse {
			return o.send(ctx, a, driver, params.operatorCall(common, callbackURL))
		})
	// Record the outcome and respond.
	err = o.Pipeline.RecordOutcome(ctx, a, response.Result, o.callOutcomes(a.Stored, response, params))
	if err != nil {
		return apigw.Response{}, err
	}
	return buildResponse(a, params, false), nil
}

// send prepares and sends a payment. If the driver needs the platform's own key of it, the key is stored in a.Stored
// before the payment is sent (decision "prepare"). A response with a fault of the preparation means that the payment
// was not sent: it is certainly not applied.
func (o *Operation) send(
	ctx context.Context, a *operation.Attempt, driver operator.Driver, call operator.PayCall,
) operator.PayResponse {
	preparer, needed := driver.(operator.Preparer)
	if !needed || a.Stored.DriverData != "" {
		return operator.Pay(ctx, driver, call)
	}
	data, result := preparer.Prepare(ctx, call)
	if result.Outcome != operator.Succeeded {
		return operator.PayResponse{Result: result}
	}
	stored, err := o.storeDriverData(ctx, a.Stored, data)
	if err != nil {
		notSent := &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
		return operator.PayResponse{Result: operator.Result{Outcome: operator.NotApplied, Fault: notSent}}
	}
	a.Stored, call.DriverData = stored, data
	return operator.Pay(ctx, driver, call)
}

var errNotPrepared = logsafe.New("the operator's key of the payment could not be stored")

// storeDriverData stores the platform's key of a payment, and returns the reservation as stored.
func (o *Operation) storeDriverData(
	ctx context.Context, reservation *ledger.Entry, data string,
) (*ledger.Entry, error) {
	stored, _, err := o.Pipeline.Book.ChangeKnown(ctx, reservation, func(e *ledger.Entry) (ledger.Transition, error) {
		if !e.StoreDriverData(reservation.Owner, data, ledger.Timestamp(o.Pipeline.Now())) {
			return ledger.NoTransition, errNotPrepared
		}
		return ledger.StoreDriverData, nil
	})
	if err != nil && !errors.Is(err, errNotPrepared) {
		err = errors.Join(errNotPrepared, err)
	}
	return stored, err
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
	outcomes.Done.ResponseStatus, outcomes.Done.DriverData = http.StatusCreated, response.DriverData
	if response.DuplicateKey {
		outcomes.Unknown.FirstPollAt = o.Pipeline.Now() // the operator knows the payment: look it up at once
	}
	if params.channel == channelWeb {
		outcomes.Done.ResponseBody = webResponseBody(response, reservation.Request.State)
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

// lacksResponse reports whether this is the retry of a terminal's payment that became final before its response was
// stored: err then says that its key is taken. The response can be made from the entry, and the payment is not sent
// again (decision "pay-repeat").
func lacksResponse(err error, a *operation.Attempt) bool {
	if err == nil || fault.FromError(err).Kind != fault.DuplicateKey {
		return false
	}
	existing := a.Stored
	return existing.Request.Channel != channelWeb && existing.StatusFinal() && existing.Response.Status == 0 &&
		existing.Request.Fingerprint == a.Entry.Request.Fingerprint && existing.Merchant.ID == a.Entry.Merchant.ID
}

// buildResponse builds the response from the stored one. If a terminal's payment was accepted, it adds the one-time
// code of this request, unless the platform that the payment is pinned to has no use for it (decision "pay-otp").
func buildResponse(a *operation.Attempt, params *paymentParams, replayed bool) apigw.Response {
	response := a.StoredResponse(replayed)
	isUsed := operator.CapabilitiesOf(a.Stored).OTPRule != operator.OTPUnused
	if isUsed && params.channel != channelWeb && response.Status == http.StatusCreated {
		response.Body = payment.InsertOTP(response.Body, params.otp)
	}
	return response
}

// newEntry prepares the reservation of a payment. The error is that of the random source.
func (o *Operation) newEntry(a *operation.Attempt, params *paymentParams) (*ledger.Entry, error) {
	country, operatorName := params.country.Alpha2, params.operatorName
	key, err := operator.NewPaymentKey(a.Choice.KeyForm, params.orderID, o.Pipeline.Book.Rand)
	if err != nil {
		return nil, err
	}
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: params.orderID},
		Request: ledger.Request{
			Fingerprint:   ledger.Fingerprint(params.canonical, country, operatorName, params.channel),
			CountryAsSent: params.countryText, Channel: params.channel, Lang: params.lang,
			TransactionID: ledger.PaymentTransactionID(params.orderID), State: params.state,
			Reference: params.reference, MSISDN: params.msisdn,
		},
		Route: ledger.Route{UpstreamKey: key, Country: country, Operator: operatorName},
		Amount: ledger.Amount{
			Minor: params.minor, Exponent: params.country.Exponent, Currency: params.currency,
			AsSent: params.amountText,
		},
		Outbox:   ledger.Outbox{URL: params.notifURL, From: params.notifFrom},
		ExpireAt: o.Pipeline.ExpireAt(o.Retention),
	}, nil
}
