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

// Handle sends a message in seven steps. It returns 201 with the message's resource. A retry of a refused message
// gets the stored refusal, and a retry of a sent one gets 409 with the first one's Location. Else it returns a fault
// of the order of refusals, of the key or of the operator call (502, 503, 504). A 504 has the message's Location.
func (o *Operation) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	// Authenticate and read the body.
	profile, doc, err := o.Pipeline.AuthenticateAndReadBody(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	params, err := o.readParams(req, doc, profile)
	if err != nil {
		return apigw.Response{}, err
	}
	choice, err := o.Pipeline.SelectOperator(ctx, profile, merchant.OperationSMS, params.country)
	if err != nil {
		return apigw.Response{}, err
	}
	choice.Check = params.check
	// Reserve. Everything that can fail without the operator fails before anything is stored.
	ring, err := o.CallbackKeys.Ring(ctx)
	if err != nil {
		return apigw.Response{}, fault.NewInternal(err)
	}
	entry := o.newEntry(profile, params, choice)
	entry.CallbackKeys, choice.NotYet = ring.KeyNumbers(), ring.NotYet
	location := resource.MessageURL(req.BaseURL, params.sender, entry.ID)
	req.LogLine.SetTransactionKey(params.correlator)
	operation.LogRouting(req, entry)
	key := operation.IdempotencyKey{Value: params.correlator, Part: partCorrelator}
	reservation, existing, err := o.Pipeline.Reserve(ctx, req, profile, entry, choice, key)
	if err != nil {
		return apigw.Response{}, operation.LocateUnknown(addLocation(err, existing, req.BaseURL), location)
	}
	if existing != nil {
		return operation.StoredResponse(existing, "", true), nil
	}
	// Call the operator.
	callbackBase := cmp.Or(o.CallbackBaseURL, req.BaseURL)
	callbackURL := ring.ReceiptURL(callbackBase, reservation.Operator, reservation.ID)
	result := o.Pipeline.CallOperator(ctx, req, reservation,
		func(ctx context.Context, driver operator.Driver, common operator.Call) operator.Result {
			if refused := o.Pipeline.TakeAccountRate(ctx, req, reservation); refused != nil {
				return *refused
			}
			return operator.SendSMS(ctx, driver, params.operatorCall(common, callbackURL))
		})
	if result.DuplicateKey && reservation.MayHaveSent() && !reservation.KeyTaken {
		// The operator has the key from our own earlier attempt, so the message was sent (decision "outcomes").
		result.Outcome = operator.Succeeded
	}
	// Record the outcome and respond.
	early, bindAt := o.bindMessage(ctx, req, reservation, result)
	updated, err := o.Pipeline.RecordOutcome(ctx, req, reservation, result, operation.CallOutcomes{
		Done: ledger.CallOutcome{
			Status: ledger.MessageWaiting, ResponseStatus: http.StatusCreated,
			Receipts: early, BindAt: bindAt,
		},
		Refused: ledger.CallOutcome{Status: ledger.DeliveryImpossible},
	})
	if err != nil {
		return apigw.Response{}, operation.LocateUnknown(err, location)
	}
	response := operation.StoredResponse(updated, location, false)
	if updated.State == ledger.Done {
		// The response of a sent message is never replayed, so its text, which may be a one-time code, is not stored.
		response.Body = params.responseBody(location)
	}
	return response, nil
}

// bindMessage stores which message the platform's id names, at a platform that sends all receipts to one address. It
// returns the receipts that came first, for the write of the outcome. If it fails, the message is sent all the same,
// and the sweep binds it from bindAt on.
func (o *Operation) bindMessage(
	ctx context.Context, req *apigw.Request, reservation *ledger.Entry, result operator.Result,
) (early []ledger.Status, bindAt time.Time) {
	row := operator.CapabilitiesOf(reservation)
	if !row.StaticCallbacks || result.Outcome != operator.Succeeded || result.OperatorReference == "" {
		return nil, time.Time{}
	}
	early, err := o.Messages.BindMessage(ctx, reservation.Account, result.OperatorReference, reservation.ID,
		reservation.ExpireAt)
	if err != nil {
		req.LogLine.Increment(telemetry.UnreadCallbacks)
		req.LogLine.SetCause(err)
		bindAt = ledger.Timestamp(o.Pipeline.Now()).Add(ledger.FirstBindWait)
	}
	return early, bindAt
}

// newEntry prepares the reservation of a message.
func (o *Operation) newEntry(
	profile *merchant.Profile, params *smsParams, choice operation.Choice,
) *ledger.Entry {
	return &ledger.Entry{
		Key:          ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(profile.ID, params.correlator)},
		Fingerprint:  ledger.Fingerprint(params.canonical, params.gwAlias, params.ise2, params.country.Alpha2),
		Correlator:   params.correlator,
		UpstreamKey:  ledger.UpstreamKey(profile.Name, params.correlator, ""),
		Country:      params.country.Alpha2,
		Operator:     choice.Operator,
		Address:      recipientAddress,
		Sender:       params.sender,
		NotifyURL:    params.notifyURL,
		CallbackData: params.callbackData,
		ExpireAt:     o.Pipeline.ExpireAt(o.Retention),
	}
}

// addLocation adds the URL of the first message to the fault of its repeat (decision "sms-duplicate").
func addLocation(err error, existing *ledger.Entry, base string) error {
	f := fault.FromError(err)
	if existing == nil || f.Kind != fault.DuplicateKey {
		return err
	}
	// A receipt proves that the message was sent, also if the function died before it recorded the outcome.
	receiptSeen := existing.Status != "" && existing.State != ledger.Refused
	if existing.State == ledger.Done || receiptSeen {
		f.Location = resource.MessageURL(base, existing.Sender, existing.ID)
		return f
	}
	return err
}
