package charge

import (
	"encoding/json"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// What the specification fixes.
const (
	statusCreated = 201
	endUserID     = "acr:OperatorAPIToken"
	statusCharged = "Charged"
)

// The message parts of a charge request, in the specification's order.
const (
	partEndUser     = "amountTransaction.endUserId"
	partAmount      = "amountTransaction.paymentAmount.chargingInformation.amount"
	partCurrency    = "amountTransaction.paymentAmount.chargingInformation.currency"
	partDescription = "amountTransaction.paymentAmount.chargingInformation.description"
	partOnBehalfOf  = "amountTransaction.paymentAmount.chargingMetaData.onBehalfOf"
	partService     = "amountTransaction.paymentAmount.chargingMetaData.serviceId"
	partStatus      = "amountTransaction.transactionOperationStatus"
	partReference   = "amountTransaction.referenceCode"
	partCorrelator  = "amountTransaction.clientCorrelator"
)

// The limits of the texts, in characters. The specification states none: these are wide, and keep an item small.
const (
	maxDescriptionLength = 1024
	maxIdentifierLength  = 255
)

// chargeParams is a charge request that broke no rule.
type chargeParams struct {
	country     market.Country
	gwToken     string
	gwAlias     string
	amountJSON  json.RawMessage // as it was sent, for the echo
	amountText  string
	minor       int64
	currency    string
	description string
	onBehalfOf  string
	serviceID   string
	reference   string
	correlator  string // "" for none
	canonical   []byte
}

// readParams validates the headers and the body in the specification's order; the first fault found is returned.
func readParams(req *apigw.Request, doc *strictjson.Reader, profile *merchant.Profile, serviceID string) (*chargeParams, error) {
	m := &chargeParams{serviceID: serviceID}
	m.gwToken = operation.RequiredHeader(req, doc, "gw-token")
	m.gwAlias = operation.RequiredHeader(req, doc, "gw-alias")
	req.LogLine.SetMSISDN(m.gwAlias)
	m.country = operation.ChargeCountry(req, doc, profile)

	operation.RequireConstant(doc, partEndUser, endUserID)
	m.readAmount(doc)
	m.readCurrency(doc)
	m.description = doc.Text(partDescription, maxDescriptionLength)
	m.onBehalfOf = operation.RequireOneOf(doc, partOnBehalfOf, profile.OnBehalfOf)
	operation.RequireConstant(doc, partService, serviceID)
	operation.RequireConstant(doc, partStatus, statusCharged)
	m.reference = doc.Text(partReference, maxIdentifierLength)
	m.correlator, _ = doc.OptionalText(partCorrelator, maxIdentifierLength)
	if f := doc.FirstFault(); f != nil {
		return nil, f
	}
	m.canonical = doc.Canonical()
	return m, nil
}

// readCurrency reads the currency, which is the country's. A merchant without a country, whom Carrier refuses, has none
// that could be told.
func (m *chargeParams) readCurrency(doc *strictjson.Reader) {
	if m.country.Currency == "" {
		m.currency = doc.Text(partCurrency, maxIdentifierLength)
		return
	}
	m.currency = operation.RequireOneOf(doc, partCurrency, []string{m.country.Currency})
}

// readAmount reads the amount in minor units: in DR Congo it counts whole units (decision "charge-odc-unit").
func (m *chargeParams) readAmount(doc *strictjson.Reader) {
	m.amountText, m.amountJSON = doc.Number(partAmount)
	if m.amountText == "" {
		return
	}
	var err error
	if m.country.ChargesInMinorUnits {
		m.minor, err = money.ParseMinorUnits(m.amountText)
	} else {
		m.minor, err = money.Parse(m.amountText, m.country.Exponent)
	}
	if err != nil {
		doc.RecordFault(fault.ForPart(fault.InvalidPart, partAmount))
	}
}

// idempotencyKey is the idempotency key and the part that carries it (decision "charge-repeat").
func (m *chargeParams) idempotencyKey() (value, part string) {
	if m.correlator == "" {
		return m.reference, partReference
	}
	return m.correlator, partCorrelator
}

// operatorCall is the charge as the operator's driver gets it.
func (m *chargeParams) operatorCall(reservation *ledger.Entry) operator.ChargeCall {
	return operator.ChargeCall{
		Call: operator.Call{
			Operator: reservation.Operator, AccountID: reservation.Account, IdempotencyKey: reservation.UpstreamKey,
			MCO: m.country.MCO, Country: reservation.Country, MayRepeat: reservation.EverUnknown,
			GWToken: m.gwToken, GWAlias: m.gwAlias,
		},
		ReferenceCode: m.reference,
		Amount:        m.amountText,
		Currency:      m.currency,
		Description:   m.description,
		OnBehalfOf:    m.onBehalfOf,
	}
}

// The answer as the specification writes it.
type (
	chargeResponse struct {
		AmountTransaction transaction `json:"amountTransaction"`
	}
	transaction struct {
		EndUserID                  string        `json:"endUserId"`
		PaymentAmount              paymentAmount `json:"paymentAmount"`
		TransactionOperationStatus string        `json:"transactionOperationStatus"`
		ReferenceCode              string        `json:"referenceCode"`
		ServerReferenceCode        string        `json:"serverReferenceCode"`
		ClientCorrelator           string        `json:"clientCorrelator,omitempty"`
		ResourceURL                string        `json:"resourceURL"`
	}
	paymentAmount struct {
		ChargingInformation chargingInformation `json:"chargingInformation"`
		TotalAmountCharged  json.RawMessage     `json:"totalAmountCharged"`
		ChargingMetaData    chargingMetaData    `json:"chargingMetaData"`
	}
	chargingInformation struct {
		Amount      json.RawMessage `json:"amount"`
		Currency    string          `json:"currency"`
		Description string          `json:"description"`
	}
	chargingMetaData struct {
		OnBehalfOf string `json:"onBehalfOf"`
		ServiceID  string `json:"serviceId"`
	}
)

// responseBody echoes the request and adds what the charge response adds. The amount is repeated exactly as it was sent.
func (m *chargeParams) responseBody(id, location string) []byte {
	return strictjson.Marshal(chargeResponse{transaction{
		EndUserID: endUserID,
		PaymentAmount: paymentAmount{
			ChargingInformation: chargingInformation{Amount: m.amountJSON, Currency: m.currency, Description: m.description},
			TotalAmountCharged:  m.amountJSON,
			ChargingMetaData:    chargingMetaData{OnBehalfOf: m.onBehalfOf, ServiceID: m.serviceID},
		},
		TransactionOperationStatus: statusCharged,
		ReferenceCode:              m.reference,
		ServerReferenceCode:        id,
		ClientCorrelator:           m.correlator,
		ResourceURL:                location,
	}})
}
