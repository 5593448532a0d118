package carrierapi

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
)

// Charge charges the end user once per key. A success has the operator's serverReferenceCode. The operator responds to
// a repeated key as to the first call (specification, Charge rule 2).
func (d *Driver) Charge(ctx context.Context, call operator.ChargeCall) operator.Result {
	build := func(target credentials.Account) (upstream.Request, error) {
		return buildChargeRequest(target, call), nil
	}
	return d.execute(ctx, call.Call, callProtocol{
		operation: operator.AccountCharge, buildRequest: build, parseSuccess: parseChargeSuccess,
	}).Result
}

// buildChargeRequest makes the request. X-Operator-MCO selects the country on a platform of several countries. The
// specification has no header for that, and other platforms ignore it (decision "charge-country").
func buildChargeRequest(target credentials.Account, call operator.ChargeCall) upstream.Request {
	word := resource.EndUserID
	if target.Field(fieldPathWord) != "" {
		word = "acr:" + target.Field(fieldPathWord)
	}
	return upstream.Request{
		Method: http.MethodPost, IsTransaction: true,
		URL: strings.Replace(resource.ChargesPath, url.QueryEscape(resource.EndUserID), url.QueryEscape(word), 1),
		Header: map[string]string{
			"gw-token":       call.GWToken,
			"gw-alias":       call.GWAlias,
			"X-Operator-MCO": call.MCO,
		},
		Body: bytes.Replace(resource.Charge{
			PaymentAmount: resource.PaymentAmount{
				ChargingInformation: resource.ChargingInformation{
					Amount: strictjson.Marshal(call.Amount), Currency: call.Currency, Description: call.Description,
				},
				ChargingMetaData: &resource.ChargingMetaData{
					OnBehalfOf: call.OnBehalfOf, ServiceID: target.Field(fieldServiceID),
				},
			},
			TransactionOperationStatus: resource.StatusCharged,
			ReferenceCode:              call.ReferenceCode,
			ClientCorrelator:           call.UpstreamKey,
		}.Body(), []byte(resource.EndUserID), []byte(word), 1), // endUserId is the first field
	}
}

// parseChargeSuccess reads a success: serverReferenceCode, and the operation status Charged.
func parseChargeSuccess(response *strictjson.Reader) (operator.PayResponse, bool) {
	reference := upstream.Text(response, "amountTransaction.serverReferenceCode")
	status := upstream.Text(response, "amountTransaction.transactionOperationStatus")
	charged := reference != "" && strings.EqualFold(status, resource.StatusCharged)
	return operator.PayResponse{Result: operator.Result{OperatorReference: reference}}, charged
}
