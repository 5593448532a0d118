// Package charge is the carrier-billing charge: POST /payment/v1/acr%3AOperatorAPIToken/transactions/amount.
//
// It charges an end user at most once for each idempotency key, however often the merchant sends the request. Its
// invariant: the operator is called only under a reservation of ours, and always under the same upstream key.
package charge

import (
	"context"
	"net/http"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/resource"
)

// Operation is the charge operation and its dependencies. ServiceID is the deployment's service identifier. Retention
// is how long a charge is kept; 0 keeps it without limit.
type Operation struct {
	Pipeline  *operation.Pipeline
	ServiceID string
	Retention time.Duration
}

// Route returns the operation's route, as in template.yaml.
func (o *Operation) Route() apigw.Route {
	params := map[string]string{"endUserId": resource.EndUserID}
	return apigw.Route{
		Method: "POST", Resource: "/payment/v1/{endUserId}/transactions/amount", FixedParams: params, Handle: o.Handle,
	}
}

// Handle charges in five parts. It returns 201 with the charge, or replays the stored response. It returns a final
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
	params, err := o.readParams(a)
	if err != nil {
		return apigw.Response{}, err
	}
	if err := o.Pipeline.SelectOperator(ctx, a, merchant.OperationCharge, params.country); err != nil {
		return apigw.Response{}, err
	}
	// Reserve the charge with its referenceCode, then its amount in the merchant's day.
	reserved, err := o.Pipeline.Reserve(ctx, a, nil)
	switch {
	case err != nil:
	case reserved:
		err = o.Pipeline.ReserveDailyAmount(ctx, a)
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
