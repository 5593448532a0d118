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
	ClaimReference(ctx context.Context, merchantID, referenceCode, chargeID string) (ownerChargeID string, err error)
}

// Operation is the charge operation with all it needs. ServiceID is the deployment's service identifier, Retention how
// long a charge is kept (0: for ever).
type Operation struct {
	Pipeline   *operation.Pipeline
	References References
	ServiceID  string
	Retention  time.Duration
}

// Route is the operation's entry in the gateway.
func (o *Operation) Route() apigw.Route {
	return apigw.Route{Method: Method, Resource: Resource, FixedParams: map[string]string{"endUserId": endUserID}, Handle: o.Handle}
}

// Handle is the flow of a charge in its seven steps. It answers 201 with the charge; the stored answer on a repeat; a
// final refusal of the operator (POL0253, POL1000, POL0001, SVC0270); or a fault of the order of refusals, of the key
// (409), of the merchant's amount of the day (403 POL0001) or of the operator call (502, 503, 504).
func (o *Operation) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	// Decode and authenticate.
	profile, doc, err := o.Pipeline.AuthenticateAndDecode(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	params, err := readParams(req, doc, profile, o.ServiceID)
	if err != nil {
		return apigw.Response{}, err
	}
	capabilities, err := o.Pipeline.SelectOperator(profile, "charge", params.country)
	if err != nil {
		return apigw.Response{}, err
	}
	// Reserve.
	entry := o.newEntry(profile, params, capabilities)
	operation.LogRouting(req, entry)
	reservation, existing, err := o.reserveCharge(ctx, req, profile, entry, params)
	if err != nil {
		return apigw.Response{}, err
	}
	if existing != nil {
		return o.repeatResponse(ctx, req, existing, params)
	}
	// Call the operator.
	result := o.Pipeline.CallOperator(ctx, req, reservation, func(ctx context.Context, driver operator.Driver) operator.Result {
		return driver.Charge(ctx, params.operatorCall(reservation))
	})
	// Settle and respond.
	location := operation.ChargeURL(req.BaseURL, reservation.ID)
	success := ledger.CallOutcome{ResponseStatus: statusCreated, ResponseBody: params.responseBody(reservation.ID, location)}
	updated, err := o.Pipeline.RecordOutcome(ctx, req, reservation, result, operation.CallOutcomes{Done: success})
	if err != nil {
		return apigw.Response{}, err
	}
	return operation.StoredResponse(updated, location, false), nil
}

// repeatResponse is the answer to a charge that is done or refused. One that a person found applied has none yet: this request,
// which is the same, makes it and stores it for the next (decision "unknown-by-hand").
func (o *Operation) repeatResponse(ctx context.Context, req *apigw.Request, existing *ledger.Entry, m *chargeParams) (apigw.Response, error) {
	location := operation.ChargeURL(req.BaseURL, existing.ID)
	if existing.ResponseStatus == 0 {
		updated, err := o.Pipeline.Book.StoreOutcome(ctx, existing, ledger.CallOutcome{State: ledger.Done, ResponseStatus: statusCreated, ResponseBody: m.responseBody(existing.ID, location)})
		if err != nil {
			return apigw.Response{}, &fault.Fault{Kind: fault.OutcomeUnknown, Cause: err}
		}
		existing = updated
	}
	return operation.StoredResponse(existing, location, true), nil
}

// reserveCharge holds the charge, then its referenceCode, and then its amount in the merchant's day. A reference that another
// charge holds releases ours: nothing was sent under it, because the reference always comes before the call (decision
// "charge-reference").
func (o *Operation) reserveCharge(ctx context.Context, req *apigw.Request, profile *merchant.Profile, entry *ledger.Entry, m *chargeParams) (reservation, existing *ledger.Entry, err error) {
	key, part := m.idempotencyKey()
	req.LogLine.SetTransactionKey(key)
	reservation, existing, err = o.Pipeline.Reserve(ctx, req, entry, key, part)
	if reservation == nil {
		return nil, existing, err
	}
	ownerChargeID, err := o.References.ClaimReference(ctx, reservation.MerchantID, reservation.ReferenceCode, reservation.ID)
	if err == nil && ownerChargeID == reservation.ID {
		return reservation, nil, o.Pipeline.ReserveDailyAmount(ctx, req, profile, reservation)
	}
	return nil, nil, o.releaseReservation(ctx, reservation, m, err)
}

// releaseReservation releases a charge whose reference was not to be had, and says why. Where another charge holds the reference,
// none of our attempts can have been sent. Where the store failed, an earlier attempt may have been: then the charge
// stays unknown (decision "unknown-sticks").
func (o *Operation) releaseReservation(ctx context.Context, reservation *ledger.Entry, m *chargeParams, claimErr error) error {
	neverSent := claimErr == nil || !reservation.EverUnknown
	_, err := o.Pipeline.Book.StoreOutcome(ctx, reservation, ledger.CallOutcome{State: ledger.Released, UnbindBody: neverSent})
	switch {
	case !neverSent:
		return &fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.Join(claimErr, err)}
	case err != nil || claimErr != nil:
		return fault.NewInternal(errors.Join(claimErr, err))
	}
	return &fault.Fault{Kind: fault.DuplicateKey, Part: partReference, Value: m.reference}
}

// newEntry is the reservation of a charge.
func (o *Operation) newEntry(profile *merchant.Profile, m *chargeParams, capabilities operator.Capabilities) *ledger.Entry {
	now := o.Pipeline.Now()
	e := &ledger.Entry{
		Key:           ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(profile.ID, m.correlator, m.reference)},
		MerchantID:    profile.ID,
		Merchant:      profile.Name,
		State:         ledger.Reserved,
		CreatedAt:     now,
		Fingerprint:   ledger.Fingerprint(m.canonical, m.gwAlias, m.country.Alpha2),
		Correlator:    m.correlator,
		ReferenceCode: m.reference,
		UpstreamKey:   ledger.UpstreamKey(profile.Name, m.correlator, m.reference),
		Country:       m.country.Alpha2,
		Operator:      capabilities.Operator,
		AmountMinor:   m.minor,
		Exponent:      m.country.Exponent,
		Currency:      m.currency,
		AmountAsSent:  m.amountText,
	}
	_, e.CountsDailyAmount = profile.DailyAmountLimit(m.currency)
	if o.Retention > 0 {
		e.ExpireAt = now.Add(o.Retention)
	}
	return e
}
