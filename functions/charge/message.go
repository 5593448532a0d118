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
	created = 201
	endUser = "acr:OperatorAPIToken"
	charged = "Charged"
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
	maxDescription = 1024
	maxIdentifier  = 255
)

// message is a charge request that broke no rule.
type message struct {
	country     market.Country
	token       string
	alias       string
	amountRaw   json.RawMessage // as it was sent, for the echo
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

// read validates the headers and the body in the specification's order; the first fault found is returned.
func read(req *apigw.Request, doc *strictjson.Reader, profile *merchant.Profile, serviceID string) (*message, error) {
	m := &message{serviceID: serviceID}
	m.token = operation.Header(req, doc, "gw-token")
	m.alias = operation.Header(req, doc, "gw-alias")
	req.Event.SetMSISDN(m.alias)
	m.country = operation.HomeOrMCO(req, doc, profile)

	operation.Constant(doc, partEndUser, endUser)
	m.readAmount(doc)
	m.readCurrency(doc)
	m.description = doc.Text(partDescription, maxDescription)
	m.onBehalfOf = operation.Choice(doc, partOnBehalfOf, profile.OnBehalfOf)
	operation.Constant(doc, partService, serviceID)
	operation.Constant(doc, partStatus, charged)
	m.reference = doc.Text(partReference, maxIdentifier)
	m.correlator, _ = doc.OptionalText(partCorrelator, maxIdentifier)
	if f := doc.Fault(); f != nil {
		return nil, f
	}
	m.canonical = doc.Canonical()
	return m, nil
}

// readCurrency reads the currency, which is the country's. A merchant without a country, whom Carrier refuses, has none
// that could be told.
func (m *message) readCurrency(doc *strictjson.Reader) {
	if m.country.Currency == "" {
		m.currency = doc.Text(partCurrency, maxIdentifier)
		return
	}
	m.currency = operation.Choice(doc, partCurrency, []string{m.country.Currency})
}

// readAmount reads the amount in minor units: in DR Congo it counts whole units (decision "charge-odc-unit").
func (m *message) readAmount(doc *strictjson.Reader) {
	m.amountText, m.amountRaw = doc.Number(partAmount)
	if m.amountText == "" {
		return
	}
	var err error
	if m.country.ChargeInUnits {
		m.minor, err = money.ParseUnits(m.amountText)
	} else {
		m.minor, err = money.Parse(m.amountText, m.country.Exponent)
	}
	if err != nil {
		doc.Fail(fault.In(fault.Invalid, partAmount))
	}
}

// key is the idempotency key and the part that carries it (decision "charge-repeat").
func (m *message) key() (value, part string) {
	if m.correlator == "" {
		return m.reference, partReference
	}
	return m.correlator, partCorrelator
}

// call is the charge as the operator's driver gets it.
func (m *message) call(held *ledger.Entry) operator.ChargeCall {
	return operator.ChargeCall{
		Call: operator.Call{
			Operator: held.Operator, Account: held.Account, Key: held.UpstreamKey,
			MCO: m.country.MCO, Country: held.Country, Resend: held.EverUnknown,
			GWToken: m.token, GWAlias: m.alias,
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
	answer struct {
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

// answer echoes the request and adds what the charge response adds. The amount is repeated exactly as it was sent.
func (m *message) answer(id, location string) []byte {
	return strictjson.Marshal(answer{transaction{
		EndUserID: endUser,
		PaymentAmount: paymentAmount{
			ChargingInformation: chargingInformation{Amount: m.amountRaw, Currency: m.currency, Description: m.description},
			TotalAmountCharged:  m.amountRaw,
			ChargingMetaData:    chargingMetaData{OnBehalfOf: m.onBehalfOf, ServiceID: m.serviceID},
		},
		TransactionOperationStatus: charged,
		ReferenceCode:              m.reference,
		ServerReferenceCode:        id,
		ClientCorrelator:           m.correlator,
		ResourceURL:                location,
	}})
}
