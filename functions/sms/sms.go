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
	Desk *operation.Desk
	// Callbacks signs the address at which the operator sends its delivery receipts.
	Callbacks operation.Callbacks
	// CallbackBase is the base of that address; "" for the request's own (decision "base-url").
	CallbackBase string
	// Outgoing is the rule for addresses that merchants choose.
	Outgoing outgoing.Policy
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
	profile, doc, err := o.Desk.Admit(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	message, err := o.read(req, doc, profile)
	if err != nil {
		return apigw.Response{}, err
	}
	able, err := o.Desk.Carrier(profile, "sms", message.country)
	if err != nil {
		return apigw.Response{}, err
	}
	ring, err := o.Callbacks.Ring(ctx)
	if err != nil {
		return apigw.Response{}, fault.Because(err)
	}
	// Reserve.
	entry := o.entry(profile, message, able)
	location := operation.MessageURL(req.BaseURL, message.sender, entry.ID)
	req.Event.SetKey(message.correlator)
	operation.Note(req, entry)
	held, stored, err := o.Desk.Hold(ctx, req, entry, message.correlator, partCorrelator)
	if err != nil {
		return apigw.Response{}, locate(err, stored, req.BaseURL)
	}
	if stored != nil {
		return operation.Stored(stored, "", true), nil
	}
	// Call the operator.
	result := o.Desk.Call(ctx, req, held, func(ctx context.Context, driver operator.Driver) operator.Result {
		return driver.SendSMS(ctx, message.call(held, ring.ReceiptURL(cmp.Or(o.CallbackBase, req.BaseURL), held.Operator, held.ID)))
	})
	if result.Duplicate && held.EverUnknown {
		// The operator knows the key from our own earlier send: it was sent then (decision "outcomes").
		result.Outcome = operator.Done
	}
	// Settle and respond.
	settled, err := o.Desk.Settle(ctx, req, held, result, operation.Outcomes{
		Done:    ledger.Settlement{Status: ledger.MessageWaiting, AnswerStatus: created},
		Refused: ledger.Settlement{Status: ledger.DeliveryImpossible},
	})
	if err != nil {
		return apigw.Response{}, err
	}
	response := operation.Stored(settled, location, false)
	if settled.State == ledger.Done {
		// A sent message is never answered again, so its text, which may be a one-time code, is not kept.
		response.Body = message.answer(location)
	}
	return response, nil
}

// entry is the reservation of a message.
func (o *Operation) entry(profile *merchant.Profile, m *message, able operator.Capabilities) *ledger.Entry {
	now := o.Desk.Now()
	e := &ledger.Entry{
		Key:          ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(profile.ID, m.correlator)},
		MerchantID:   profile.ID,
		Merchant:     profile.Name,
		State:        ledger.Reserved,
		CreatedAt:    now,
		Fingerprint:  ledger.Fingerprint(m.canonical, m.alias, m.ise2, m.country.Alpha2),
		Correlator:   m.correlator,
		UpstreamKey:  ledger.UpstreamKey(profile.Name, m.correlator, ""),
		Country:      m.country.Alpha2,
		Operator:     able.Operator,
		Address:      recipient,
		Sender:       m.sender,
		NotifyURL:    m.notifyURL,
		CallbackData: m.callbackData,
	}
	if o.Retention > 0 {
		e.ExpireAt = now.Add(o.Retention)
	}
	return e
}
