package charge_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
)

var allMCOs = strings.Join(market.MCOs(), ", ")

// TestOrderOfRefusals breaks a charge at each step of decision "order-of-refusals", and its body in each field of the
// specification's table.
func TestOrderOfRefusals(t *testing.T) {
	route := operationtest.Rung{{
		Name: "404 another endUserId in the path", Status: 404, ID: "900906",
		Break: func(_ *operationtest.World, e *operationtest.Event) { e.Param("endUserId", "acr%3ASomebody") },
	}}
	rungs := append([]operationtest.Rung{route}, operationtest.Door()...)
	rungs = append(append(rungs, headers()...), fields()...)
	rungs = append(rungs, operationtest.Rung{{
		Name: "403 not entitled", Status: 403, ID: "900908",
		Break: func(w *operationtest.World, _ *operationtest.Event) {
			w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.Operations = []string{"pay", "sms"} })
		},
	}})
	operationtest.Climb(t, shop, event, rungs)
}

func headers() []operationtest.Rung {
	type e = operationtest.Event
	required := func(name string) operationtest.Rung {
		return operationtest.Rung{
			operationtest.Invalid("no "+name, name, func(e *e) { e.Headers(name) }),
			operationtest.Invalid("empty "+name, name, func(e *e) { e.Header(name, " ") }),
			operationtest.Invalid("two values of "+name, name, func(e *e) { e.Headers(name, "a", "b") }),
			operationtest.Invalid("too long "+name, name, func(e *e) { e.Header(name, strings.Repeat("x", 2049)) }),
			operationtest.Invalid("other script in "+name, name, func(e *e) { e.Header(name, "é") }),
		}
	}
	const mco = "X-Operator-MCO"
	return []operationtest.Rung{
		required("gw-token"), required("gw-alias"),
		{
			operationtest.NotAllowed("unknown "+mco, mco, allMCOs, func(e *e) { e.Header(mco, "OXX") }),
			operationtest.NotAllowed("lower case "+mco, mco, allMCOs, func(e *e) { e.Header(mco, "oci") }),
			operationtest.Invalid("two values of "+mco, mco, func(e *e) { e.Headers(mco, "OCI", "OSN") }),
		},
	}
}

// fields are the rungs of the body in the order of the specification's table (specification, Charge request).
func fields() []operationtest.Rung {
	type e = operationtest.Event
	set := func(part string, value any) func(*e) { return func(e *e) { e.Set(part, value) } }
	one := func(part, valid string) operationtest.Rung {
		wrong := operationtest.NotAllowed("another "+part, part, valid, set(part, "another"))
		return slices.Concat(operationtest.Rung{wrong}, operationtest.Lost(part), operationtest.Wrong(part, 0))
	}
	text := func(part string, limit int) operationtest.Rung {
		return slices.Concat(operationtest.Rung(operationtest.Lost(part)), operationtest.Wrong(part, limit))
	}
	return []operationtest.Rung{
		one(endUser, "acr:OperatorAPIToken"),
		append(operationtest.Rung(operationtest.Lost(amount)), operationtest.Invalid("no number", amount, set(amount, "five"))),
		one(currency, "XOF"),
		text(description, 1024),
		one(onBehalfOf, "DemoShop, DemoPartner"),
		one(serviceID, operationtest.ServiceID),
		one(status, "Charged"),
		text(reference, 255),
		operationtest.Wrong(correlator, 255),
	}
}

func TestParents(t *testing.T) {
	cases := []struct {
		name, part, told string
		value            any
	}{
		{"no root", root, endUser, nil},
		{"a list as root", root, root, []any{}},
		{"a text as root", root, root, "x"},
		{"no paymentAmount", root + ".paymentAmount", amount, nil},
		{"a number as chargingInformation", information, information, 7},
		{"null chargingMetaData", metaData, onBehalfOf, nil},
	}
	for _, c := range cases {
		t.Run("wrong types: "+c.name, func(t *testing.T) {
			w := shop(t)
			w.Do(t, event(t).Set(c.part, c.value)).Fails(t, 400, "SVC0002", c.told)
			w.Untouched(t)
		})
	}
}

func TestBodies(t *testing.T) {
	good := event(t).Body()
	t.Run("decision unknown-fields: a key twice deep in the body", func(t *testing.T) {
		twice := strings.Replace(good, `"currency":"XOF"`, `"currency":"XOF","currency":"XOF"`, 1)
		shop(t).Do(t, event(t).Raw(twice)).Fails(t, 400, "SVC0002", currency)
	})
	t.Run("decision unknown-fields: a key twice under its escaped name", func(t *testing.T) {
		twice := strings.Replace(good, `"amount":"500"`, `"amount":"500","\u0061mount":"5"`, 1)
		shop(t).Do(t, event(t).Raw(twice)).Fails(t, 400, "SVC0002", amount)
	})
	t.Run("decision unknown-fields: names are matched with their case", func(t *testing.T) {
		other := strings.Replace(good, `"referenceCode"`, `"ReferenceCode"`, 1)
		shop(t).Do(t, event(t).Raw(other)).Fails(t, 400, "SVC0002", reference)
	})
	t.Run("big bodies: exactly 64 KiB are read", func(t *testing.T) {
		padded := good + strings.Repeat(" ", 64<<10-len(good))
		shop(t).Do(t, event(t).Raw(padded)).Succeeds(t, 201)
	})
	t.Run("a null correlator is none", func(t *testing.T) {
		w := shop(t)
		w.Do(t, event(t).Set(correlator, nil)).Succeeds(t, 201)
		w.OneEffect(t, "charge DemoShop~REF-1001", 1)
	})
	t.Run("a Content-Type with a parameter", func(t *testing.T) {
		shop(t).Do(t, event(t).Header("content-type", "Application/JSON; charset=utf-8")).Succeeds(t, 201)
	})
}

// decision "constants": whatever else stands there, SVC0003 tells the valid value.
func TestConstants(t *testing.T) {
	for part, valid := range map[string]string{endUser: "acr:OperatorAPIToken", serviceID: operationtest.ServiceID, status: "Charged"} {
		for _, value := range []string{"x", strings.ToUpper(valid) + "x", valid + " ", strings.Repeat("x", 300)} {
			t.Run("decision constants: "+part+" "+value[:1], func(t *testing.T) {
				shop(t).Do(t, event(t).Set(part, value)).Fails(t, 400, "SVC0003", part, valid)
			})
		}
	}
}

// decision "authentication" and "charge-country": who may charge where.
func TestEntitlement(t *testing.T) {
	forbid := func(name string, change func(*merchant.Profile), mco, money string) {
		t.Run("decision authentication: "+name, func(t *testing.T) {
			w := shop(t)
			w.Merchants.Change(operationtest.DemoToken, change)
			w.Do(t, event(t).Header("X-Operator-MCO", mco).Set(currency, money)).Fails(t, 403, "900908")
			w.Untouched(t)
		})
	}
	forbid("not the operation", func(p *merchant.Profile) { p.Operations = []string{"sms"} }, "OCI", "XOF")
	forbid("not the country", func(p *merchant.Profile) { p.Countries = []string{"CI"} }, "OCM", "XAF")
	forbid("no operator", func(p *merchant.Profile) { p.Operators = nil }, "OCI", "XOF")
	forbid("an operator that is in no table", func(p *merchant.Profile) { p.Operators = []string{"nobody"} }, "OCI", "XOF")
	t.Run("decision authentication: a merchant without countries", func(t *testing.T) {
		w := shop(t)
		w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.Countries = nil })
		w.Do(t, event(t)).Fails(t, 403, "900908")
	})
	t.Run("decision charge-country: OtherShop may not use Tunisia", func(t *testing.T) {
		e := event(t).Header("Authorization", operationtest.OtherToken).Header("X-Operator-MCO", "OTN").Set(currency, "TND")
		shop(t).Do(t, e).Fails(t, 403, "900908")
	})
	t.Run("decision charge-country: the merchant's home", func(t *testing.T) {
		w := shop(t)
		w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.HomeCountry = "TN" })
		w.Do(t, event(t)).Fails(t, 400, "SVC0003", currency, "TND")
		w.Do(t, event(t).Set(currency, "TND")).Succeeds(t, 201)
	})
	t.Run("decision charge-country: the operator is the first that serves", func(t *testing.T) {
		w := shop(t)
		w.Merchants.Change(operationtest.DemoToken, func(p *merchant.Profile) { p.Operators = []string{"nobody", "mtn", "orange"} })
		w.Do(t, event(t)).Succeeds(t, 201)
		if got := w.Driver.Calls()[0].Call.Operator; got != "mtn" {
			t.Errorf("operator %s", got)
		}
	})
}

// decision "error-shape" and "error-table".
func TestErrorShape(t *testing.T) {
	answer := shop(t).Do(t, event(t).Remove(reference))
	operationtest.GoldenAnswer(t, "testdata/error-missing.json", answer)
	answer = shop(t).Do(t, event(t).Set(serviceID, "<x>"))
	operationtest.GoldenAnswer(t, "testdata/error-constant.json", answer)
	answer = shop(t).Do(t, event(t).Headers("Authorization"))
	operationtest.GoldenAnswer(t, "testdata/error-credentials.json", answer)
	if answer.Header["WWW-Authenticate"] == "" {
		t.Error("401 without WWW-Authenticate")
	}
}

// TestCorrected follows decision "charge-refusal": a refusal of the request itself is not stored.
func TestCorrected(t *testing.T) {
	w := shop(t)
	w.Do(t, event(t).Set(amount, json.RawMessage(`-1`))).Fails(t, 400, "SVC0002", amount)
	w.Do(t, event(t)).Succeeds(t, 201)
	w.OneEffect(t, effect, 1)
}
