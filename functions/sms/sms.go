// Package sms is the outbound SMS: POST /smsmessaging/v1/outbound/{senderAddress}/requests.
//
// It sends at most one message for each clientCorrelator. Its invariant: the operator is called only under a
// reservation of ours, and always under the same upstream key.
package sms

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/telemetry"
)

// Operation is the SMS operation and its dependencies.
type Operation struct {
	Pipeline *operation.Pipeline
	// Messages finds messages by the ids of platforms that send all receipts to one address.
	Messages ledger.MessageIndex
	// CallbackKeys signs the URL to which the operator sends its delivery receipts.
	CallbackKeys *callback.Keys
	// CallbackBaseURL is the base of that URL; "" for the request's own (decision "base-url").
	CallbackBaseURL string
	// OutgoingPolicy restricts the URLs that merchants choose.
	OutgoingPolicy outgoing.Policy
	// ApplicationID and ContactID are the deployment's constants.
	ApplicationID string
	ContactID     string
	// Retention is how long a message is kept (decision "retention").
	Retention time.Duration
}

// Route returns the operation's route, as in template.yaml.
func (o *Operation) Route() apigw.Route {
	return apigw.Route{Method: "POST", Resource: "/smsmessaging/v1/outbound/{senderAddress}/requests", Handle: o.Handle}
}

// Handle sends a message in five parts. It returns 201 with the message's resource. A retry of a refused message
// gets the stored refusal, and a retry of one with a status gets 409 with the first one's Location. Else it returns a
// fault of the order of refusals, of the key or of the operator call (502, 503, 504). A 504 has the message's Location.
func (o *Operation) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	// Authenticate and read the body.
	a, err := o.Pipeline.AuthenticateAndReadBody(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	params, err := o.readParams(a)
	if err != nil {
		return apigw.Response{}, err
	}
	if err := o.Pipeline.SelectOperator(ctx, a, merchant.OperationSMS, params.country); err != nil {
		return apigw.Response{}, err
	}
	// Reserve. Everything that can fail without the operator fails before anything is stored.
	ring, err := o.CallbackKeys.Ring(ctx)
	if err != nil {
		return apigw.Response{}, fault.NewInternal(err)
	}
	a.Entry = o.newEntry(a, params)
	a.Entry.Route.CallbackKeys, a.Choice.NotYet = ring.KeyNumbers(), ring.NotYet
	a.Key = operation.IdempotencyKey{Value: params.correlator, Part: partCorrelator}
	a.Location = resource.MessageURL(req.BaseURL, params.sender, a.Entry.ID)
	reserved, err := o.Pipeline.Reserve(ctx, a, params.check)
	if err != nil {
		return apigw.Response{}, describeFirst(err, a)
	}
	if !reserved {
		return a.StoredResponse(true), nil
	}
	// Call the operator.
	callbackBase := cmp.Or(o.CallbackBaseURL, req.BaseURL)
	callbackURL := ring.ReceiptURL(callbackBase, a.Stored.Route.Operator, a.Stored.ID)
	result := o.Pipeline.CallOperator(ctx, a,
		func(ctx context.Context, driver operator.Driver, common operator.Call) operator.PayResponse {
			return operator.PayResponse{Result: o.send(ctx, a, driver, params.operatorCall(common, callbackURL))}
		}).Result
	if result.DuplicateKey && a.Stored.MayHaveSent() && !a.Stored.ForeignKey {
		// The operator has the key from our own earlier attempt, so the message was sent (decision "outcomes").
		result.Outcome = operator.Succeeded
	}
	// Record the outcome and respond.
	early, bindAt := o.bindMessage(ctx, a, result)
	err = o.Pipeline.RecordOutcome(ctx, a, result, operation.CallOutcomes{
		Done: ledger.CallOutcome{
			Status: ledger.MessageWaiting, ResponseStatus: http.StatusCreated,
			Receipts: early, BindAt: bindAt,
		},
		Refused: ledger.CallOutcome{Status: ledger.DeliveryImpossible},
	})
	if err != nil {
		return apigw.Response{}, err
	}
	response := a.StoredResponse(false)
	if a.Stored.State == ledger.Done {
		// The response of a sent message is never replayed, so its text, which may be a one-time code, is not stored.
		response.Body = params.responseBody(a.Location)
	}
	return response, nil
}

var errAccountRate = logsafe.New("the account sends as many messages in a second as its platform takes")

// send sends a message within the rate of its account, which all functions share. Over the rate nothing is sent, and
// the merchant gets 503. A table that does not respond limits nothing, because the platform has a limit of its own.
func (o *Operation) send(
	ctx context.Context, a *operation.Attempt, driver operator.Driver, call operator.SMSCall,
) operator.Result {
	perSecond := operator.CapabilitiesOf(a.Stored).SMSPerSecond
	if perSecond == 0 {
		return operator.SendSMS(ctx, driver, call)
	}
	wait, err := o.Pipeline.RateLimiter.Take(ctx, "account/"+a.Stored.Route.Account, perSecond, perSecond)
	if err != nil {
		a.Request.LogLine.Increment(telemetry.LimitStoreFailures)
		a.Request.LogLine.SetCause(err)
	}
	if wait > 0 {
		limited := &fault.Fault{Kind: fault.OperatorUnavailable, Cause: errAccountRate}
		return operator.Result{Outcome: operator.NotApplied, Fault: limited}
	}
	return operator.SendSMS(ctx, driver, call)
}

// bindMessage stores which message the platform's id names, at a platform that sends all receipts to one address. It
// returns the receipts that came first, for the write of the outcome. If it fails, the message is sent all the same,
// and the sweep binds it from bindAt on.
func (o *Operation) bindMessage(
	ctx context.Context, a *operation.Attempt, result operator.Result,
) (early []ledger.Status, bindAt time.Time) {
	row, reservation := operator.CapabilitiesOf(a.Stored), a.Stored
	if !row.StaticCallbacks || result.Outcome != operator.Succeeded || result.OperatorReference == "" {
		return nil, time.Time{}
	}
	early, err := o.Messages.BindMessage(ctx, reservation.Route.Account, result.OperatorReference, reservation.ID,
		reservation.ExpireAt)
	if err != nil {
		a.Request.LogLine.Increment(telemetry.UnreadCallbacks)
		a.Request.LogLine.SetCause(err)
		bindAt = ledger.Timestamp(o.Pipeline.Now()).Add(ledger.FirstBindWait)
	}
	return early, bindAt
}

// newEntry prepares the reservation of a message.
func (o *Operation) newEntry(a *operation.Attempt, params *smsParams) *ledger.Entry {
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(a.Profile.ID, params.correlator)},
		Request: ledger.Request{
			Fingerprint: ledger.Fingerprint(params.canonical, params.gwAlias, params.ise2, params.country.Alpha2),
			Correlator:  params.correlator, Address: recipientAddress, Sender: params.sender,
			CallbackData: params.callbackData,
		},
		Route: ledger.Route{
			UpstreamKey: ledger.UpstreamKey(a.Profile.Name, params.correlator, ""), Country: params.country.Alpha2,
			Operator: a.Choice.Operator,
		},
		Outbox:   ledger.Outbox{URL: params.notifyURL},
		ExpireAt: o.Pipeline.ExpireAt(o.Retention),
	}
}

// describeFirst adds to the fault of a duplicate key what is known of the first message (decision "sms-duplicate"). If
// it has a status, that is its URL. If it may have been sent, that is the reason other-body: a new key might send it
// twice.
func describeFirst(err error, a *operation.Attempt) error {
	f, first := fault.FromError(err), a.Stored
	if f.Kind != fault.DuplicateKey {
		return err
	}
	// A receipt or a person gave it a status, also if the function died before it recorded the outcome.
	hasStatus := first.Status != "" && first.State != ledger.Refused
	switch {
	case first.State == ledger.Done || hasStatus:
		f.Location = resource.MessageURL(a.Request.BaseURL, first.Request.Sender, first.ID)
	case first.State == ledger.Unknown || first.State == ledger.Reserved:
		f.Reason = fault.ReasonOtherBody
	}
	return f
}
