package sandbox

import (
	"cmp"
	"encoding/json"
	"net/url"

	"mobilegateway/world/operators/kit"
)

// endUser is the only end user (specification, Charge request).
const endUser = "acr:OperatorAPIToken"

type amountTransaction struct {
	EndUserID     string `json:"endUserId"`
	PaymentAmount struct {
		ChargingInformation struct {
			Amount      json.RawMessage `json:"amount"`
			Currency    string          `json:"currency"`
			Description string          `json:"description"`
		} `json:"chargingInformation"`
		ChargingMetaData struct {
			OnBehalfOf string `json:"onBehalfOf"`
			ServiceID  string `json:"serviceId"`
		} `json:"chargingMetaData"`
		TotalAmountCharged json.RawMessage `json:"totalAmountCharged,omitempty"`
	} `json:"paymentAmount"`
	TransactionOperationStatus string `json:"transactionOperationStatus"`
	ReferenceCode              string `json:"referenceCode"`
	ClientCorrelator           string `json:"clientCorrelator,omitempty"`
	ServerReferenceCode        string `json:"serverReferenceCode,omitempty"`
	ResourceURL                string `json:"resourceURL,omitempty"`
}

type chargeBody struct {
	AmountTransaction amountTransaction `json:"amountTransaction"`
}

// parseCharge reads a charge. The operator charges once for each clientCorrelator; without one, for each referenceCode.
// A repeat gets the first response again.
func (s *Sandbox) parseCharge(c *kit.Call, in *request) error {
	var body chargeBody
	err := json.Unmarshal(c.Body, &body)
	a := &body.AmountTransaction
	in.messagePart = "amountTransaction.clientCorrelator"
	if a.ClientCorrelator == "" {
		in.messagePart = "amountTransaction.referenceCode"
	}
	in.key, in.payer = cmp.Or(a.ClientCorrelator, a.ReferenceCode), c.Request.Header.Get("gw-alias")
	in.fingerprint = fingerprint(c.Fields, in.payer)
	in.check = func(c *requestChecker) { checkCharge(c, a) }
	in.fillTransaction = func(t transaction) { s.fillCharge(t, *a) }
	return err
}

func checkCharge(c *requestChecker, a *amountTransaction) {
	const paymentAmount = "amountTransaction.paymentAmount."
	information, meta := a.PaymentAmount.ChargingInformation, a.PaymentAmount.ChargingMetaData
	c.requireHeaders("gw-token", "gw-alias")
	c.requireOneOf("amountTransaction.endUserId", a.EndUserID, endUser)
	c.checkAmount(paymentAmount+"chargingInformation.amount", amountText(information.Amount))
	c.checkCurrency(paymentAmount+"chargingInformation.currency", information.Currency)
	c.require(paymentAmount+"chargingInformation.description", information.Description)
	c.require(paymentAmount+"chargingMetaData.onBehalfOf", meta.OnBehalfOf)
	c.require(paymentAmount+"chargingMetaData.serviceId", meta.ServiceID)
	c.requireOneOf("amountTransaction.transactionOperationStatus", a.TransactionOperationStatus, "Charged")
	c.require("amountTransaction.referenceCode", a.ReferenceCode)
}

// fillCharge copies a charge and makes its response: the request's fields and the operator's own.
func (s *Sandbox) fillCharge(t transaction, a amountTransaction) {
	information := a.PaymentAmount.ChargingInformation
	t.Amount, t.Currency = amountText(information.Amount), information.Currency
	a.PaymentAmount.TotalAmountCharged = information.Amount
	a.ServerReferenceCode = t.Reference
	a.ResourceURL = s.config.BaseURL + "/payment/v1/" + url.QueryEscape(endUser) + "/transactions/amount/" + t.Reference
	t.Response = keep(createdResponse(a.ResourceURL, chargeBody{a}))
}
