package gateway

import (
	"context"
	"net/http"
	"strings"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// chargePath is the path of the charge operation (specification, Endpoints).
const chargePath = "/payment/v1/acr%3AOperatorAPIToken/transactions/amount"

// chargedStatus is the transactionOperationStatus of a success.
const chargedStatus = "Charged"

// chargeRequest is the charge request as the specification writes it.
type chargeRequest struct {
	AmountTransaction amountTransaction `json:"amountTransaction"`
}

type amountTransaction struct {
	EndUserID                  string        `json:"endUserId"`
	PaymentAmount              paymentAmount `json:"paymentAmount"`
	TransactionOperationStatus string        `json:"transactionOperationStatus"`
	ReferenceCode              string        `json:"referenceCode"`
	ClientCorrelator           string        `json:"clientCorrelator"`
}

type paymentAmount struct {
	ChargingInformation chargingInformation `json:"chargingInformation"`
	ChargingMetaData    chargingMetaData    `json:"chargingMetaData"`
}

type chargingInformation struct {
	Amount      string `json:"amount"`
	Currency    string `json:"currency"`
	Description string `json:"description"`
}

type chargingMetaData struct {
	OnBehalfOf string `json:"onBehalfOf"`
	ServiceID  string `json:"serviceId"`
}

// Charge charges the end user once per key. A success has the operator's serverReferenceCode. The operator responds to
// a repeated key as to the first call (specification, Charge rule 2).
func (d *Driver) Charge(ctx context.Context, call operator.ChargeCall) operator.Result {
	build := func(target account) (upstreamRequest, error) { return buildChargeRequest(target, call), nil }
	return d.execute(ctx, call.Call, callProtocol{buildRequest: build, parseSuccess: parseChargeSuccess})
}

// buildChargeRequest makes the request. X-Operator-MCO selects the country on a platform of several countries. The
// specification has no header for that, and other platforms ignore it (decision "charge-country").
func buildChargeRequest(target account, call operator.ChargeCall) upstreamRequest {
	return upstreamRequest{
		method: http.MethodPost,
		path:   chargePath,
		header: map[string]string{
			"gw-token":       call.GWToken,
			"gw-alias":       call.GWAlias,
			"X-Operator-MCO": call.MCO,
		},
		body: strictjson.Marshal(chargeRequest{amountTransaction{
			EndUserID: "acr:OperatorAPIToken",
			PaymentAmount: paymentAmount{
				chargingInformation{Amount: call.Amount, Currency: call.Currency, Description: call.Description},
				chargingMetaData{OnBehalfOf: call.OnBehalfOf, ServiceID: target.ServiceID},
			},
			TransactionOperationStatus: chargedStatus,
			ReferenceCode:              call.ReferenceCode,
			ClientCorrelator:           call.UpstreamKey,
		}}),
	}
}

// parseChargeSuccess reads a success: serverReferenceCode, and the operation status Charged.
func parseChargeSuccess(x exchange) (operator.Result, bool) {
	response, err := strictjson.Parse(x.body)
	if err != nil {
		return operator.Result{}, false
	}
	reference := textField(response, "amountTransaction.serverReferenceCode")
	status := textField(response, "amountTransaction.transactionOperationStatus")
	return operator.Result{OperatorReference: reference}, reference != "" && strings.EqualFold(status, chargedStatus)
}
