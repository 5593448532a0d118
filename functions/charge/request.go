package charge

import (
	"encoding/json"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/validate"
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

// The limits of the texts, in characters. The specification states none: these are generous, and keep an item small.
const (
	maxDescriptionLength = 1024
	maxIdentifierLength  = 255
	maxCurrencyLength    = 255
)

// chargeParams is a valid charge request.
type chargeParams struct {
	country     market.Country
	gwToken     string
	gwAlias     string
	amountJSON  json.RawMessage // as the merchant sent it, for the response
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

// readParams validates the headers and the body in the specification's order, and returns the first fault. It fills in
// what the reservation needs.
func (o *Operation) readParams(a *operation.Attempt) (*chargeParams, error) {
	req, doc, profile := a.Request, a.Body, a.Profile
	p := &chargeParams{serviceID: o.ServiceID}
	p.gwToken = validate.RequiredHeader(req, doc, "gw-token")
	p.gwAlias = validate.RequiredHeader(req, doc, "gw-alias")
	req.LogLine.SetMSISDN(p.gwAlias)
	p.country = validate.ChargeCountry(req, doc, profile)

	validate.RequiredOneOf(doc, partEndUser, resource.EndUserID)
	p.readAmount(doc)
	p.readCurrency(doc)
	p.description = doc.Text(partDescription, maxDescriptionLength)
	p.onBehalfOf = validate.RequiredOneOf(doc, partOnBehalfOf, profile.OnBehalfOf...)
	validate.RequiredOneOf(doc, partService, p.serviceID)
	validate.RequiredOneOf(doc, partStatus, resource.StatusCharged)
	p.reference = doc.Text(partReference, maxIdentifierLength)
	p.correlator, _ = doc.OptionalText(partCorrelator, maxIdentifierLength)
	if f := doc.FirstFault(); f != nil {
		return nil, f
	}
	p.canonical = doc.Canonical()
	a.Entry, a.Key = o.newEntry(profile, p), p.idempotencyKey()
	a.Parts = operation.ChargeParts{Amount: partAmount, Currency: partCurrency, Reference: partReference}
	a.Location = resource.ChargeURL(req.BaseURL, a.Entry.ID)
	return p, nil
}

// readCurrency reads the currency, which must be the country's. A merchant without a country has no valid currency;
// SelectOperator refuses it later.
func (p *chargeParams) readCurrency(doc *strictjson.Reader) {
	if p.country.Currency == "" {
		p.currency = doc.Text(partCurrency, maxCurrencyLength)
		return
	}
	p.currency = validate.RequiredOneOf(doc, partCurrency, p.country.Currency)
}

// readAmount reads the amount in minor units. In DR Congo the number counts minor units (decision "charge-odc-unit").
func (p *chargeParams) readAmount(doc *strictjson.Reader) {
	p.amountText, p.amountJSON = doc.Number(partAmount)
	if p.amountText == "" {
		return
	}
	var err error
	if p.country.ChargesInMinorUnits {
		p.minor, err = money.ParseMinorUnits(p.amountText)
	} else {
		p.minor, err = money.Parse(p.amountText, p.country.Exponent)
	}
	if err != nil {
		doc.RecordFault(fault.BrokenRule(partAmount, err))
	}
}

// newEntry prepares the reservation of a charge, whose operator is not selected yet.
func (o *Operation) newEntry(profile *merchant.Profile, params *chargeParams) *ledger.Entry {
	id := ledger.ChargeID(profile.ID, params.correlator, params.reference)
	return &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: id},
		Request: ledger.Request{
			Fingerprint: ledger.Fingerprint(params.canonical, params.gwAlias, params.country.Alpha2),
			Correlator:  params.correlator, ReferenceCode: params.reference,
		},
		Route: ledger.Route{
			UpstreamKey: ledger.UpstreamKey(profile.Name, params.correlator, params.reference),
			Country:     params.country.Alpha2,
		},
		Amount: ledger.Amount{
			Minor: params.minor, Exponent: params.country.Exponent, Currency: params.currency,
			AsSent: params.amountText,
		},
		ExpireAt: o.Pipeline.ExpireAt(o.Retention),
	}
}

// idempotencyKey is the clientCorrelator, or the referenceCode if there is none (decision "charge-repeat").
func (p *chargeParams) idempotencyKey() operation.IdempotencyKey {
	if p.correlator == "" {
		return operation.IdempotencyKey{Value: p.reference, Part: partReference}
	}
	return operation.IdempotencyKey{Value: p.correlator, Part: partCorrelator}
}

// operatorCall builds the call of the operator's driver.
func (p *chargeParams) operatorCall(common operator.Call) operator.ChargeCall {
	common.GWToken, common.GWAlias = p.gwToken, p.gwAlias
	return operator.ChargeCall{
		Call:          common,
		ReferenceCode: p.reference,
		Amount:        p.amountText,
		Currency:      p.currency,
		Description:   p.description,
		OnBehalfOf:    p.onBehalfOf,
	}
}

// responseBody echoes the request, the amount exactly as it was sent, and adds the fields of the response.
func (p *chargeParams) responseBody(id, location string) []byte {
	return resource.Charge{
		PaymentAmount: resource.PaymentAmount{
			ChargingInformation: resource.ChargingInformation{
				Amount: p.amountJSON, Currency: p.currency, Description: p.description,
			},
			TotalAmountCharged: p.amountJSON,
			ChargingMetaData:   &resource.ChargingMetaData{OnBehalfOf: p.onBehalfOf, ServiceID: p.serviceID},
		},
		TransactionOperationStatus: resource.StatusCharged,
		ReferenceCode:              p.reference,
		ServerReferenceCode:        id,
		ClientCorrelator:           p.correlator,
		ResourceURL:                location,
	}.Body()
}
