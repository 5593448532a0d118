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
	a, err := o.Pipeline.AuthenticateAndReadBody(ctx, req)
	if err != nil {
		return apigw.Response{}, err
	}
	// Validate.
	params, err := readParams(a, o.ServiceID)
	if err != nil {
		return apigw.Response{}, err
	}
	if err := o.Pipeline.SelectOperator(ctx, a, merchant.OperationCharge, params.country); err != nil {
		return apigw.Response{}, err
	}
	// Reserve the charge, then its referenceCode, then its amount in the merchant's day.
	a.Entry, a.Key = o.newEntry(a, params), params.idempotencyKey()
	a.Location = resource.ChargeURL(req.BaseURL, a.Entry.ID)
	reserved, err := o.Pipeline.Reserve(ctx, a, nil)
	switch {
	case err != nil:
		err = explainOtherBody(err, a)
	case reserved:
		err = o.reserveReferenceAndAmount(ctx, a)
	case a.Stored.Response.Status == 0:
		// It was manually resolved as applied. The retry has the same facts, so it makes the response (decision
		// "unknown-by-hand").
		err = o.Pipeline.StoreMissingResponse(ctx, a, ledger.RespondAfterResolution,
			params.responseBody(a.Stored.ID, a.Location))
	}
	if err != nil {
		return apigw.Response{}, err
	}
	if !reserved {
		return a.StoredResponse(true), nil
	}
	// Call the operator.
	response := o.Pipeline.CallOperator(ctx, a,
		func(ctx context.Context, driver operator.Driver, common operator.Call) operator.PayResponse {
			return operator.PayResponse{Result: operator.Charge(ctx, driver, params.operatorCall(common))}
		})
	// Record the outcome and respond.
	body, notifyURL := params.responseBody(a.Stored.ID, a.Location), a.Profile.ChargeNotifURL()
	err = o.Pipeline.RecordOutcome(ctx, a, response.Result, operation.CallOutcomes{
		Done:    ledger.CallOutcome{ResponseStatus: http.StatusCreated, ResponseBody: body, NotifyURL: notifyURL},
		Refused: ledger.CallOutcome{NotifyURL: notifyURL},
	})
	if err != nil {
		return apigw.Response{}, err
	}
	return a.StoredResponse(false), nil
}

// reserveReferenceAndAmount binds the charge's referenceCode and counts its amount. If another charge owns the
// reference, ours is released: none of our attempts can have been sent, because the reference is always bound before
// the call (decision "charge-reference"). If the store failed, an earlier attempt may have been sent: the charge stays
// unknown (decision "unknown-sticks").
func (o *Operation) reserveReferenceAndAmount(ctx context.Context, a *operation.Attempt) error {
	reservation := a.Stored
	owner, claimErr := o.References.ClaimReference(ctx, reservation)
	if claimErr != nil {
		failed, neverSent := fault.NewInternal(claimErr), !reservation.EverUnknown
		_, err := o.Pipeline.Release(ctx, reservation, "reference-store", failed, neverSent)
		if !neverSent {
			return a.Unknown(errors.Join(claimErr, err))
		}
		return fault.NewInternal(errors.Join(claimErr, err))
	}
	if owner == reservation.ID {
		return o.Pipeline.ReserveDailyAmount(ctx, a)
	}
	taken := &fault.Fault{Kind: fault.DuplicateKey, Part: partReference, Value: a.Entry.Request.ReferenceCode}
	if _, err := o.Pipeline.Release(ctx, reservation, "reference-taken", taken, true); err != nil {
		return fault.NewInternal(err)
	}
	return taken
}

// explainOtherBody adds to the 504 of a repeat that it is not the first request, and the parts that differ (decision
// "charge-repeat"). It names only parts that the first request's entry has stored: the others are in its hash.
func explainOtherBody(err error, a *operation.Attempt) error {
	f, first, repeat := fault.FromError(err), a.Stored, a.Entry
	if f.Kind != fault.OutcomeUnknown || first == nil || first.Request.Fingerprint == repeat.Request.Fingerprint {
		return err
	}
	var parts []string
	for _, part := range []struct{ name, first, again string }{
		{partAmount, first.Amount.AsSent, repeat.Amount.AsSent},
		{partCurrency, first.Amount.Currency, repeat.Amount.Currency},
		{partReference, first.Request.ReferenceCode, repeat.Request.ReferenceCode},
	} {
		if part.first != part.again {
			parts = append(parts, part.name)
		}
	}
	f.Reason, f.Part = fault.ReasonOtherBody, strings.Join(parts, ", ")
	return f
}

// newEntry prepares the reservation of a charge.
func (o *Operation) newEntry(a *operation.Attempt, params *chargeParams) *ledger.Entry {
	id := ledger.ChargeID(a.Profile.ID, params.correlator, params.reference)
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: id},
		Request: ledger.Request{
			Fingerprint: ledger.Fingerprint(params.canonical, params.gwAlias, params.country.Alpha2),
			Correlator:  params.correlator, ReferenceCode: params.reference,
		},
		Route: ledger.Route{
			UpstreamKey: ledger.UpstreamKey(a.Profile.Name, params.correlator, params.reference),
			Country:     params.country.Alpha2, Operator: a.Choice.Operator,
		},
		Amount: ledger.Amount{
			Minor: params.minor, Exponent: params.country.Exponent, Currency: params.currency,
			AsSent: params.amountText,
		},
		ExpireAt: o.Pipeline.ExpireAt(o.Retention),
	}
}
