// Package charge is the carrier-billing charge: POST /payment/v1/acr%3AOperatorAPIToken/transactions/amount.
//
// It charges an end user at most once for each idempotency key, however often the merchant sends the request. Its
// invariant: the operator is called only under a reservation of ours, and always under the same upstream key.
package charge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/resource"
)

// References binds a merchant's referenceCode to one charge. The ledger's store implements it.
type References interface {
	ClaimReference(ctx context.Context, charge *ledger.Entry) (ownerChargeID string, err error)
}

// Operation is the charge operation and its dependencies. ServiceID is the deployment's service identifier. Retention
// is how long a charge is kept; 0 keeps it without limit.
type Operation struct {
	Pipeline   *operation.Pipeline
	References References
	ServiceID  string
	Retention  time.Duration
}

// Route returns the operation's route, as in template.yaml.
func (o *Operation) Route() apigw.Route {
	params := map[string]string{"endUserId": resource.EndUserID}
	return apigw.Route{
		Method: "POST", Resource: "/payment/v1/{endUserId}/transactions/amount", FixedParams: params, Handle: o.Handle,
	}
}

// Handle charges in seven steps. It returns 201 with the charge, or replays the stored response. It returns a final
// refusal of the operator (POL0253, POL1000, POL0001, SVC0270), which is stored too. Else it returns a fault of the
// order of refusals, of the key (409), of the daily amount (403 POL0001) or of the operator call (502, 503, 504). A 504
// has the charge's Location.
func (o *Operation) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	// Authenticate and read the body.
	profile, doc, err := o.Pipeline.AuthenticateAndReadBody(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	params, err := readParams(req, doc, profile, o.ServiceID)
	if err != nil {
		return apigw.Response{}, err
	}
	choice, err := o.Pipeline.SelectOperator(ctx, profile, merchant.OperationCharge, params.country)
	if err != nil {
		return apigw.Response{}, err
	}
	// Reserve.
	entry := o.newEntry(profile, params, choice)
	operation.LogRouting(req, entry)
	location := resource.ChargeURL(req.BaseURL, entry.ID)
	reservation, existing, err := o.reserve(ctx, req, profile, entry, choice, params)
	if err != nil {
		return apigw.Response{}, operation.LocateUnknown(explainOtherBody(err, existing, entry), location)
	}
	if existing != nil {
		return o.replay(ctx, existing, params, location)
	}
	// Call the operator.
	result := o.Pipeline.CallOperator(ctx, req, reservation,
		func(ctx context.Context, driver operator.Driver, common operator.Call) operator.Result {
			return operator.Charge(ctx, driver, params.operatorCall(common))
		})
	// Record the outcome and respond.
	success := params.success(reservation.ID, location)
	success.NotifyURL = profile.ChargeNotifURL()
	updated, err := o.Pipeline.RecordOutcome(ctx, req, reservation, result, operation.CallOutcomes{
		Done: success, Refused: ledger.CallOutcome{NotifyURL: success.NotifyURL},
	})
	if err != nil {
		return apigw.Response{}, operation.LocateUnknown(err, location)
	}
	return operation.StoredResponse(updated, location, false), nil
}

// replay returns the response of a charge that is done or refused. A charge that was manually resolved as applied has
// no response yet: the retry, which has the same facts, creates and stores it (decision "unknown-by-hand").
func (o *Operation) replay(
	ctx context.Context, existing *ledger.Entry, params *chargeParams, location string,
) (apigw.Response, error) {
	if existing.ResponseStatus == 0 {
		success := params.success(existing.ID, location)
		success.State = ledger.Done
		updated, err := o.Pipeline.Book.StoreOutcome(ctx, existing, success)
		if err != nil {
			return apigw.Response{}, &fault.Fault{Kind: fault.OutcomeUnknown, Location: location, Cause: err}
		}
		existing = updated
	}
	return operation.StoredResponse(existing, location, true), nil
}

// reserve reserves the charge, then its referenceCode, then its amount in the merchant's day. If another charge owns
// the reference, ours is released: nothing was sent under it, because the reference is always reserved before the
// call (decision "charge-reference").
func (o *Operation) reserve(
	ctx context.Context, req *apigw.Request, profile *merchant.Profile, entry *ledger.Entry, choice operation.Choice,
	params *chargeParams,
) (reservation, existing *ledger.Entry, err error) {
	key := params.idempotencyKey()
	req.LogLine.SetTransactionKey(key.Value)
	reservation, existing, err = o.Pipeline.Reserve(ctx, req, profile, entry, choice, key)
	if reservation == nil {
		return nil, existing, err
	}
	owner, err := o.References.ClaimReference(ctx, reservation)
	if err == nil && owner == reservation.ID {
		return reservation, nil, o.Pipeline.ReserveDailyAmount(ctx, req, profile, reservation)
	}
	return nil, nil, o.releaseReservation(ctx, reservation, params, err)
}

// releaseReservation releases a charge without a reference, and returns the reason. If another charge owns the
// reference, none of our attempts can have been sent. If the store failed, an earlier attempt may have been sent: the
// charge stays unknown (decision "unknown-sticks").
func (o *Operation) releaseReservation(
	ctx context.Context, reservation *ledger.Entry, params *chargeParams, claimErr error,
) error {
	neverSent := claimErr == nil || !reservation.EverUnknown
	reason, response := "reference-taken", fault.DuplicateKey
	if claimErr != nil {
		reason, response = "reference-store", fault.Internal
	}
	released := ledger.CallOutcome{
		State: ledger.Released, UnbindBody: neverSent, Call: operation.NotSent(reason, response),
	}
	_, err := o.Pipeline.Book.StoreOutcome(ctx, reservation, released)
	switch {
	case !neverSent:
		return &fault.Fault{Kind: fault.OutcomeUnknown, Cause: errors.Join(claimErr, err)}
	case err != nil || claimErr != nil:
		return fault.NewInternal(errors.Join(claimErr, err))
	}
	return &fault.Fault{Kind: fault.DuplicateKey, Part: partReference, Value: params.reference}
}

// explainOtherBody adds to the 504 of a repeat that it is not the first request, and the parts that differ (decision
// "charge-repeat"). It names only parts that the first request's entry has stored: the others are in its hash.
func explainOtherBody(err error, existing, repeat *ledger.Entry) error {
	f := fault.FromError(err)
	if existing == nil || f.Kind != fault.OutcomeUnknown || existing.Fingerprint == repeat.Fingerprint {
		return err
	}
	var parts []string
	for _, part := range []struct{ name, first, again string }{
		{partAmount, existing.AmountAsSent, repeat.AmountAsSent},
		{partCurrency, existing.Currency, repeat.Currency},
		{partReference, existing.ReferenceCode, repeat.ReferenceCode},
	} {
		if part.first != part.again {
			parts = append(parts, part.name)
		}
	}
	f.Reason, f.Part = "other-body", strings.Join(parts, ", ")
	return f
}

// newEntry prepares the reservation of a charge.
func (o *Operation) newEntry(
	profile *merchant.Profile, params *chargeParams, choice operation.Choice,
) *ledger.Entry {
	id := ledger.ChargeID(profile.ID, params.correlator, params.reference)
	return &ledger.Entry{
		Key:           ledger.Key{Kind: ledger.Charge, ID: id},
		Fingerprint:   ledger.Fingerprint(params.canonical, params.gwAlias, params.country.Alpha2),
		Correlator:    params.correlator,
		ReferenceCode: params.reference,
		UpstreamKey:   ledger.UpstreamKey(profile.Name, params.correlator, params.reference),
		Country:       params.country.Alpha2,
		Operator:      choice.Operator,
		AmountMinor:   params.minor,
		Exponent:      params.country.Exponent,
		Currency:      params.currency,
		AmountAsSent:  params.amountText,
		ExpireAt:      o.Pipeline.ExpireAt(o.Retention),
	}
}

// success is the outcome of a charge that the operator applied.
func (p *chargeParams) success(id, location string) ledger.CallOutcome {
	return ledger.CallOutcome{ResponseStatus: http.StatusCreated, ResponseBody: p.responseBody(id, location)}
}
