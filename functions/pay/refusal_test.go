package pay_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
)

var (
	operators = "sandbox, orange, mtn"
	countries = strings.Join(market.Alpha2s(), ", ")
	channels  = "web, tpe, ussd"
)

// TestOrderOfRefusals makes a payment invalid at each step of decision "order-of-refusals", and in each header and
// field of the specification's tables.
func TestOrderOfRefusals(t *testing.T) {
	steps := []operationtest.Step{{{
		Name: "404 another method", Status: 404, MessageID: "900906",
		Mutate: func(_ *operationtest.Fixture, e *operationtest.Event) { e.SetField("httpMethod", "PUT") },
	}}}
	steps = slices.Concat(steps, operationtest.CommonSteps(), headerSteps(), bodySteps(), []operationtest.Step{
		operationtest.NotEntitled(func(p *merchant.Profile) { p.Operators = []string{"mtn"} }),
	})
	operationtest.CheckRefusalOrder(t, newFixture, ussdEvent, steps)
}

func headerSteps() []operationtest.Step {
	type e = operationtest.Event
	oneOf := func(name, valid string) operationtest.Step {
		wrong := operationtest.NotAllowedPart("unknown "+name, name, valid, func(e *e) { e.SetHeader(name, "zz") })
		return append(operationtest.Step{wrong}, operationtest.RequiredHeader(name)...)
	}
	lang := append(operationtest.RequiredHeader("lang"),
		operationtest.InvalidPart("three letters of lang", "lang", func(e *e) { e.SetHeader("lang", "fra") }),
		operationtest.InvalidPart("digits in lang", "lang", func(e *e) { e.SetHeader("lang", "f1") }))
	return []operationtest.Step{
		oneOf("mno-name", operators), oneOf("country-code", countries), oneOf("channel", channels), lang,
	}
}

// bodySteps are the steps of the body in the order of the specification's table (specification, Mobile money payment
// request).
func bodySteps() []operationtest.Step {
	type e = operationtest.Event
	set := func(part string, value any) operationtest.Violation {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return operationtest.InvalidPart(part+" "+string(text), part, func(e *e) { e.SetBodyPart(part, value) })
	}
	text := operationtest.RequiredText
	link := func(part string) operationtest.Step {
		return text(part, 2048, set(part, "http://shop.example.com/x"), set(part, "shop.example.com"),
			set(part, "https://10.0.0.1/x"), set(part, "https://localhost/x"), set(part, "javascript:alert(1)"))
	}
	currency := operationtest.NotAllowedPart("another currency", "currency", "XOF",
		func(e *e) { e.SetBodyPart("currency", "EURO") })
	without := func(name string, step operationtest.Step) operationtest.Step {
		return slices.DeleteFunc(step, func(v operationtest.Violation) bool { return v.Name == name })
	}
	otp := without("empty otp_code", operationtest.InvalidText("otp_code", 32)) // an empty one counts as absent
	state := without("a control character in state", text("state", 1024, set("state", operationtest.LongText(513))))
	var orderIDs []operationtest.Violation
	for _, id := range []string{
		"DemoShop", "DemoShop_", "_1", "DemoShop_1a", "Demo Shop_1", "DemoShop_1_2", "DemoShop-1",
		"DemoShop_" + strings.Repeat("1", 22),
	} {
		orderIDs = append(orderIDs, set("order_id", id))
	}
	return []operationtest.Step{
		text("currency", 0, currency),
		text("order_id", 30, orderIDs...),
		append(operationtest.Step(operationtest.MissingPart("amount")), set("amount", "five"), set("amount", true)),
		link("return_url"),
		link("cancel_url"),
		append(operationtest.InvalidText("notif_url", 2048),
			set("notif_url", "https://other.example.com/x"), set("notif_url", "http://shop.example.com/x")),
		text("reference", 30),
		text("user_msisdn", 20,
			set("user_msisdn", "07 09 99 88 77"), set("user_msisdn", "+33612345678"), set("user_msisdn", "070999887")),
		otp,
		state,
	}
}

// decision "pay-order-id" and "authentication".
func TestEntitlement(t *testing.T) {
	unchanged := func(*merchant.Profile) {}
	for _, c := range []struct {
		name   string
		event  *operationtest.Event
		change func(*merchant.Profile)
	}{
		{"decision pay-order-id: another merchant's order_id", orderEvent(t, "OtherShop_1"), unchanged},
		{"decision pay-order-id: another case", orderEvent(t, "demoshop_1"), unchanged},
		{"not the operation", webEvent(t), func(p *merchant.Profile) { p.Operations = []string{"charge"} }},
		{"not the country", webEvent(t), func(p *merchant.Profile) { p.Countries = []string{"SN"} }},
	} {
		operationtest.CheckEntitlement(t, newFixture(t), c.name, c.event, c.change)
	}
	t.Run("decision pay-order-id: exactly 30 characters", func(t *testing.T) {
		newFixture(t).Send(t, orderEvent(t, "DemoShop_"+strings.Repeat("1", 21))).AssertStatus(t, 201)
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

// orderEvent is the golden payment on the web channel with another order_id.
func orderEvent(t testing.TB, id string) *operationtest.Event {
	t.Helper()
	return webEvent(t).SetBodyPart("order_id", id)
}

func TestMalformedBodies(t *testing.T) { operationtest.CheckMalformedBodies(t, newFixture, ussdEvent) }
