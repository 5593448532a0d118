package charge_test

import (
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
)

var allMCOs = strings.Join(market.MCOs(), ", ")

// TestOrderOfRefusals makes a charge invalid at each step of decision "order-of-refusals", and in each field of the
// specification's table.
func TestOrderOfRefusals(t *testing.T) {
	route := operationtest.Step{{
		Name: "404 another endUserId in the path", Status: 404, MessageID: "900906",
		Mutate: func(_ *operationtest.Fixture, e *operationtest.Event) {
			e.SetPathParameter("endUserId", "acr%3ASomebody")
		},
	}}
	steps := append([]operationtest.Step{route}, operationtest.CommonSteps()...)
	steps = slices.Concat(steps, headerSteps(), bodySteps(), []operationtest.Step{
		operationtest.NotEntitled(func(p *merchant.Profile) { p.Operations = []string{"pay", "sms"} }),
	})
	operationtest.CheckRefusalOrder(t, newFixture, newEvent, steps)
}

func headerSteps() []operationtest.Step {
	type e = operationtest.Event
	const mco = "X-Operator-MCO"
	return []operationtest.Step{
		operationtest.RequiredHeader("gw-token"), operationtest.RequiredHeader("gw-alias"),
		{
			operationtest.NotAllowedPart("unknown "+mco, mco, allMCOs, func(e *e) { e.SetHeader(mco, "OXX") }),
			operationtest.NotAllowedPart("lower case "+mco, mco, allMCOs, func(e *e) { e.SetHeader(mco, "oci") }),
			operationtest.InvalidPart("two values of "+mco, mco, func(e *e) { e.SetHeader(mco, "OCI", "OSN") }),
		},
	}
}

// bodySteps are the steps of the body in the order of the specification's table (specification, Charge request).
func bodySteps() []operationtest.Step {
	set := func(part string, value any) func(*operationtest.Event) {
		return func(e *operationtest.Event) { e.SetBodyPart(part, value) }
	}
	oneOf := func(part, valid string) operationtest.Step {
		wrong := operationtest.NotAllowedPart("another "+part, part, valid, set(part, "another"))
		return operationtest.RequiredText(part, 0, wrong)
	}
	notANumber := operationtest.InvalidPart("not a number", amount, set(amount, "five"))
	return []operationtest.Step{
		oneOf(endUserID, "acr:OperatorAPIToken"),
		append(operationtest.Step(operationtest.MissingPart(amount)), notANumber),
		oneOf(currency, "XOF"),
		operationtest.RequiredText(description, 1024),
		oneOf(onBehalfOf, "DemoShop, DemoPartner"),
		oneOf(serviceID, operationtest.ServiceID),
		oneOf(status, "Charged"),
		operationtest.RequiredText(reference, 255),
		operationtest.InvalidText(correlator, 255),
	}
}

func TestInvalidParentObjects(t *testing.T) {
	cases := []struct {
		name, part, reported string
		value                any
	}{
		{"no root", root, endUserID, nil},
		{"a list as root", root, root, []any{}},
		{"a text as root", root, root, "x"},
		{"no paymentAmount", root + ".paymentAmount", amount, nil},
		{"a number as chargingInformation", chargingInformationPath, chargingInformationPath, 7},
		{"null chargingMetaData", chargingMetaDataPath, onBehalfOf, nil},
	}
	for _, c := range cases {
		t.Run("wrong types: "+c.name, func(t *testing.T) {
			w := newFixture(t)
			w.Send(t, newEvent(t).SetBodyPart(c.part, c.value)).AssertError(t, 400, "SVC0002", c.reported)
			w.AssertNoSideEffects(t)
		})
	}
}

func TestBodies(t *testing.T) {
	valid := newEvent(t).Body()
	t.Run("decision unknown-fields: names are matched with their case", func(t *testing.T) {
		other := strings.Replace(valid, `"referenceCode"`, `"ReferenceCode"`, 1)
		newFixture(t).Send(t, newEvent(t).SetRawBody(other)).AssertError(t, 400, "SVC0002", reference)
	})
	t.Run("a null correlator is none", func(t *testing.T) {
		w := newFixture(t)
		w.Send(t, newEvent(t).SetBodyPart(correlator, nil)).AssertStatus(t, 201)
		w.AssertSingleEffect(t, "charge DemoShop~REF-1001", 1)
	})
}

// decision "constants": for any other value SVC0003 reports the valid one.
func TestConstants(t *testing.T) {
	for part, valid := range map[string]string{
		endUserID: "acr:OperatorAPIToken", serviceID: operationtest.ServiceID, status: "Charged",
	} {
		for _, value := range []string{"x", strings.ToUpper(valid) + "x", valid + " ", strings.Repeat("x", 300)} {
			t.Run("decision constants: "+part+" "+value[:1], func(t *testing.T) {
				newFixture(t).Send(t, newEvent(t).SetBodyPart(part, value)).AssertError(t, 400, "SVC0003", part, valid)
			})
		}
	}
}

// decision "authentication" and "charge-country": who may charge where.
func TestEntitlement(t *testing.T) {
	cameroon := newEvent(t).SetHeader("X-Operator-MCO", "OCM").SetBodyPart(currency, "XAF")
	for _, c := range []struct {
		name   string
		event  *operationtest.Event
		change func(*merchant.Profile)
	}{
		{"not the country", cameroon, func(p *merchant.Profile) { p.Countries = []string{"CI"} }},
		{"no country", newEvent(t), func(p *merchant.Profile) { p.Countries = nil }},
		{"no operator", newEvent(t), func(p *merchant.Profile) { p.Operators = nil }},
		{"an unknown operator", newEvent(t), func(p *merchant.Profile) { p.Operators = []string{"unknown"} }},
	} {
		operationtest.CheckEntitlement(t, newFixture(t), c.name, c.event, c.change)
	}
	t.Run("decision charge-country: the merchant's home", func(t *testing.T) {
		w := newFixture(t).UpdateDemo(func(p *merchant.Profile) { p.HomeCountry = "TN" })
		w.Send(t, newEvent(t)).AssertError(t, 400, "SVC0003", currency, "TND")
		w.Send(t, newEvent(t).SetBodyPart(currency, "TND")).AssertStatus(t, 201)
	})
	t.Run("decision charge-country: the operator is the first that serves", func(t *testing.T) {
		w := newFixture(t).UpdateDemo(func(p *merchant.Profile) { p.Operators = []string{"unknown", "mtn", "orange"} })
		w.Send(t, newEvent(t)).AssertStatus(t, 201)
		if got := w.Driver.Calls()[0].Call.Operator; got != "mtn" {
			t.Errorf("operator %s", got)
		}
	})
}

func TestMalformedBodies(t *testing.T) { operationtest.CheckMalformedBodies(t, newFixture, newEvent) }
