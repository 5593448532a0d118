// Package charge is the carrier-billing charge: POST /payment/v1/acr%3AOperatorAPIToken/transactions/amount.
//
// It charges an end user once per key, however often the merchant asks and whatever gets lost on the way. Its
// invariant: the operator is called only under a reservation that is ours, and always under the same upstream key.
package charge

import (
	"context"
	"errors"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
)

// Method and Resource are the route of the operation as template.yaml has it.
const (
	Method   = "POST"
	Resource = "/payment/v1/{endUserId}/transactions/amount"
)

// References binds a merchant's referenceCode to one charge; the ledger's store is the one that ships.
type References interface {
	ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (holder string, err error)
}

// Operation is the charge operation with all it needs. ServiceID is the deployment's service identifier, Retention how
// long a charge is kept (0: for ever).
type Operation struct {
	Desk       *operation.Desk
	References References
	ServiceID  string
	Retention  time.Duration
}

// Route is the operation's entry in the gateway.
func (o *Operation) Route() apigw.Route {
	return apigw.Route{Method: Method, Resource: Resource, Fixed: map[string]string{"endUserId": endUser}, Handle: o.Handle}
}

// Handle is the flow of a charge in its seven steps. It answers 201 with the charge; the stored answer on a repeat; a
// final refusal of the operator (POL0253, POL1000, POL0001, SVC0270); or a fault of the order of refusals, of the key
// (409), of the merchant's amount of the day (403 POL0001) or of the operator call (502, 503, 504).
func (o *Operation) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	// Decode and authenticate.
	profile, doc, err := o.Desk.Admit(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	message, err := read(req, doc, profile, o.ServiceID)
	if err != nil {
		return apigw.Response{}, err
	}
	able, err := o.Desk.Carrier(profile, "charge", message.country)
	if err != nil {
		return apigw.Response{}, err
	}
	// Reserve.
	entry := o.entry(profile, message, able)
	operation.Note(req, entry)
	held, stored, err := o.reserve(ctx, req, profile, entry, message)
	if err != nil {
		return apigw.Response{}, err
	}
	if stored != nil {
		return o.repeat(ctx, req, stored, message)
	}
	// Call the operator.
	result := o.Desk.Call(ctx, req, held, func(ctx context.Context, driver operator.Driver) operator.Result {
		return driver.Charge(ctx, message.call(held))
	})
	// Settle and respond.
	location := operation.ChargeURL(req.BaseURL, held.ID)
	success := ledger.Settlement{AnswerStatus: created, AnswerBody: message.answer(held.ID, location)}
	settled, err := o.Desk.Settle(ctx, req, held, result, operation.Outcomes{Done: success})
	if err != nil {
		return apigw.Response{}, err
	}
	return operation.Stored(settled, location, false), nil
}

// repeat is the answer to a charge that is done or refused. One that a person found applied has none yet: this request,
// which is the same, makes it and stores it for the next (decision "unknown-by-hand").
func (o *Operation) repeat(ctx context.Context, req *apigw.Request, stored *ledger.Entry, m *message) (apigw.Response, error) {
	location := operation.ChargeURL(req.BaseURL, stored.ID)
	if stored.AnswerStatus == 0 {
		settled, err := o.Desk.Book.Settle(ctx, stored, ledger.Settlement{State: ledger.Done, AnswerStatus: created, AnswerBody: m.answer(stored.ID, location)})
		if err != nil {
			return apigw.Response{}, &fault.Fault{Kind: fault.OutcomeUnknown, Cause: err}
		}
		stored = settled
	}
	return operation.Stored(stored, location, true), nil
}

// reserve holds the charge, then its referenceCode, and then its amount in the merchant's day. A reference that another
// charge holds releases ours: nothing was sent under it, because the reference always comes before the call (decision
// "charge-reference").
func (o *Operation) reserve(ctx context.Context, req *apigw.Request, profile *merchant.Profile, entry *ledger.Entry, m *message) (held, stored *ledger.Entry, err error) {
	key, part := m.key()
	req.Event.SetKey(key)
	held, stored, err = o.Desk.Hold(ctx, req, entry, key, part)
	if held == nil {
		return nil, stored, err
	}
	holder, err := o.References.ClaimReference(ctx, held.MerchantID, held.ReferenceCode, held.ID)
	if err == nil && holder == held.ID {
		return held, nil, o.Desk.Spend(ctx, req, profile, held)
	}
	return nil, nil, o.giveBack(ctx, held, m, err)
}

// giveBack releases a charge whose reference was not to be had, and says why. Where another charge holds the reference,
// none of our attempts can have been sent. Where the store failed, an earlier attempt may have been: then the charge
// stays unknown (decision "unknown-sticks").
func (o *Operation) giveBack(ctx context.Context, held *ledger.Entry, m *message, failure error) error {
	neverSent := failure == nil || !held.EverUnknown
	_, err := o.Desk.Book.Settle(ctx, held, ledger.Settlement{State: ledger.Released, Unbind: neverSent})
	switch {
	case !neverSent:
		return &fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.Join(failure, err)}
	case err != nil || failure != nil:
		return fault.Because(errors.Join(failure, err))
	}
	return &fault.Fault{Kind: fault.Duplicate, Part: partReference, Value: m.reference}
}

// entry is the reservation of a charge.
func (o *Operation) entry(profile *merchant.Profile, m *message, able operator.Capabilities) *ledger.Entry {
	now := o.Desk.Now()
	e := &ledger.Entry{
		Key:           ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(profile.ID, m.correlator, m.reference)},
		MerchantID:    profile.ID,
		Merchant:      profile.Name,
		State:         ledger.Reserved,
		CreatedAt:     now,
		Fingerprint:   ledger.Fingerprint(m.canonical, m.alias, m.country.Alpha2),
		Correlator:    m.correlator,
		ReferenceCode: m.reference,
		UpstreamKey:   ledger.UpstreamKey(profile.Name, m.correlator, m.reference),
		Country:       m.country.Alpha2,
		Operator:      able.Operator,
		Minor:         m.minor,
		Exponent:      m.country.Exponent,
		Currency:      m.currency,
		AmountText:    m.amountText,
	}
	_, e.Limited = profile.DailyLimit(m.currency)
	if o.Retention > 0 {
		e.ExpireAt = now.Add(o.Retention)
	}
	return e
}
