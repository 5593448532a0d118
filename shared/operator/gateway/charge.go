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

// chargedWord is the one transactionOperationStatus of a success.
const chargedWord = "Charged"

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

// Charge charges the end user once per key. Done carries the operator's serverReferenceCode; a repeat of a key is
// answered by the operator as the first call was (specification, Charge rule 2).
func (d *Driver) Charge(ctx context.Context, call operator.ChargeCall) operator.Result {
	write := func(to account) (message, error) { return writeCharge(to, call), nil }
	return d.perform(ctx, call.Call, protocol{write: write, complete: readCharge})
}

// writeCharge makes the request. X-Operator-MCO tells a platform of several countries which one is meant; the
// specification has no header for that, and others ignore it (decision "charge-country").
func writeCharge(to account, call operator.ChargeCall) message {
	return message{
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
				chargingMetaData{OnBehalfOf: call.OnBehalfOf, ServiceID: to.ServiceID},
			},
			TransactionOperationStatus: chargedWord,
			ReferenceCode:              call.ReferenceCode,
			ClientCorrelator:           call.Key,
		}}),
	}
}

// readCharge reads a success: serverReferenceCode, and the operation status Charged.
func readCharge(x exchange) (operator.Result, bool) {
	answer, err := strictjson.Parse(x.body)
	if err != nil {
		return operator.Result{}, false
	}
	reference := field(answer, "amountTransaction.serverReferenceCode")
	status := field(answer, "amountTransaction.transactionOperationStatus")
	complete := reference != "" && strings.EqualFold(status, chargedWord)
	return operator.Result{OperatorReference: reference}, complete
}
