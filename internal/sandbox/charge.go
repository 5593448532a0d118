package sandbox

import (
	"encoding/json"
	"net/http"
	"net/url"
)

// endUser is the only end user there is (specification, Charge request).
const endUser = "acr:OperatorAPIToken"

type chargingInformation struct {
	Amount      json.RawMessage `json:"amount"`
	Currency    string          `json:"currency"`
	Description string          `json:"description"`
}

type chargingMetaData struct {
	OnBehalfOf string `json:"onBehalfOf"`
	ServiceID  string `json:"serviceId"`
}

type paymentAmount struct {
	ChargingInformation chargingInformation `json:"chargingInformation"`
	ChargingMetaData    chargingMetaData    `json:"chargingMetaData"`
	TotalAmountCharged  json.RawMessage     `json:"totalAmountCharged,omitempty"`
}

type amountTransaction struct {
	EndUserID                  string        `json:"endUserId"`
	PaymentAmount              paymentAmount `json:"paymentAmount"`
	TransactionOperationStatus string        `json:"transactionOperationStatus"`
	ReferenceCode              string        `json:"referenceCode"`
	ClientCorrelator           string        `json:"clientCorrelator,omitempty"`
	ServerReferenceCode        string        `json:"serverReferenceCode,omitempty"`
	ResourceURL                string        `json:"resourceURL,omitempty"`
}

type chargeBody struct {
	AmountTransaction amountTransaction `json:"amountTransaction"`
}

// postCharge charges once a clientCorrelator; a repeat gets the earlier serverReferenceCode. A charge without a
// correlator is known by its referenceCode.
func (s *Sandbox) postCharge(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("endUserId") != endUser {
		errorResponse(http.StatusNotFound, "900906", nil).write(w)
		return
	}
	var body chargeBody
	raw, fault := readBody(w, r, &body)
	if fault == nil {
		fault = checkCharge(r, &body.AmountTransaction)
	}
	if fault != nil {
		fault.write(w)
		return
	}
	a := &body.AmountTransaction
	key, part := a.ClientCorrelator, "amountTransaction.clientCorrelator"
	if key == "" {
		key, part = a.ReferenceCode, "amountTransaction.referenceCode"
	}
	s.handleCall(w, r, validRequest{
		kind: kindCharge, key: key, messagePart: part, payer: r.Header.Get("gw-alias"),
		fingerprint:     fingerprint(raw, r.Header.Get("gw-alias")),
		fillTransaction: func(t *transaction) { s.fillCharge(t, a) },
	})
}

func checkCharge(r *http.Request, a *amountTransaction) *response {
	var c requestChecker
	c.requireHeader(r, "gw-token")
	c.requireHeader(r, "gw-alias")
	information, meta := a.PaymentAmount.ChargingInformation, a.PaymentAmount.ChargingMetaData
	c.requireOneOf("amountTransaction.endUserId", a.EndUserID, endUser)
	c.checkAmount("amountTransaction.paymentAmount.chargingInformation.amount", amountText(information.Amount))
	c.checkCurrency("amountTransaction.paymentAmount.chargingInformation.currency", information.Currency)
	c.require("amountTransaction.paymentAmount.chargingInformation.description", information.Description)
	c.require("amountTransaction.paymentAmount.chargingMetaData.onBehalfOf", meta.OnBehalfOf)
	c.require("amountTransaction.paymentAmount.chargingMetaData.serviceId", meta.ServiceID)
	c.requireOneOf("amountTransaction.transactionOperationStatus", a.TransactionOperationStatus, "Charged")
	c.require("amountTransaction.referenceCode", a.ReferenceCode)
	return c.firstFault
}

// fillCharge writes the charge and its answer: the request's fields and what the operator adds.
func (s *Sandbox) fillCharge(t *transaction, a *amountTransaction) {
	information := a.PaymentAmount.ChargingInformation
	t.Amount, t.Currency = amountText(information.Amount), information.Currency
	echo := *a
	echo.PaymentAmount.TotalAmountCharged = information.Amount
	echo.ServerReferenceCode = t.OperatorID
	echo.ResourceURL = s.config.BaseURL + "/payment/v1/" + url.QueryEscape(endUser) + "/transactions/amount/" + t.OperatorID
	t.Response = createdResponse(echo.ResourceURL, chargeBody{echo})
}
