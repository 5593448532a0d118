package pay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

var (
	operators = strings.Join(operator.Names(), ", ")
	countries = strings.Join(market.Alpha2s(), ", ")
	channels  = "web, tpe, ussd"
)

// TestOrderOfRefusals breaks a payment at each step of decision "order-of-refusals", and in each header and field of the
// specification's tables.
func TestOrderOfRefusals(t *testing.T) {
	steps := []operationtest.Step{{{
		Name: "404 another method", Status: 404, MessageID: "900906",
		Mutate: func(_ *operationtest.Fixture, e *operationtest.Event) { e.SetField("httpMethod", "PUT") },
	}}}
	steps = append(append(append(steps, operationtest.CommonSteps()...), headerSteps()...), bodySteps()...)
	steps = append(steps, operationtest.Step{{
		Name: "403 not entitled", Status: 403, MessageID: "900908",
		Mutate: func(w *operationtest.Fixture, _ *operationtest.Event) {
			w.Merchants.UpdateProfile(operationtest.DemoToken, func(p *merchant.Profile) { p.Operators = []string{"mtn"} })
		},
	}})
	operationtest.CheckRefusalOrder(t, newFixture, ussdEvent, steps)
}

func headerSteps() []operationtest.Step {
	type e = operationtest.Event
	lostResponse := func(name string) operationtest.Step {
		return operationtest.Step{
			operationtest.InvalidPart("no "+name, name, func(e *e) { e.SetHeaderValues(name) }),
			operationtest.InvalidPart("two values of "+name, name, func(e *e) { e.SetHeaderValues(name, "a", "b") }),
			operationtest.InvalidPart("other script in "+name, name, func(e *e) { e.SetHeader(name, "é") }),
		}
	}
	one := func(name, valid string) operationtest.Step {
		wrong := operationtest.NotAllowedPart("unknown "+name, name, valid, func(e *e) { e.SetHeader(name, "zz") })
		return append(operationtest.Step{wrong}, lostResponse(name)...)
	}
	lang := append(lostResponse("lang"),
		operationtest.InvalidPart("three letters of lang", "lang", func(e *e) { e.SetHeader("lang", "fra") }),
		operationtest.InvalidPart("digits in lang", "lang", func(e *e) { e.SetHeader("lang", "f1") }))
	return []operationtest.Step{one("mno-name", operators), one("country-code", countries), one("channel", channels), lang}
}

// bodySteps are the rungs of the body in the order of the specification's table (specification, Mobile money payment request).
func bodySteps() []operationtest.Step {
	type e = operationtest.Event
	set := func(part string, value any) operationtest.Violation {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return operationtest.InvalidPart(part+" "+string(text), part, func(e *e) { e.SetBodyPart(part, value) })
	}
	text := func(part string, limit int, more ...operationtest.Violation) operationtest.Step {
		return slices.Concat(more, operationtest.MissingPart(part), operationtest.InvalidText(part, limit))
	}
	link := func(part string) operationtest.Step {
		return text(part, 2048, set(part, "http://shop.example.com/x"), set(part, "shop.example.com"), set(part, "https://10.0.0.1/x"),
			set(part, "https://localhost/x"), set(part, "javascript:alert(1)"))
	}
	currency := operationtest.NotAllowedPart("another currency", "currency", "XOF", func(e *e) { e.SetBodyPart("currency", "EURO") })
	otp := slices.DeleteFunc(operationtest.InvalidText("otp_code", 32), func(way operationtest.Violation) bool {
		return way.Name == "empty otp_code" // it counts as absent
	})
	return []operationtest.Step{
		text("currency", 0, currency),
		text("order_id", 30, set("order_id", "DemoShop"), set("order_id", "DemoShop_"), set("order_id", "_1"), set("order_id", "DemoShop_1a"),
			set("order_id", "Demo Shop_1"), set("order_id", "DemoShop_1_2"), set("order_id", "DemoShop-1"), set("order_id", "DemoShop_"+strings.Repeat("1", 22))),
		append(operationtest.Step(operationtest.MissingPart("amount")), set("amount", "five"), set("amount", true)),
		link("return_url"),
		link("cancel_url"),
		append(operationtest.InvalidText("notif_url", 2048), set("notif_url", "https://other.example.com/x"), set("notif_url", "http://shop.example.com/x")),
		text("reference", 30),
		text("user_msisdn", 20, set("user_msisdn", "07 09 99 88 77"), set("user_msisdn", "+33612345678"), set("user_msisdn", "070999887")),
		otp,
		text("state", 1024, set("state", operationtest.LongText(513))),
	}
}

// decision "pay-order-id" and "authentication".
func TestEntitlement(t *testing.T) {
	forbidden := func(name string, e *operationtest.Event, change func(*merchant.Profile)) {
		t.Run("decision authentication: "+name, func(t *testing.T) {
			w := newFixture(t)
			w.Merchants.UpdateProfile(operationtest.DemoToken, change)
			w.Send(t, e).AssertError(t, 403, "900908")
			w.AssertNoSideEffects(t)
		})
	}
	retained := func(*merchant.Profile) {}
	forbidden("decision pay-order-id: another merchant's order_id", webEvent(t).SetBodyPart("order_id", "OtherShop_1"), retained)
	forbidden("decision pay-order-id: another case", webEvent(t).SetBodyPart("order_id", "demoshop_1"), retained)
	forbidden("not the operation", webEvent(t), func(p *merchant.Profile) { p.Operations = []string{"charge"} })
	forbidden("not the country", webEvent(t), func(p *merchant.Profile) { p.Countries = []string{"SN"} })
	forbidden("not the operator", webEvent(t), func(p *merchant.Profile) { p.Operators = []string{"sandbox"} })
	t.Run("decision authentication: OtherShop may not use Tunisia", func(t *testing.T) {
		e := webEvent(t).SetHeader("Authorization", operationtest.OtherToken).SetHeader("country-code", "tn").SetHeader("mno-name", "sandbox")
		newFixture(t).Send(t, e.SetBodyPart("order_id", "OtherShop_1").SetBodyPart("currency", "TND")).AssertError(t, 403, "900908")
	})
	t.Run("decision pay-order-id: exactly 30 characters", func(t *testing.T) {
		newFixture(t).Send(t, webEvent(t).SetBodyPart("order_id", "DemoShop_"+strings.Repeat("1", 21))).AssertStatus(t, 201)
	})
}

// decision "unknown-fields".
func TestUnknownFields(t *testing.T) {
	w := newFixture(t)
	response := w.Send(t, webEvent(t).SetBodyPart("extra", 1).SetHeader("X-Other", "x")).AssertStatus(t, 201)
	if strings.Contains(response.Body, "extra") {
		t.Errorf("echoed: %s", response.Body)
	}
	twice := strings.Replace(webEvent(t).Body(), `"amount":1500`, `"amount":1500,"amount":1`, 1)
	w.Send(t, webEvent(t).SetRawBody(twice)).AssertError(t, 400, "SVC0002", "amount")
}
