// Package sms is the outbound SMS: POST /smsmessaging/v1/outbound/{senderAddress}/requests.
//
// It sends a message once per clientCorrelator. Its invariant: the operator is called only under a reservation that is
// ours, and always under the same upstream key.
package sms

import (
	"cmp"
	"context"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/outgoing"
)

// Method and Resource are the route of the operation as template.yaml has it.
const (
	Method   = "POST"
	Resource = "/smsmessaging/v1/outbound/{senderAddress}/requests"
)

// Operation is the SMS operation with all it needs.
type Operation struct {
	Pipeline *operation.Pipeline
	// CallbackKeys signs the address at which the operator sends its delivery receipts.
	CallbackKeys operation.CallbackKeys
	// CallbackBaseURL is the base of that address; "" for the request's own (decision "base-url").
	CallbackBaseURL string
	// OutgoingPolicy is the rule for addresses that merchants choose.
	OutgoingPolicy outgoing.Policy
	// ApplicationID and ContactID are the deployment's constants.
	ApplicationID string
	ContactID     string
	// Retention is how long a message is kept (decision "retention").
	Retention time.Duration
}

// Route is the operation's entry in the gateway.
func (o *Operation) Route() apigw.Route {
	return apigw.Route{Method: Method, Resource: Resource, Handle: o.Handle}
}

// Handle is the flow of an SMS in its seven steps. It answers 201 with the message's resource; the stored refusal on
// its repeat; 409 with the first one's Location on a repeat of a message that was sent; or a fault of the order of
// refusals, of the key or of the operator call (502, 503, 504).
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
	capabilities, err := o.Pipeline.SelectOperator(profile, "sms", params.country)
	if err != nil {
		return apigw.Response{}, err
	}
	ring, err := o.CallbackKeys.Ring(ctx)
	if err != nil {
		return apigw.Response{}, fault.NewInternal(err)
	}
	// Reserve.
	entry := o.newEntry(profile, params, capabilities)
	location := operation.MessageURL(req.BaseURL, params.sender, entry.ID)
	req.LogLine.SetTransactionKey(params.correlator)
	operation.LogRouting(req, entry)
	reservation, existing, err := o.Pipeline.Reserve(ctx, req, entry, params.correlator, partCorrelator)
	if err != nil {
		return apigw.Response{}, addLocation(err, existing, req.BaseURL)
	}
	if existing != nil {
		return operation.StoredResponse(existing, "", true), nil
	}
	// Call the operator.
	result := o.Pipeline.CallOperator(ctx, req, reservation, func(ctx context.Context, driver operator.Driver) operator.Result {
		return driver.SendSMS(ctx, params.operatorCall(reservation, ring.ReceiptURL(cmp.Or(o.CallbackBaseURL, req.BaseURL), reservation.Operator, reservation.ID)))
	})
	if result.DuplicateKey && reservation.EverUnknown {
		// The operator knows the key from our own earlier send: it was sent then (decision "outcomes").
		result.Outcome = operator.Succeeded
	}
	// Settle and respond.
	updated, err := o.Pipeline.RecordOutcome(ctx, req, reservation, result, operation.CallOutcomes{
		Done:    ledger.CallOutcome{Status: ledger.MessageWaiting, ResponseStatus: statusCreated},
		Refused: ledger.CallOutcome{Status: ledger.DeliveryImpossible},
	})
	if err != nil {
		return apigw.Response{}, err
	}
	response := operation.StoredResponse(updated, location, false)
	if updated.State == ledger.Done {
		// A sent message is never answered again, so its text, which may be a one-time code, is not kept.
		response.Body = params.responseBody(location)
	}
	return response, nil
}

// newEntry is the reservation of a message.
func (o *Operation) newEntry(profile *merchant.Profile, m *smsParams, capabilities operator.Capabilities) *ledger.Entry {
	now := o.Pipeline.Now()
	e := &ledger.Entry{
		Key:          ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(profile.ID, m.correlator)},
		MerchantID:   profile.ID,
		Merchant:     profile.Name,
		State:        ledger.Reserved,
		CreatedAt:    now,
		Fingerprint:  ledger.Fingerprint(m.canonical, m.gwAlias, m.ise2, m.country.Alpha2),
		Correlator:   m.correlator,
		UpstreamKey:  ledger.UpstreamKey(profile.Name, m.correlator, ""),
		Country:      m.country.Alpha2,
		Operator:     capabilities.Operator,
		Address:      recipientAddress,
		Sender:       m.sender,
		NotifyURL:    m.notifyURL,
		CallbackData: m.callbackData,
	}
	if o.Retention > 0 {
		e.ExpireAt = now.Add(o.Retention)
	}
	return e
}
